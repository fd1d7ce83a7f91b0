//go:build !linux

package regularfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file to read. An error is an fs.PathError.
func Open(path string) (*os.File, error) {
	no := &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = no
		}
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = no
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
