package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
)

// ErrClosed is returned when the proxy has ended.
var ErrClosed = errors.New("proxy is closed")

// A tracker is what a proxy has open and running, so that it can be ended.
type tracker struct {
	mu      sync.Mutex
	closed  bool
	open    map[io.Closer]Target // what end closes, and where it leads
	clients int                  // connections of clients that are open
	running sync.WaitGroup
}

// spawn runs f in a goroutine that is waited for; false: the proxy has ended.
func (l *tracker) spawn(f func()) bool {
	if !l.enter() {
		return false
	}
	go func() {
		defer l.leave()
		f()
	}()
	return true
}

// enter is spawn for a goroutine that is there already; leave ends it.
func (l *tracker) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.running.Add(1)
	}
	return !l.closed
}

func (l *tracker) leave() { l.running.Done() }

// track has c closed with the proxy, and with a target that is no longer allowed; false: the proxy has ended.
func (l *tracker) track(c io.Closer, t Target) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.open[c] = t
	}
	return !l.closed
}

func (l *tracker) untrack(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// admit tracks a client's connection; full: most are open already.
func (l *tracker) admit(conn net.Conn, most int) (c *trackedConn, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.clients >= most {
		return nil, !l.closed
	}
	c = &trackedConn{Conn: conn, tracker: l, client: true}
	l.clients++
	l.open[c] = Target{}
	return c, false
}

// trackConn tracks another connection, which is closed where the proxy has ended.
func (l *tracker) trackConn(conn net.Conn, t Target) (*trackedConn, error) {
	c := &trackedConn{Conn: conn, tracker: l}
	if !l.track(c, t) {
		conn.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// closeAll closes what is open. first is false if that was done before.
func (l *tracker) closeAll() (first bool) {
	l.mu.Lock()
	first = !l.closed
	l.closed = true
	open := l.open
	l.open = map[io.Closer]Target{}
	l.mu.Unlock()
	for c := range open {
		go c.Close() // each by itself: one that does not return leaves no other open
	}
	return first
}

// A trackedConn connection is closed with the proxy.
type trackedConn struct {
	net.Conn
	tracker *tracker
	client  bool // counts among the clients' connections
	once    sync.Once
}

func (c *trackedConn) Close() error {
	c.once.Do(func() {
		c.tracker.mu.Lock()
		defer c.tracker.mu.Unlock()
		delete(c.tracker.open, c)
		if c.client {
			c.tracker.clients--
		}
	})
	return c.Conn.Close()
}

func (c *trackedConn) unwrap() net.Conn { return c.Conn }

// unwrapConn is the connection below what this package has wrapped around it.
func unwrapConn(c net.Conn) net.Conn {
	for {
		w, ok := c.(interface{ unwrap() net.Conn })
		if !ok {
			return c
		}
		c = w.unwrap()
	}
}
