//go:build !unix

package egress

import (
	"errors"
	"syscall"
)

// toOne could not keep a socket from broadcast addresses.
func toOne(string, string, syscall.RawConn) error { return errors.ErrUnsupported }
