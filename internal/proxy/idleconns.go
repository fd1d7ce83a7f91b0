package proxy

import (
	"slices"
	"sync"
	"time"
)

const (
	maxIdleConns = 128 // connections to servers that are kept
	idleWait     = 30 * time.Second
)

// idleConns are connections that wait for another request, the one that has waited longest first. No goroutine
// reads them: take looks at a connection before it is used again.
type idleConns struct {
	mu     sync.Mutex
	conns  []*originConn
	closed bool
}

// take returns the connection to a host that has waited for the shortest time and on which nothing has
// come since; nil: there is none. It closes the others that it finds.
func (p *idleConns) take(host string) *originConn {
	for {
		c := p.pop(host)
		if c == nil || c.expiry.Stop() && c.isQuiet() {
			return c
		}
		c.Close()
	}
}

func (p *idleConns) pop(host string) *originConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range slices.Backward(p.conns) {
		if c.host == host {
			p.conns = slices.Delete(p.conns, i, i+1)
			return c
		}
	}
	return nil
}

// put takes a connection in, and closes it after idleWait.
func (p *idleConns) put(c *originConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Close()
		return
	}
	if len(p.conns) == maxIdleConns {
		p.conns[0].Close()
		p.conns = slices.Delete(p.conns, 0, 1)
	}
	c.expiry = time.AfterFunc(idleWait, func() { c.Close() })
	p.conns = append(p.conns, c)
}

// close closes the connections, and later each that is put.
func (p *idleConns) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.expiry.Stop()
		c.Close()
	}
	p.conns, p.closed = nil, true
}
