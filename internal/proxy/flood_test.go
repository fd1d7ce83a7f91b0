package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A hand is a listener whose connections a test hands it, ends of pipes: their waiting is
// seen by a bubble's clock.
type hand chan net.Conn

func (h hand) Accept() (net.Conn, error) {
	if c := <-h; c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (h hand) Close() error   { defer func() { _ = recover() }(); close(h); return nil }
func (h hand) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlownessHasAnEnd in every phase of a connection, though a byte comes now and
// then in those that have a beginning and an end.
func TestSlownessHasAnEnd(t *testing.T) {
	const drip = 7 * time.Second
	for name, c := range map[string]struct {
		protocol Protocol
		first    string // is said at once
		then     string // is said a byte at a time, again and again
		want     time.Duration
	}{
		"a client that says nothing":          {HTTP, "", "", headerTimeout},
		"a header, byte by byte":              {HTTP, "GET http://good.com/ HTTP/1.1\r\nX: ", "x", headerTimeout},
		"a first line, byte by byte":          {HTTP, "GET ", "x", headerTimeout},
		"a connection that is kept":           {HTTP, "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\n", "", keepAliveTimeout},
		"the next header, byte by byte":       {HTTP, "GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n\r\nGET ", "x", headerTimeout},
		"a SOCKS client that says nothing":    {SOCKS, "", "", headerTimeout},
		"a SOCKS handshake, byte by byte":     {SOCKS, "\x05\xff", "\x00", headerTimeout},
		"a tunnel's first line, byte by byte": {HTTP, "CONNECT good.com:9 HTTP/1.1\r\n\r\nGET ", "x", headerTimeout},
		"a tunnel's hello, byte by byte":      {HTTP, "CONNECT good.com:9 HTTP/1.1\r\n\r\n\x16\x03\x01\x40\x00\x01\x00\x10", "\x01", headerTimeout},
		"a tunnel whose client waits":         {HTTP, "CONNECT good.com:9 HTTP/1.1\r\n\r\n" + string(records(helloTo("good.com"), 1<<14)), "", idleTimeout},
		"a tunnel in which nothing is said":   {HTTP, "CONNECT good.com:9 HTTP/1.1\r\n\r\n\x00", "", idleTimeout},
		"a tunnel that was never used":        {SOCKS, named("good.com", 9), "", idleTimeout},
		"a body that does not come":           {HTTP, "POST http://good.com:9/ HTTP/1.1\r\nHost: good.com:9\r\nContent-Length: 9\r\n\r\n", "", idleTimeout},
		"an answer that does not come":        {HTTP, "GET http://good.com:9/ HTTP/1.1\r\nHost: good.com:9\r\n\r\n", "", idleTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := New(Config{
					Network: policy.Network{
						Hosts:  []string{"good.com"},
						Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{public}, nil },
					},
					Route: remote,
					Dial: func(context.Context, netip.AddrPort) (net.Conn, error) {
						a, b := net.Pipe()
						go io.Copy(io.Discard, b) // a server that says nothing
						return a, nil
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				l := make(hand)
				go g.Serve(l, c.protocol)
				tool, gate := net.Pipe()
				l <- gate
				began := time.Now()
				ended := make(chan time.Duration, 1)
				go func() {
					io.Copy(io.Discard, tool)
					ended <- time.Since(began)
				}()
				io.WriteString(tool, c.first)
				said := make(chan struct{})
				go func() {
					defer close(said)
					for c.then != "" && time.Since(began) < time.Hour {
						time.Sleep(drip)
						if _, err := io.WriteString(tool, c.then); err != nil {
							return
						}
					}
				}()
				select {
				case d := <-ended:
					if d < c.want || d > 2*c.want+drip { // a look at both directions is up to as late again
						t.Errorf("it has ended after %v, and not %v", d, c.want)
					}
				case <-time.After(2 * time.Hour):
					t.Error("it has not ended")
				}
				tool.Close()
				<-said
				g.Close()
			})
		})
	}
}

// TestRequestsInAPipelineAreCarriedOneByOne, however many there are, and take the client no
// memory of the proxy's.
func TestRequestsInAPipelineAreCarriedOneByOne(t *testing.T) {
	kerneltest.Long(t)
	var open, highest, served, noted atomic.Int64
	// The events are counted and not kept: this test's own list of them would be what grows.
	w := newWorld(t, Config{Network: policy.Network{Observe: func(policy.Connection) { noted.Add(1) }}}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		highest.Store(max(highest.Load(), open.Add(1)))
		defer open.Add(-1)
		served.Add(1)
		fmt.Fprint(rw, strings.Repeat("x", 1000))
	})
	const text, most = "GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n", 400_000
	c, r := w.raw("")
	before := heap()
	wrote := make(chan int, 1)
	c.SetWriteDeadline(time.Now().Add(time.Second)) // until all the buffers are full, whatever they take
	go func() { wrote <- each(c, most*len(text), bytesOf(strings.Repeat(text, 20))) }()
	n := <-wrote / len(text)
	if grown := heap() - before; grown > 4<<20 {
		t.Errorf("%d requests have cost %d bytes", n, grown)
	}
	if h := highest.Load(); h != 1 {
		t.Errorf("%d requests of one connection are under way", h)
	}
	if code, _ := answerOf(r); code != 200 {
		t.Errorf("the first: %d", code)
	}
	c.Close()
	if w.ended(); noted.Load() > most {
		t.Errorf("%d events", noted.Load())
	}
}

// TestBodiesInCrumbsAreRefused (CVE-2023-39326 and its like): what a client sends is for
// the most part about chunks, or comes after them.
func TestBodiesInCrumbsAreRefused(t *testing.T) {
	for name, more := range map[string]func(int) string{
		"extensions":              bytesOf("1;" + strings.Repeat("x", 1000) + "\r\ny\r\n"),
		"one long extension":      bytesOf("1;" + strings.Repeat("x", 100_000)),
		"a size without end":      bytesOf("00000000"),
		"trailers without end":    func(i int) string { return map[bool]string{true: "0\r\n"}[i == 0] + "X: y\r\n" },
		"a trailer's line":        func(i int) string { return map[bool]string{true: "0\r\nX: "}[i == 0] + "yyyyyyyy" },
		"a byte in each, and air": bytesOf("1" + strings.Repeat(" ", 500) + "\r\ny\r\n"),
	} {
		var got atomic.Int64
		w := newWorld(t, Config{}, "good.com")
		over := make(chan error, 1)
		w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			got.Store(n)
			over <- err
		})
		c, r := w.raw("POST http://good.com/ HTTP/1.1\r\nHost: good.com\r\nTransfer-Encoding: chunked\r\n\r\n")
		before := heap()
		const enough = 64 << 20
		if n := each(c, enough, more); n >= enough {
			t.Errorf("%s: %d bytes are taken in, %d passed on", name, n, got.Load())
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("%s: %d bytes more", name, grown)
		}
		if code, _ := answerOf(bufio.NewReader(r)); code == 200 {
			t.Errorf("%s: %d", name, code)
		}
		c.Close()
		w.g.Close()
		select {
		case err := <-over:
			if err == nil {
				t.Errorf("%s: the server has a whole body", name)
			}
		default: // it was never asked
		}
	}
}
