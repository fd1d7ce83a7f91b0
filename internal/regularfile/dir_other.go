//go:build !unix

package regularfile

import "os"

// OpenDir opens a directory.
func OpenDir(path string) (*os.File, error) { return os.Open(path) }
