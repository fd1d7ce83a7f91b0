package capture

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// A conn is a connection that a tool asks for. Its SYN is answered by the first
// Read or Write, which the gate comes to when it has allowed the target and
// dialled it. One that is closed before that is refused: the tool sees
// ECONNREFUSED, as from a port without a listener.
//
// The stack's own connections (adapters/gonet) are not used: their errors are
// words, and not those of os and syscall that a proxy asks about.
type conn struct {
	from, to netip.AddrPort // the tool's end, and what it has dialled
	buffers  int            // bytes each way

	answering sync.Mutex // held while the SYN is answered, for which Close does not wait
	mu        sync.Mutex
	request   *tcp.ForwarderRequest // nil: answered, one way or the other, or being answered
	queue     waiter.Queue
	ep        tcpip.Endpoint // nil: there is none, because of err
	err       error

	ended atomic.Bool // by Close

	readBy, writeBy deadline
}

// endpoint answers the SYN, if nothing has, and returns when the tool has heard
// of it, or has not answered for two minutes.
func (c *conn) endpoint() (tcpip.Endpoint, error) {
	c.answering.Lock()
	defer c.answering.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	request := c.request
	if request == nil {
		return c.ep, c.err
	}
	c.request = nil
	c.mu.Unlock()
	ep, failed := request.CreateEndpoint(&c.queue)
	request.Complete(failed != nil)
	c.mu.Lock()
	switch {
	case failed != nil:
		c.err = c.fail("accept", errno(failed))
		return nil, c.err
	case c.ended.Load():
		ep.Close()
		c.err = c.fail("accept", net.ErrClosed)
		return nil, c.err
	}
	ep.SocketOptions().SetReceiveBufferSize(int64(c.buffers), true)
	ep.SocketOptions().SetSendBufferSize(int64(c.buffers), true)
	c.ep = ep
	return ep, nil
}

// wait returns when something of a mask can be done, or the deadline has passed.
func (c *conn) wait(ep tcpip.Endpoint, mask waiter.EventMask, by *deadline) error {
	mask |= waiter.EventHUp | waiter.EventErr
	ready, told := waiter.NewChannelEntry(mask)
	c.queue.EventRegister(&ready)
	defer c.queue.EventUnregister(&ready)
	for ep.Readiness(mask) == 0 {
		select {
		case <-told:
		case <-by.wait():
			return os.ErrDeadlineExceeded
		}
	}
	return nil
}

// Read answers the SYN if nothing has, and reads.
func (c *conn) Read(b []byte) (int, error) {
	ep, err := c.endpoint()
	if err != nil || len(b) == 0 {
		return 0, err
	}
	for {
		if isClosed(c.readBy.wait()) {
			return 0, c.fail("read", os.ErrDeadlineExceeded)
		}
		into := tcpip.SliceWriter(b)
		r, failed := ep.Read(&into, tcpip.ReadOptions{})
		if failed == nil {
			return r.Count, nil
		}
		switch err := errno(failed); {
		case c.ended.Load():
			return 0, c.fail("read", net.ErrClosed)
		case err == io.EOF:
			return 0, err
		case err != errBlocked:
			return 0, c.fail("read", err)
		}
		if err := c.wait(ep, waiter.ReadableEvents, &c.readBy); err != nil {
			return 0, c.fail("read", err)
		}
	}
}

// WaitRead returns when Read would not wait, so that its caller needs no buffer while
// there is nothing to read.
func (c *conn) WaitRead() error {
	ep, err := c.endpoint()
	if err != nil {
		return err
	}
	if err := c.wait(ep, waiter.ReadableEvents, &c.readBy); err != nil {
		return c.fail("read", err)
	}
	return nil
}

// WaitGone returns nil when the tool's side has reset the connection.
func (c *conn) WaitGone() error {
	ep, err := c.endpoint()
	if err != nil {
		return err
	}
	return c.wait(ep, 0, &c.readBy)
}

// Write answers the SYN if nothing has, and writes.
func (c *conn) Write(b []byte) (int, error) {
	ep, err := c.endpoint()
	if err != nil {
		return 0, err
	}
	done := 0
	for done < len(b) {
		if isClosed(c.writeBy.wait()) {
			return done, c.fail("write", os.ErrDeadlineExceeded)
		}
		n, failed := ep.Write(bytes.NewReader(b[done:]), tcpip.WriteOptions{})
		done += int(n)
		if failed == nil {
			continue
		}
		err := errno(failed)
		if err == errBlocked {
			err = c.wait(ep, waiter.WritableEvents, &c.writeBy)
		}
		if err != nil {
			return done, c.fail("write", err)
		}
	}
	return done, nil
}

// Close ends the connection, or refuses it. One whose SYN is being answered ends when the tool has heard of that.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended.Store(true)
	switch {
	case c.request != nil:
		c.request.Complete(true)
		c.request = nil
		c.err = c.fail("accept", net.ErrClosed)
	case c.ep != nil:
		c.ep.Close()
	}
	return nil
}

// CloseWrite tells the tool that nothing more comes.
func (c *conn) CloseWrite() error {
	ep, err := c.endpoint()
	if err != nil {
		return err
	}
	if failed := ep.Shutdown(tcpip.ShutdownWrite); failed != nil {
		return c.fail("close", errno(failed))
	}
	return nil
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

// LocalAddr is what the tool has dialled.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.to) }

// RemoteAddr is the tool's end.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }

// SetDeadline bounds what is read and written. Answering the SYN has a bound of
// its own.
func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline bounds what is read.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline bounds what is written.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

func (c *conn) fail(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

var errBlocked = errors.New("capture: nothing can be done yet")

// errno is what the kernel's sockets would have said.
func errno(e tcpip.Error) error {
	switch e.(type) {
	case *tcpip.ErrWouldBlock:
		return errBlocked
	case *tcpip.ErrClosedForReceive:
		return io.EOF
	case *tcpip.ErrClosedForSend:
		return syscall.EPIPE
	case *tcpip.ErrConnectionReset:
		return syscall.ECONNRESET
	case *tcpip.ErrConnectionAborted, *tcpip.ErrAborted:
		return syscall.ECONNABORTED
	case *tcpip.ErrTimeout:
		return syscall.ETIMEDOUT
	case *tcpip.ErrNotConnected:
		return syscall.ENOTCONN
	case *tcpip.ErrInvalidEndpointState:
		return net.ErrClosed
	}
	return errors.New(e.String())
}
