//go:build !unix

package proxy

import (
	"errors"
	"net"
	"syscall"
)

// maxFiles is not bounded here.
func maxFiles() int { return 1 << 30 }

// disableBroadcast could not keep a socket from broadcast addresses.
func disableBroadcast(string, string, syscall.RawConn) error { return errors.ErrUnsupported }

func reader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) { return blockingReader(c) }

// waitGone takes a client that has ended its sending half for gone.
func (*Proxy) waitGone(net.Conn) error { return nil }

// readNow cannot look at a connection, which is not used again therefore.
func (*meteredConn) readNow([]byte) (int, error) { return 0, errors.ErrUnsupported }
