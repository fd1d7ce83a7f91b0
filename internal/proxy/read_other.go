//go:build !linux

package proxy

import "net"

func reader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) { return blockingReader(c) }
