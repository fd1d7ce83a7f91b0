package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A stuckConn is one of a policy's Dial that heeds nothing: neither Close nor a deadline.
type stuckConn struct {
	net.Conn
	until chan struct{}
	begun chan<- struct{}
	wrote chan<- struct{}
}

func (c *stuckConn) Read([]byte) (int, error) {
	c.begun <- struct{}{}
	<-c.until
	return 0, io.EOF
}

// Write says that a request is under way.
func (c *stuckConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.wrote <- struct{}{}
	return n, err
}

func (c *stuckConn) Close() error { <-c.until; return nil }

func (c *stuckConn) SetReadDeadline(time.Time) error { return nil }

// TestCloseReturnsWhateverIsStuck below it, ends the connections that are not, and says so.
func TestCloseReturnsWhateverIsStuck(t *testing.T) {
	for _, way := range []string{"a tunnel", "a request"} {
		until, begun, wrote := make(chan struct{}), make(chan struct{}, 10), make(chan struct{}, 10)
		defer close(until)
		w := newWorld(t, Config{}, "example.com", "good.com")
		w.echo("good.com", 9)
		w.put("example.com", 80, "nowhere")
		well := w.g.cfg.Dial
		w.g.cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Port() == 80 {
				a, b := net.Pipe()
				go io.Copy(io.Discard, b)
				return &stuckConn{a, until, begun, wrote}, nil
			}
			return well(ctx, to)
		}
		good, in := w.connect("good.com:9")
		if way == "a tunnel" {
			w.connect("example.com:80")
		} else {
			w.raw("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
			<-wrote
		}
		<-begun
		w.g.closeTimeout = 50 * time.Millisecond
		w.g.Close() // or the test does not end
		if s := w.g.Summary(); !s.Stuck {
			t.Errorf("%s: not said: %+v", way, s)
		}
		if _, err := in.ReadByte(); err == nil {
			t.Errorf("%s: another connection is not ended", way)
		}
		good.Close()
	}
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(http.ResponseWriter, *http.Request) {})
	w.fetch("GET")
	w.g.Close()
	if w.g.Summary().Stuck {
		t.Error("said of one that is not")
	}
}

// TestNoNumberOfDenialsHidesAnother: of each kind one is kept, with a count, and the last in any case.
func TestNoNumberOfDenialsHidesAnother(t *testing.T) {
	j := &eventLog{kinds: map[denialKey]int{}}
	deny := func(host string) { j.add(policy.Connection{Protocol: "connect", Host: host, Port: 443, Reason: "no"}) }
	for range 1000 {
		deny("first.example")
	}
	deny("second.example")
	for i := range 500 {
		deny(fmt.Sprintf("h%d.example", i))
	}
	deny("wanted.example")
	s := j.summary()
	n := s.Beyond
	for _, v := range s.Violations {
		n += v.Count
	}
	last := len(s.Violations) - 1
	if s.Violations[0].Count != 1000 || s.Violations[1].Host != "second.example" || s.Violations[last].Host != "wanted.example" || last != maxDenialKinds-1 || n != 1502 || s.Denied != n {
		t.Errorf("%d kinds, %d of %d denials, the last %+v", last+1, n, s.Denied, s.Violations[last])
	}
	deny("again.example")
	deny("wanted.example")
	if s := j.summary(); s.Violations[last].Host != "wanted.example" || s.Violations[last].Count != 1 || len(s.Violations) != maxDenialKinds {
		t.Errorf("%+v", s.Violations[last])
	}
}

// firsts are the events of denials.
func firsts(all []Denied) (events []policy.Connection) {
	for _, d := range all {
		events = append(events, d.Connection)
	}
	return events
}
