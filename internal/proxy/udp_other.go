//go:build !unix

package proxy

import (
	"errors"
	"syscall"
)

// toOne could not keep a socket from broadcast addresses.
func toOne(string, string, syscall.RawConn) error { return errors.ErrUnsupported }
