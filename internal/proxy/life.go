package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
)

// ErrClosed is returned when the gateway has ended.
var ErrClosed = errors.New("gateway is closed")

// A life is what a gateway has open and running, so that it can be ended.
type life struct {
	mu      sync.Mutex
	closed  bool
	open    map[io.Closer]struct{} // what end closes
	clients int                    // connections of clients that are open
	running sync.WaitGroup
}

// spawn runs f in a goroutine that is waited for; false: the gateway has ended.
func (l *life) spawn(f func()) bool {
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
func (l *life) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.running.Add(1)
	}
	return !l.closed
}

func (l *life) leave() { l.running.Done() }

// track has c closed with the gateway; false: that has ended.
func (l *life) track(c io.Closer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.open[c] = struct{}{}
	}
	return !l.closed
}

func (l *life) untrack(c io.Closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.open, c)
}

// admit tracks a client's connection; full: most are open already.
func (l *life) admit(conn net.Conn, most int) (c *tracked, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.clients >= most {
		return nil, !l.closed
	}
	c = &tracked{Conn: conn, of: l, client: true}
	l.clients++
	l.open[c] = struct{}{}
	return c, false
}

// keep tracks another connection, which is closed where the gateway has ended.
func (l *life) keep(conn net.Conn) (*tracked, error) {
	c := &tracked{Conn: conn, of: l}
	if !l.track(c) {
		conn.Close()
		return nil, ErrClosed
	}
	return c, nil
}

// end closes what is open. first is false if that was done before.
func (l *life) end() (first bool) {
	l.mu.Lock()
	first = !l.closed
	l.closed = true
	open := l.open
	l.open = map[io.Closer]struct{}{}
	l.mu.Unlock()
	for c := range open {
		go c.Close() // each by itself: one that does not return leaves no other open
	}
	return first
}

// A tracked connection is closed with the gateway.
type tracked struct {
	net.Conn
	of     *life
	client bool // counts among the clients' connections
	once   sync.Once
}

func (c *tracked) Close() error {
	c.once.Do(func() {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		delete(c.of.open, c)
		if c.client {
			c.of.clients--
		}
	})
	return c.Conn.Close()
}

func (c *tracked) unwrap() net.Conn { return c.Conn }

// bare is the connection below what this package has wrapped around it.
func bare(c net.Conn) net.Conn {
	for {
		w, ok := c.(interface{ unwrap() net.Conn })
		if !ok {
			return c
		}
		c = w.unwrap()
	}
}
