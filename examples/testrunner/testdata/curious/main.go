package main

import (
	"fmt"
	"net"
	"os"
)

func main() {
	if data, err := os.ReadFile(os.Args[1]); err == nil {
		fmt.Printf("found %s", data)
	}
	if conn, err := net.Dial("tcp", os.Args[2]); err == nil {
		fmt.Println("connected to", conn.RemoteAddr())
	}
	for _, dir := range []string{"/etc", "/home", "/usr"} {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
			fmt.Println("found", dir, entries)
		}
	}
	if err := os.WriteFile("planted", nil, 0o644); err == nil {
		fmt.Println("wrote a file")
	}
	var a, b int
	fmt.Scan(&a, &b)
	fmt.Println(a + b)
}
