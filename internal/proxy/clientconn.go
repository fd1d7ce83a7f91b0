package proxy

import (
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A clientConn is a connection to the HTTP server of the proxy: a proxy's client's, or one inside of
// a tunnel.
type clientConn struct {
	*trackedConn
	g       *Proxy
	tunnel  *Tunnel       // that the requests are in; nil: it is a client of the proxy
	done    chan struct{} // closed with the connection
	ended   sync.Once
	entered bool // Close waits for the server's goroutine

	headMeter headMeter
	wrote     time.Time // when the deadline of writes was set
}

func newClient(g *Proxy, c *trackedConn, in *Tunnel) *clientConn {
	return &clientConn{trackedConn: c, g: g, tunnel: in, done: make(chan struct{}), headMeter: headMeter{budget: &g.headerBudget, most: maxRequestFields, bytes: maxHeadBytes + 4<<10}} // net/http answers for fewer
}

func (c *clientConn) Read(p []byte) (int, error) {
	n, err := c.trackedConn.Read(p)
	_, whole, fault := c.headMeter.count(p[:n])
	if whole { // not counted after it, and while a body is read: at most one buffer of the next header
		c.headMeter.stop()
	}
	if fault == nil {
		return n, err
	}
	c.g.finish(policy.Connection{Time: time.Now(), Protocol: string(HTTP)}, fault)
	status := http.StatusRequestHeaderFieldsTooLarge
	if fault == errBudget {
		status = http.StatusServiceUnavailable
	}
	c.trackedConn.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	c.trackedConn.Write(reply{status, fault.explain("")}.raw(fault.Why))
	return 0, io.EOF // at which net/http says nothing
}

// Write gives a client that reads slowly idleTime for each write.
func (c *clientConn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Sub(c.wrote) > idleTimeout/4 {
		c.wrote = now
		c.trackedConn.SetWriteDeadline(now.Add(idleTimeout))
	}
	return c.trackedConn.Write(p)
}

// Close closes the connection and its done channel.
func (c *clientConn) Close() error {
	err := c.trackedConn.Close()
	c.ended.Do(func() {
		c.headMeter.close()
		close(c.done)
	})
	return err
}

// CloseWrite tells the client that nothing more comes.
func (c *clientConn) CloseWrite() error { return closeWrite(c.trackedConn) }

func (c *clientConn) unwrap() net.Conn { return c.trackedConn }
