package egress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostileTime is how long each of the generators goes on: HOLDFAST_HOSTILE=10m for a long run, under -race.
func hostileTime(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("HOLDFAST_HOSTILE"))
	if err != nil {
		return time.Second
	}
	return d
}

var requestParts = []string{
	"GET http://example.com/ HTTP/1.1\r\n", "POST http://example.com/a HTTP/1.1\r\n", "HEAD http://example.com/ HTTP/1.0\r\n", "CONNECT example.com:80 HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"Host: example.com\r\n", "Content-Length: 5\r\n", "Content-Length: 99999\r\n", "Transfer-Encoding: chunked\r\n", "Trailer: X\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n",
	"\r\n", "\r\n", "hello", "5\r\nhello\r\n", "0\r\n\r\n", "0\r\nX: y\r\n\r\n", "fffffffffffffff\r\n", ";;;\r\n", " folded\r\n", "\n", "\x00", "a:\r\n", "X: " + strings.Repeat("x", 5000) + "\r\n", strings.Repeat("a:\r\n", 300),
}

var answerParts = []string{
	"HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 204 No\r\n", "HTTP/1.1 304 No\r\n", "HTTP/1.1 103 Hint\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", "HTTP/1.1 042 x\r\n", "HTTP/2 200\r\n", "JUNK JUNK\r\n",
	"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 7, 7\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Connection: close\r\n", "Trailer: X\r\n", "Content-Encoding: gzip\r\n",
	"\r\n", "\r\n", "\r\n", "hello", "5\r\nhello\r\n", "0\r\n\r\n", "0\r\nX: JUNK\r\n\r\n", "0\r\n" + strings.Repeat("a:\r\n", 600) + "\r\n", "ffffffff\r\n", "-1\r\n", " folded\r\n", "\n", "\x00", strings.Repeat("a:\r\n", 600), "X: " + strings.Repeat("x", 70_000) + "\r\n",
}

// speak writes parts in pieces, with a byte changed now and then, and ends in one of several ways.
func speak(r *rand.Rand, c net.Conn, parts []string) {
	var b bytes.Buffer
	for range 2 + r.IntN(12) {
		b.WriteString(parts[r.IntN(len(parts))])
	}
	text := b.Bytes()
	if r.IntN(3) == 0 {
		text[r.IntN(len(text))] = byte(r.Uint32())
	}
	for len(text) > 0 {
		n := 1 + r.IntN(len(text))
		if _, err := c.Write(text[:n]); err != nil {
			return
		}
		text = text[n:]
	}
	tcp, _ := c.(*net.TCPConn)
	switch r.IntN(3) {
	case 0:
		tcp.CloseWrite()
	case 1:
		tcp.SetLinger(0) // a reset
		tcp.Close()
	}
}

// TestHostilePeers has clients and servers of HTTP/1 say anything: nothing panics or hangs, no
// goroutine and no memory of headers is left, and nothing is in the harness's log.
func TestHostilePeers(t *testing.T) {
	logged(t)
	before := runtime.NumGoroutine()
	w := newWorld(t, Config{Observe: func(Event) {}}, "example.com")
	w.hostileAt("example.com", 80, func(c net.Conn) {
		r := rand.New(rand.NewPCG(rand.Uint64(), 1))
		c.SetDeadline(time.Now().Add(200 * time.Millisecond))
		if r.IntN(8) > 0 { // else it speaks first
			c.Read(make([]byte, 1+r.IntN(4096)))
		}
		for range 1 + r.IntN(3) {
			speak(r, c, answerParts)
		}
		if r.IntN(2) == 0 {
			io.Copy(io.Discard, c)
		}
	})
	asked, until := 0, time.Now().Add(hostileTime(t))
	for seed := uint64(1); time.Now().Before(until); seed++ {
		done := make(chan bool, 16)
		for i := range cap(done) {
			go func() {
				defer func() { done <- true }()
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				c, err := net.Dial("tcp", w.http)
				if err != nil {
					return
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(200 * time.Millisecond))
				if r.IntN(2) == 0 { // a good request, for the server's sake
					fmt.Fprintf(c, "%s http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc", []string{"GET", "POST", "HEAD"}[r.IntN(3)])
				} else {
					speak(r, c, requestParts)
				}
				io.CopyN(io.Discard, c, 1<<20)
			}()
		}
		for range cap(done) {
			<-done
			asked++
		}
	}
	w.g.Close()
	if s := w.g.Summary(); s.Stuck {
		t.Error("something is stuck")
	}
	if used := w.g.heads.used.Load(); used != 0 {
		t.Errorf("%d bytes of headers are not given back", used)
	}
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+10 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("%d goroutines are left", n)
	}
	t.Logf("%d clients", asked)
}

// TestConnectionsAtTheirWorst is the figure of docs/network.md: what a crowd's headers take of the harness, by the
// tool alone and with a server that helps it.
func TestConnectionsAtTheirWorst(t *testing.T) {
	const conns = 1024
	for _, name := range []string{"the tool alone", "with a server"} {
		w := newWorld(t, Config{}, "example.com")
		w.hostileAt("example.com", 80, func(c net.Conn) {
			c.Read(make([]byte, 4096))
			if name == "with a server" {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n%s\r\n", tiny(mostAnswerFields-1)+"")
			}
			<-t.Context().Done()
		})
		before := heap()
		var held []net.Conn
		for range conns {
			c, err := net.Dial("tcp", w.http)
			if err != nil {
				t.Skip("the test has not the descriptors that it needs: ", err)
			}
			held = append(held, c)
			if name == "the tool alone" {
				fmt.Fprintf(c, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\n%s\r\n", tiny(mostFields-2))
			} else {
				fmt.Fprint(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
			}
		}
		grown, last := int64(0), int64(-1)
		for i := 0; i < 50 && grown != last; i++ { // until it grows no more
			last = grown
			time.Sleep(100 * time.Millisecond)
			grown = max(grown, heap()-before)
		}
		t.Logf("%s: %d connections take %d KiB, %d KiB each; %d KiB of the budget", name, conns, grown>>10, grown>>10/conns, w.g.heads.used.Load()>>10)
		if most := int64(mostHeads) + conns*64<<10; grown > most {
			t.Errorf("%s: %d bytes, and not %d at most", name, grown, most)
		}
		w.g.Close()
		for _, c := range held {
			c.Close()
		}
	}
}
