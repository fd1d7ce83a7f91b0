package proxy

import "net"

// A waiter is a connection that is not the kernel's and can say when there is
// something to read: that of a captured program.
type waiter interface{ WaitRead() error }

// blockingReader is for connections that are not the kernel's. It holds a buffer
// while it waits, unless the connection is a waiter.
func blockingReader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) {
	w, waits := unwrapConn(c).(waiter)
	return func(most int64) (*[bufferSize]byte, int, error) {
		if waits {
			if err := w.WaitRead(); err != nil {
				return nil, 0, err
			}
		}
		b := buffers.Get().(*[bufferSize]byte)
		n, err := c.Read(b[:min(most, bufferSize)])
		return b, n, err
	}
}

// A replayConn connection gives bytes that were read from it once more.
type replayConn struct {
	net.Conn
	head []byte
}

func replay(c net.Conn, head []byte) net.Conn {
	if len(head) == 0 {
		return c
	}
	return &replayConn{c, head}
}

func (c *replayConn) Read(p []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	c.head = c.head[n:]
	return n, nil
}

// CloseWrite tells the other side that nothing more comes.
func (c *replayConn) CloseWrite() error { return closeWrite(c.Conn) }
