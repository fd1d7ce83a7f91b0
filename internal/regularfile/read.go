package regularfile

import (
	"errors"
	"io"
	"io/fs"
)

var (
	// ErrNotRegular is wrapped by the error for what is no regular file, or one of procfs and the like.
	ErrNotRegular = errors.New("no regular file")
	// ErrTooLarge is wrapped by Read's error for a file that has more than it may.
	ErrTooLarge = errors.New("too large")
)

// Read returns what is in a regular file, which has at most that many bytes.
func Read(path string, most int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		b, err = nil, &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	return b, err
}
