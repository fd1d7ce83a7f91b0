package capture

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// A conn is a connection that a tool asks for. Its SYN is answered by the first
// Read or Write, which the gate comes to when it has allowed the target and
// dialled it. One that is closed before that is refused: the tool sees
// ECONNREFUSED, as from a port that nobody listens at.
type conn struct {
	from, to netip.AddrPort // the tool's end, and what it has dialled
	buffers  int            // bytes each way

	mu      sync.Mutex
	request *tcp.ForwarderRequest // nil: answered, one way or the other
	ep      tcpip.Endpoint
	queue   waiter.Queue
	open    *gonet.TCPConn
	err     error // why there is none
	readBy  time.Time
	writeBy time.Time
}

// tcp answers the SYN, and returns when the tool has heard of it.
func (c *conn) tcp() (*gonet.TCPConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == nil {
		return c.open, c.err
	}
	ep, failed := c.request.CreateEndpoint(&c.queue)
	c.request.Complete(failed != nil)
	c.request = nil
	if failed != nil {
		c.err = &net.OpError{Op: "accept", Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: fmt.Errorf("%s", failed)}
		return nil, c.err
	}
	ep.SocketOptions().SetReceiveBufferSize(int64(c.buffers), true)
	ep.SocketOptions().SetSendBufferSize(int64(c.buffers), true)
	c.ep, c.open = ep, gonet.NewTCPConn(&c.queue, ep)
	if err := c.open.SetReadDeadline(c.readBy); err != nil {
		return nil, err
	}
	return c.open, c.open.SetWriteDeadline(c.writeBy)
}

// Read answers the SYN if nothing has, and reads.
func (c *conn) Read(b []byte) (int, error) {
	t, err := c.tcp()
	if err != nil {
		return 0, err
	}
	return t.Read(b)
}

// Write answers the SYN if nothing has, and writes.
func (c *conn) Write(b []byte) (int, error) {
	t, err := c.tcp()
	if err != nil {
		return 0, err
	}
	return t.Write(b)
}

// chunk is what is moved at one time by WriteTo and ReadFrom: with a device of 64
// KiB, some packets at once.
const chunk = 256 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// WriteTo copies what the tool sends, for io.Copy.
func (c *conn) WriteTo(w io.Writer) (int64, error) {
	b := chunks.Get().(*[chunk]byte)
	defer chunks.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{c}, b[:])
}

// ReadFrom copies what the tool is to get, for io.Copy.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	b := chunks.Get().(*[chunk]byte)
	defer chunks.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{r}, b[:])
}

// Close ends the connection, or refuses it.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.request != nil:
		c.request.Complete(true)
		c.request = nil
		c.err = net.ErrClosed
	case c.open != nil:
		return c.open.Close()
	}
	return nil
}

// CloseWrite tells the tool that nothing more comes.
func (c *conn) CloseWrite() error {
	t, err := c.tcp()
	if err != nil {
		return err
	}
	return t.CloseWrite()
}

// LocalAddr is what the tool has dialled.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// RemoteAddr is the tool's end.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// SetDeadline bounds what is read and written from then on. Answering the SYN has
// a bound of its own.
func (c *conn) SetDeadline(t time.Time) error { return c.deadline(t, true, true) }

// SetReadDeadline bounds what is read.
func (c *conn) SetReadDeadline(t time.Time) error { return c.deadline(t, true, false) }

// SetWriteDeadline bounds what is written.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.deadline(t, false, true) }

func (c *conn) deadline(t time.Time, read, write bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if read {
		c.readBy = t
		if c.open != nil {
			return c.open.SetReadDeadline(t)
		}
	}
	if write {
		c.writeBy = t
		if c.open != nil {
			return c.open.SetWriteDeadline(t)
		}
	}
	return c.err
}

// linger waits, for a time, until the tool has what was written before Close: the
// memory is held until then, and so is the connection's place. What is left after
// that is thrown away.
func (c *conn) linger(most time.Duration, end <-chan struct{}) {
	c.mu.Lock()
	ep := c.ep
	c.mu.Unlock()
	if ep == nil {
		return
	}
	gone, told := waiter.NewChannelEntry(waiter.EventHUp | waiter.EventErr)
	c.queue.EventRegister(&gone)
	defer c.queue.EventUnregister(&gone)
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		switch tcp.EndpointState(ep.State()) {
		case tcp.StateClose, tcp.StateError, tcp.StateTimeWait:
			return
		}
		select {
		case <-told:
		case <-timer.C:
			ep.Abort()
			return
		case <-end:
			ep.Abort()
			return
		}
	}
}
