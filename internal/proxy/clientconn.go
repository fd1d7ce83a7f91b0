package proxy

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	entered bool  // Close waits for the server's goroutine
	handled bool  // a request was read and its response is not written yet
	unread  error // a *Refusal: one could not be read

	headMeter headMeter
	body      bodyMeter
	inTrailer bool
	beyond    bool        // a byte behind the request was given
	rest      []byte      // received, and not given yet
	failed    error       // of every Read from now on
	badBody   atomic.Bool // failed is because of a trailer
	wrote     time.Time   // when the deadline of writes was set
}

func newClient(g *Proxy, c *trackedConn, in *Tunnel) *clientConn {
	return &clientConn{trackedConn: c, g: g, tunnel: in, done: make(chan struct{}), headMeter: headMeter{budget: &g.headerBudget, most: maxRequestFields, bytes: maxHeadBytes + 4<<10}} // net/http answers for fewer
}

// Read gives net/http what take says. What else was received is given later.
func (c *clientConn) Read(p []byte) (n int, err error) {
	if c.failed != nil {
		return 0, c.failed
	}
	held := len(c.rest) > 0
	if held {
		n = copy(p, c.rest)
	} else {
		n, err = c.trackedConn.Read(p)
	}
	if n == 0 && err == io.EOF && len(p) == 1 && c.headMeter.stopped() && c.body.left == 0 && !c.body.chunked {
		// net/http reads a byte beside the handler of a request that is whole, and gives up what has ended (see waitGone).
		if failed := c.g.waitGone(c.trackedConn); failed != nil {
			return 0, failed
		}
	}
	if n == 0 {
		return 0, err
	}
	used, fault := c.take(p[:n])
	switch {
	case fault != nil:
		c.fail(fault)
		return 0, c.failed
	case held && used == len(c.rest):
		c.rest = nil
	case held:
		c.rest = c.rest[used:]
	case used < n:
		c.rest, err = bytes.Clone(p[used:n]), nil // an error comes again
	}
	return used, err
}

// take returns how many bytes net/http may have: to a header's end, and then to that of the body and the trailer. Fields behind
// these would be in its buffer before they are counted. Of what is behind a request it gets one byte, which it waits for to know that the
// client is there.
func (c *clientConn) take(b []byte) (n int, fault *Refusal) {
	for n < len(b) {
		part, whole, fault := c.headMeter.count(b[n:])
		if fault != nil {
			return 0, fault
		}
		if whole {
			c.headMeter.stop()
			c.body, c.inTrailer, c.beyond = bodyMeter{}, false, false
		}
		if part == 0 {
			if part, c.inTrailer = c.body.take(b[n:]); c.inTrailer {
				c.headMeter.trailer()
			}
		}
		if part == 0 {
			break
		}
		n += part
	}
	switch {
	case n > 0:
		return n, nil
	case c.beyond: // net/http does not take a trailer's end for one
		c.inTrailer = true
		return 0, errFields
	}
	c.beyond = true
	return 1, nil
}

// errTrailer is errBody.
var errTrailer = fmt.Errorf("%w: its trailer has more than 1 KiB, or does not end as one", errBody)

// fail answers a request whose header is refused. One whose trailer is has been judged, and its body cannot be read to the end.
func (c *clientConn) fail(fault *Refusal) {
	if c.inTrailer {
		c.failed = errTrailer
		c.badBody.Store(true)
		return
	}
	c.failed = io.EOF // at which net/http says nothing
	c.g.finish(policy.Connection{Time: time.Now(), Protocol: string(HTTP)}, fault)
	status := http.StatusRequestHeaderFieldsTooLarge
	if fault == errBudget {
		status = http.StatusServiceUnavailable
	}
	c.trackedConn.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	c.trackedConn.Write(reply{status, fault.explain("")}.raw(fault.Why))
}

// lookEvery is how often waitGone looks for a client.
const lookEvery = time.Second

// refuseUnread answers a request that net/http cannot read, in the place of its answer, which looks like the server's.
func (c *clientConn) refuseUnread(answer []byte) (int, error) {
	_, status, _ := strings.Cut(string(answer), " ")
	code, _ := strconv.Atoi(status[:min(len(status), 3)])
	_, said, _ := strings.Cut(status, "\r\n\r\n")
	r := &Refusal{Why: "it begins like a request of HTTP/1.1 and is none: " + cmp.Or(said, status[:strings.IndexByte(status+"\r", '\r')]), Instead: "a whole request with a method, a target, HTTP/1.1 and a Host; or, by another protocol, to begin with other words"}
	if c.tunnel != nil {
		r.Host, r.Port, r.Rule = c.tunnel.Target.Host.String(), c.tunnel.Target.Port, c.tunnel.Decision.Rule
	} else {
		c.g.finish(policy.Connection{Time: time.Now(), Protocol: string(HTTP)}, r)
	}
	c.unread = r
	_, err := c.trackedConn.Write(reply{code, r.explain(r.Host)}.raw(r.Why))
	return len(answer), err
}

// Write gives a client that reads slowly idleTime for each write.
func (c *clientConn) Write(p []byte) (int, error) {
	if !c.handled {
		return c.refuseUnread(p)
	}
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
