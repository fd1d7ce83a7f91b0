//go:build !unix

package proxy

import (
	"errors"
	"net"
)

func reader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) { return blockingReader(c) }

// readNow cannot look at a connection, which is not used again therefore.
func (*meteredConn) readNow([]byte) (int, error) { return 0, errors.ErrUnsupported }
