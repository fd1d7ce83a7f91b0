//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bwrap: there are no such namespaces on this system")
	os.Exit(1)
}
