//go:build !linux

package output

import "os"

func pipe() (r, w *os.File, err error) { return os.Pipe() }
