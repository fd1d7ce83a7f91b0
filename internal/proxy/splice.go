package proxy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	bufferSize   = 64 << 10
	burstSize    = 1 << 20                // what the kernel moves between two looks at the limits
	burstTimeout = 250 * time.Millisecond // after which a burst that has dried up gives its pipe back
)

var (
	errIdle   = errors.New("nothing was sent in either direction for " + idleTimeout.String())
	errHalted = errors.New("halted")
)

// buffers are only held while there are bytes to move, so that an idle
// connection has none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// A spliced is a client's connection and the one that was made for it.
type spliced struct {
	g              *Proxy
	client, server net.Conn
	up, down       direction
	last           atomic.Int64 // when a byte last moved, in nanoseconds
	downEnd        chan error   // the result of down.run, which listen starts

	ctx    context.Context // of what waits for its turn; its end cuts
	cancel context.CancelFunc
	unhook func() bool
}

// A direction is one direction of a pair.
type direction struct {
	p        *spliced
	dst, src net.Conn
	total    *atomic.Int64 // of the proxy
	passed   int64
	halted   atomic.Bool // a deadline in the past is meant
	deadline time.Time   // of src, as it was set last
}

func (g *Proxy) newSpliced(ctx context.Context, client, server net.Conn) *spliced {
	p := &spliced{g: g, client: client, server: server, downEnd: make(chan error, 1)}
	p.up = direction{p: p, src: client, dst: server, total: &g.meter.sent}
	p.down = direction{p: p, src: server, dst: client, total: &g.meter.received}
	p.last.Store(time.Now().UnixNano())
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.unhook = context.AfterFunc(ctx, p.cut)
	return p
}

// cut ends both connections at once.
func (p *spliced) cut() {
	p.cancel()
	p.client.Close()
	p.server.Close()
}

// stop lets the pair outlive the context that it was made with.
func (p *spliced) stop() {
	p.unhook()
	p.cancel()
}

// listen passes what the server says, which may be the first to speak.
func (p *spliced) listen() {
	go func() { p.downEnd <- p.down.run() }()
}

// finish passes the bytes that the client has sent already and all that follow,
// until both directions have ended. When one fails both do.
func (p *spliced) finish(head []byte) error {
	err := p.up.send(head)
	if err == nil {
		err = p.up.run()
	}
	if err != nil {
		return p.fail(err)
	}
	return <-p.downEnd
}

// fail ends both directions because of one's error. That a limit was reached goes before it.
func (p *spliced) fail(up error) error {
	p.cut()
	if down := <-p.downEnd; errors.Is(down, errBytes) {
		return down
	}
	return up
}

// splice carries bytes between two connections and closes them.
func (g *Proxy) splice(ctx context.Context, client, server net.Conn, head []byte) (sent, received int64, err error) {
	defer client.Close()
	defer server.Close()
	p := g.newSpliced(ctx, client, server)
	defer p.stop()
	p.listen()
	err = p.finish(head)
	return p.up.passed, p.down.passed, err
}

// run moves bytes until src ends, which it tells dst, or something fails, which
// ends both connections.
func (f *direction) run() error {
	err := f.move()
	if err == nil {
		err = closeWrite(f.dst)
	}
	if err != nil && !errors.Is(err, errHalted) {
		f.p.cut()
	}
	return err
}

// move is the loop. A read that fills the buffer is taken as a sign of more: on
// TCP the kernel then moves the next bytes from one socket to the other.
func (f *direction) move() error {
	from, to := tcpConn(f.src), tcpConn(f.dst)
	read := reader(f.src)
	for {
		if err := f.await(); err != nil {
			return err
		}
		if f.p.g.meter.reached() {
			return errBytes
		}
		b, n, err := read(f.p.g.meter.chunk(bufferSize))
		if n > 0 {
			err = cmp.Or(f.send(b[:n]), err)
		}
		if b != nil {
			buffers.Put(b)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && f.alive():
			continue
		default:
			return f.why(err)
		}
		for n == bufferSize && from != nil && to != nil {
			moved, err := f.burst(from, to)
			if err != nil {
				return f.why(err)
			}
			if moved < burstSize {
				break
			}
		}
	}
}

// send writes bytes under the proxy's limits.
func (f *direction) send(b []byte) error {
	for len(b) > 0 {
		n, err := f.p.g.meter.reserve(f.p.ctx, int64(len(b)))
		if err != nil {
			return err
		}
		w := 0
		if err = f.dst.SetWriteDeadline(f.p.now().Add(idleTimeout)); err == nil {
			w, err = f.dst.Write(b[:n])
		}
		f.moved(n, int64(w))
		if err != nil {
			return err
		}
		b = b[w:]
	}
	return nil
}

// burst has the kernel move up to burstSize bytes. The error of a burst that
// dried up is nil.
func (f *direction) burst(from, to *net.TCPConn) (int64, error) {
	most := f.p.g.meter.share(burstSize)
	if most < bufferSize {
		return 0, nil
	}
	room, err := f.p.g.meter.reserve(f.p.ctx, most)
	if err != nil {
		return 0, err
	}
	now := f.p.now()
	to.SetWriteDeadline(now.Add(idleTimeout))
	f.deadline = now.Add(burstTimeout)
	from.SetReadDeadline(f.deadline)
	n, err := to.ReadFrom(&io.LimitedReader{R: from, N: room})
	f.moved(room, n)
	if errors.Is(err, os.ErrDeadlineExceeded) && !f.halted.Load() {
		err = nil
	}
	return n, err
}

// moved counts the bytes that have passed of those that had room.
func (f *direction) moved(room, n int64) {
	f.p.g.meter.settle(room, n, f.total)
	f.passed += n
	f.p.now()
}

// now is the time, which is noted as that of a byte.
func (p *spliced) now() time.Time {
	t := time.Now()
	p.last.Store(t.UnixNano())
	return t
}

// await sets the deadline of the next read, when that of the last is not far
// enough away.
func (f *direction) await() error {
	if f.halted.Load() {
		return errHalted
	}
	now := time.Now()
	if f.deadline.Sub(now) < idleTimeout*3/4 {
		f.deadline = now.Add(idleTimeout)
		if err := f.src.SetReadDeadline(f.deadline); err != nil {
			return err
		}
		if f.halted.Load() { // meanwhile: the deadline in the past was overwritten
			return errHalted
		}
	}
	return nil
}

// alive reports whether a read that timed out may go on, because bytes moved in
// the other direction.
func (f *direction) alive() bool {
	f.deadline = time.Time{}
	return !f.halted.Load() && time.Since(time.Unix(0, f.p.last.Load())) < idleTimeout
}

func (f *direction) why(err error) error {
	switch {
	case f.halted.Load():
		return errHalted
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errIdle
	case f.p.g.ctx.Err() != nil:
		return ErrClosed
	}
	return err
}

func closeWrite(c net.Conn) error {
	for {
		if w, ok := c.(interface{ CloseWrite() error }); ok {
			if err := w.CloseWrite(); err != nil && !errors.Is(err, syscall.ENOTCONN) {
				return err
			}
			return nil
		}
		w, ok := c.(interface{ unwrap() net.Conn })
		if !ok {
			return c.Close()
		}
		c = w.unwrap()
	}
}

// tcpConn returns the TCP connection that a connection is, or nil: a connection with
// bytes to replay cannot be spliced.
func tcpConn(c net.Conn) *net.TCPConn {
	t, _ := unwrapConn(c).(*net.TCPConn)
	return t
}
