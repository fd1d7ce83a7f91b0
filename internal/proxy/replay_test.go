package proxy

import (
	"errors"
	"net"
	"testing"
)

// A silentConn has nothing to read, and says so to who asks before reading.
type silentConn struct {
	net.Conn
	read bool
}

var errSilent = errors.New("silent")

func (c *silentConn) WaitRead() error          { return errSilent }
func (c *silentConn) Read([]byte) (int, error) { c.read = true; return 0, nil }

func TestBufferIsTakenWhenThereIsSomethingToRead(t *testing.T) {
	for says, wrapped := range map[string]func(c net.Conn) net.Conn{
		"itself":        func(c net.Conn) net.Conn { return c },
		"as it is held": func(c net.Conn) net.Conn { return &trackedConn{Conn: c} },
	} {
		c := &silentConn{}
		b, n, err := reader(wrapped(c))(bufferSize)
		if b != nil || n != 0 || !errors.Is(err, errSilent) || c.read {
			t.Errorf("%s: %v, %d, %v, read %t", says, b != nil, n, err, c.read)
		}
	}
	// What was read already is there at once.
	c := &silentConn{}
	b, n, err := reader(replay(c, []byte("hello")))(bufferSize)
	if err != nil || string(b[:n]) != "hello" {
		t.Errorf("%d, %v", n, err)
	}
}
