//go:build !unix

package proxy

import (
	"errors"
	"syscall"
)

// disableBroadcast could not keep a socket from broadcast addresses.
func disableBroadcast(string, string, syscall.RawConn) error { return errors.ErrUnsupported }
