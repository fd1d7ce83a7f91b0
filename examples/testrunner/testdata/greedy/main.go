package main

import "fmt"

func main() {
	var all [][]byte
	for {
		all = append(all, make([]byte, 64<<20))
		if len(all) > 1000 {
			break
		}
	}
	fmt.Println(5)
}
