package proxy

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// A clientConn is a connection to the HTTP server of the gateway: a proxy's client's, or one inside of
// a tunnel.
type clientConn struct {
	*tracked
	g       *Gateway
	inner   *Upstream     // what the connection is inside of; nil: it is a proxy's client
	done    chan struct{} // closed with the connection
	ended   sync.Once
	entered bool // Close waits for the server's goroutine

	head  headMeter
	wrote time.Time // when the deadline of writes was set
}

func newClient(g *Gateway, c *tracked, in *Upstream) *clientConn {
	return &clientConn{tracked: c, g: g, inner: in, done: make(chan struct{}), head: headMeter{budget: &g.heads, most: mostFields, bytes: mostHead + 4<<10}} // net/http answers for fewer
}

func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.tracked.Read(p)
	_, whole, fault := c.head.look(p[:n])
	if whole { // what comes behind it in the same piece, and while a body is read, is a buffer's worth of the next header at most
		c.head.stop()
	}
	if fault == nil {
		return n, err
	}
	c.g.finish(Event{Time: time.Now(), Protocol: string(HTTP)}, fault)
	status := http.StatusRequestHeaderFieldsTooLarge
	if fault == errBudget {
		status = http.StatusServiceUnavailable
	}
	c.tracked.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	c.tracked.Write(answer{status, fault.explain("")}.raw(fault.Why))
	return 0, io.EOF // at which net/http says nothing
}

// Write gives a client that reads slowly idleTime for each write.
func (c *clientConn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.wrote) > idleTime/4 {
		c.wrote = now
		c.tracked.SetWriteDeadline(now.Add(idleTime))
	}
	return c.tracked.Write(p)
}

// Close closes the connection and tells who waits for that.
func (c *clientConn) Close() error {
	err := c.tracked.Close()
	c.ended.Do(func() {
		c.head.close()
		close(c.done)
	})
	return err
}

// CloseWrite tells the client that nothing more comes.
func (c *clientConn) CloseWrite() error { return closeWrite(c.tracked) }

func (c *clientConn) unwrap() net.Conn { return c.tracked }
