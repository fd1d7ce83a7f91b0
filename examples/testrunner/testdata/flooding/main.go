package main

import (
	"os"
	"time"
)

func main() {
	page := make([]byte, 1<<20)
	for {
		os.Stdout.Write(page)
		time.Sleep(time.Millisecond)
	}
}
