package egress

import "net"

// blockingReader holds a buffer while it waits: for connections that are not the
// kernel's.
func blockingReader(c net.Conn) func(most int64) (*[bufferSize]byte, int, error) {
	return func(most int64) (*[bufferSize]byte, int, error) {
		b := buffers.Get().(*[bufferSize]byte)
		n, err := c.Read(b[:min(most, bufferSize)])
		return b, n, err
	}
}

// A replayed connection gives bytes that were read from it once more.
type replayed struct {
	net.Conn
	head []byte
}

func replay(c net.Conn, head []byte) net.Conn {
	if len(head) == 0 {
		return c
	}
	return &replayed{c, head}
}

func (c *replayed) Read(p []byte) (int, error) {
	if len(c.head) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.head)
	c.head = c.head[n:]
	return n, nil
}

// CloseWrite tells the other side that nothing more comes.
func (c *replayed) CloseWrite() error { return closeWrite(c.Conn) }
