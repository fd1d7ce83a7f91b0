package egress

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A raw client of HTTP/2 writes frames by hand, within TLS that is terminated.
type raw2 struct {
	*http2.Framer
	c    *tls.Conn
	end  func() error // of the pipe: TLS would wait until its last word is read
	e    *hpack.Encoder
	head bytes.Buffer
}

// raw2 shakes hands. The client's end is a pipe: what it does not read the gateway
// cannot write, with no kernel's buffer between.
func (w *secureWorld) raw2() *raw2 {
	w.t.Helper()
	tool, gate := net.Pipe()
	go w.g.Tunnel(w.t.Context(), gate, Target{Host: mustHost(w.t, "example.com"), Port: 443, Protocol: "tcp"})
	c := tls.Client(tool, &tls.Config{ServerName: "example.com", RootCAs: w.trust, NextProtos: []string{"h2"}})
	w.t.Cleanup(func() { tool.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	if err := c.Handshake(); err != nil || c.ConnectionState().NegotiatedProtocol != "h2" {
		w.t.Fatal(err)
	}
	r := &raw2{Framer: http2.NewFramer(c, c), c: c, end: tool.Close}
	r.e = hpack.NewEncoder(&r.head)
	io.WriteString(c, preface)
	r.WriteSettings()
	return r
}

// block is a request's header.
func (r *raw2) block(method, path string, more ...hpack.HeaderField) []byte {
	r.head.Reset()
	for _, f := range append([]hpack.HeaderField{{Name: ":method", Value: method}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "example.com"}, {Name: ":path", Value: path}}, more...) {
		r.e.WriteField(f)
	}
	return bytes.Clone(r.head.Bytes())
}

func (r *raw2) ask(stream uint32, end bool) error {
	return r.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: r.block("GET", "/"), EndStream: end, EndHeaders: true})
}

// wireFrame is a frame as it is on the wire.
func wireFrame(kind http2.FrameType, flags http2.Flags, stream uint32, body ...byte) []byte {
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(body))<<8|uint32(kind)), byte(flags))
	return append(binary.BigEndian.AppendUint32(b, stream), body...)
}

// drain reads what the gateway says until it ends the connection.
func (r *raw2) drain() { io.Copy(io.Discard, r.c) }

// costs fails the test if what f does to a world costs more than some memory and some
// goroutines while it goes on, or if a request by somebody else is not served then.
func (w *secureWorld) costs(t *testing.T, bytes int64, routines int, f func()) {
	t.Helper()
	other := w.inside(true)
	ask := func() {
		t.Helper()
		if code, body := get(t, other, "https://example.com/other"); code != 200 {
			t.Errorf("somebody else's request: %d %s", code, body)
		}
	}
	ask()
	memory, before := heap(), runtime.NumGoroutine()
	f()
	if n := heap() - memory; n > bytes {
		t.Errorf("%d bytes more", n)
	}
	for until := time.Now().Add(20 * time.Second); runtime.NumGoroutine()-before > routines; runtime.Gosched() {
		if time.Now().After(until) {
			t.Errorf("%d goroutines more", runtime.NumGoroutine()-before)
			break
		}
	}
	ask()
}

func quick(rw http.ResponseWriter, r *http.Request) {}

// TestFloodsOfFramesCostNothing: each kind of frame that a client may send at no cost of
// its own, while it reads nothing of what it is answered.
func TestFloodsOfFramesCostNothing(t *testing.T) {
	const frames = 100_000
	for name, flood := range map[string]func(r *raw2) []byte{
		"PING":            func(*raw2) []byte { return wireFrame(http2.FramePing, 0, 0, make([]byte, 8)...) },
		"SETTINGS":        func(*raw2) []byte { return wireFrame(http2.FrameSettings, 0, 0, 0, 3, 0, 0, 0, 100) },
		"PRIORITY":        func(*raw2) []byte { return wireFrame(http2.FramePriority, 0, 1, 0, 0, 0, 3, 0) },
		"an unknown kind": func(*raw2) []byte { return wireFrame(0x77, 0, 0, 1) },
		"empty DATA":      func(r *raw2) []byte { r.ask(1, false); return wireFrame(http2.FrameData, 0, 1) },
		"padded DATA": func(r *raw2) []byte {
			r.ask(1, false)
			return wireFrame(http2.FrameData, http2.FlagDataPadded, 1, 1, 0)
		},
		"WINDOW_UPDATE":      func(*raw2) []byte { return wireFrame(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 1) },
		"RST_STREAM":         func(r *raw2) []byte { r.ask(1, true); return wireFrame(http2.FrameRSTStream, 0, 1, 0, 0, 0, 8) },
		"empty CONTINUATION": func(r *raw2) []byte { r.begin(); return wireFrame(http2.FrameContinuation, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newSecureWorld(t, Config{Credentials: bearer()}, func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/other" {
					<-r.Context().Done()
				}
			})
			r := w.raw2()
			w.costs(t, 5<<20, 60, func() {
				one := flood(r)
				many := bytes.Repeat(one, 100)
				for range frames / 100 {
					if _, err := r.c.Write(many); err != nil {
						return
					}
				}
			})
			r.end()
		})
	}
}

// begin sends a header that has no end.
func (r *raw2) begin() {
	r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.block("GET", "/"), EndStream: true})
}

// TestHeaderWithoutEndIsCutOff in HTTP/2: by frames that continue it, each with fields of
// its own.
func TestHeaderWithoutEndIsCutOff(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, quick)
	r := w.raw2()
	go r.drain()
	w.costs(t, 8<<20, 60, func() {
		r.begin()
		sent := 0
		for ; sent < 64<<20; sent += 16 << 10 {
			r.head.Reset()
			for i := range 15 {
				r.e.WriteField(hpack.HeaderField{Name: fmt.Sprintf("x-%d-%d", sent, i), Value: strings.Repeat("v", 1000)})
			}
			if r.WriteContinuation(1, false, r.head.Bytes()) != nil {
				break
			}
		}
		if sent > 4*mostHeader {
			t.Errorf("%d bytes of a header are taken in", sent)
		}
	})
}

// TestHeaderThatUnpacksToMegabytesIsRefused: one field of a table is named again and
// again, a byte each time.
func TestHeaderThatUnpacksToMegabytesIsRefused(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, quick)
	r := w.raw2()
	w.costs(t, 8<<20, 60, func() {
		b := r.block("GET", "/", hpack.HeaderField{Name: "x", Value: strings.Repeat("v", 4000)})
		b = append(b, bytes.Repeat([]byte{0x80 | 62}, 16<<10-1-len(b))...) // the table's newest: 50 MB in all
		go r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b, EndStream: true, EndHeaders: true})
		r.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		for {
			f, err := r.ReadFrame()
			if f, ok := f.(*http2.MetaHeadersFrame); ok {
				if s := f.PseudoValue("status"); s != "431" {
					t.Errorf("answered %s", s)
				}
				return
			}
			if err != nil {
				return // ended
			}
		}
	})
}

// TestFrameOfAMegabyteIsNotWaitedFor: nine bytes would have the gateway make room for it.
func TestFrameOfAMegabyteIsNotWaitedFor(t *testing.T) {
	const conns = mostTwo / 2
	w := newSecureWorld(t, Config{Credentials: bearer()}, quick)
	var all []*raw2
	w.costs(t, conns*200<<10, 20*conns, func() {
		for range conns {
			r := w.raw2()
			all = append(all, r)
			r.c.Write([]byte{0x0f, 0xff, 0xff, byte(http2.FrameData), 0, 0, 0, 0, 1})
			for {
				f, err := r.ReadFrame()
				if f, ok := f.(*http2.GoAwayFrame); ok && f.ErrCode == http2.ErrCodeFrameSize {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	for _, r := range all {
		r.end()
	}
}

// TestStreamsAtOneTimeAreBounded whatever a client makes of the settings.
func TestStreamsAtOneTimeAreBounded(t *testing.T) {
	var open, highest atomic.Int64
	release := make(chan struct{})
	w := newSecureWorld(t, Config{Credentials: bearer()}, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/other" {
			return
		}
		defer open.Add(-1)
		for n := open.Add(1); ; {
			if h := highest.Load(); n <= h || highest.CompareAndSwap(h, n) {
				break
			}
		}
		<-release
	})
	r := w.raw2()
	over := make(chan struct{})
	go func() { defer close(over); r.drain() }()
	for i := range uint32(400) {
		if r.ask(2*i+1, true) != nil {
			break
		}
	}
	for open.Load() < 100 {
		runtime.Gosched()
	}
	r.WritePing(false, [8]byte{1})
	if n := highest.Load(); n != 100 {
		t.Errorf("%d requests of one connection are under way", n)
	}
	close(release)
	r.end()
	<-over
}

// TestStreamsThatAreReset (CVE-2023-44487) leave nothing under way: at once, and when each
// has gone as far as it comes with a server that does not even shake hands.
func TestStreamsThatAreReset(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, quick)
	dead := listen(t)
	place := func(l net.Listener) { w.put("example.com", 443, l.Addr().String()) }
	places := func() int {
		w.g.mu.Lock()
		defer w.g.mu.Unlock()
		return w.g.clients
	}
	place(dead)
	slow, fast := w.raw2(), w.raw2()
	go slow.drain()
	go fast.drain()
	place(w.server.Listener)
	w.costs(t, 16<<20, 300, func() {
		place(dead)
		defer place(w.server.Listener)
		before, dials, began := places(), w.dials(), time.Now()
		stream := uint32(1)
		for range 10 {
			first := stream
			for range 50 {
				slow.ask(stream, true)
				stream += 2
			}
			for places() < before+50 {
				runtime.Gosched()
			}
			for ; first < stream; first += 2 {
				slow.WriteRSTStream(first, http2.ErrCodeCancel)
			}
			for places() > before {
				runtime.Gosched()
			}
		}
		for i := range uint32(5_000) {
			if fast.ask(2*i+1, true) != nil || fast.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
				break
			}
		}
		most := 2 * mostInner * (1 + int(time.Since(began)/headerTime)) // a handshake is given up after that
		if n := w.dials() - dials; n > most {
			t.Errorf("%d connections were made, and not %d", n, most)
		}
	})
}
