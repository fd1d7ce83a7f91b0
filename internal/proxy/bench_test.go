package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// benchWorld has an echo server that is told how much to send, and a web server.
func benchWorld(b *testing.B) *world {
	w := newWorld(b, Config{Network: policy.Network{Observe: func(policy.Connection) {}}}, "good.com")
	l := listen(b)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pour(c)
		}
	}()
	w.put("good.com", 9, l.Addr().String())
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		n, _ := strconv.ParseInt(r.URL.Query().Get("n"), 10, 64)
		rw.Header().Set("Content-Length", strconv.FormatInt(n, 10))
		io.CopyN(rw, zeros{}, n)
	})
	return w
}

var timeless time.Time

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// pour sends as many bytes as each line asks for.
func pour(c net.Conn) {
	defer c.Close()
	block := make([]byte, 256<<10)
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		n, _ := strconv.Atoi(line[:len(line)-1])
		for n > 0 {
			m, err := c.Write(block[:min(n, len(block))])
			if err != nil {
				return
			}
			n -= m
		}
	}
}

// dialServer is a connection to the server without the proxy between.
func dialServer(b *testing.B, w *world) net.Conn {
	c, err := net.Dial("tcp", w.places[addrPort("93.184.216.34:9")])
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkConnect is a new tunnel and one byte through it.
func BenchmarkConnect(b *testing.B) {
	w := benchWorld(b)
	one := func(c net.Conn, r io.Reader) {
		defer c.Close()
		io.WriteString(c, "1\n")
		if _, err := io.ReadFull(r, make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("direct", func(b *testing.B) {
		for b.Loop() {
			c := dialServer(b, w)
			one(c, c)
		}
	})
	b.Run("http", func(b *testing.B) {
		for b.Loop() {
			c, _ := net.Dial("tcp", w.http)
			io.WriteString(c, "CONNECT good.com:9 HTTP/1.1\r\nHost: good.com:9\r\n\r\n")
			r := bufio.NewReader(c)
			if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
				b.Fatal(resp, err)
			}
			one(c, r)
		}
	})
	b.Run("socks", func(b *testing.B) {
		hello := named("good.com", 9)
		reply := make([]byte, 12)
		for b.Loop() {
			c, _ := net.Dial("tcp", w.socks)
			io.WriteString(c, hello)
			if _, err := io.ReadFull(c, reply); err != nil || reply[3] != 0 {
				b.Fatal(reply, err)
			}
			one(c, c)
		}
	})
}

// BenchmarkBulk is a large answer.
func BenchmarkBulk(b *testing.B) {
	w := benchWorld(b)
	benched := w
	const size = 64 << 20
	want := strconv.Itoa(size) + "\n"
	sink := make([]byte, 256<<10)
	tunnel := func(b *testing.B, c net.Conn) {
		b.SetBytes(size)
		for b.Loop() {
			io.WriteString(c, want)
			for n := 0; n < size; {
				m, err := c.Read(sink)
				if err != nil {
					b.Fatal(err)
				}
				n += m
			}
		}
		c.Close()
	}
	b.Run("direct", func(b *testing.B) { tunnel(b, dialServer(b, w)) })
	b.Run("connect", func(b *testing.B) {
		w.t = b
		c, _ := w.connect("good.com:9")
		c.SetDeadline(timeless)
		tunnel(b, c)
	})
	peer := os.Getenv("HOLDFAST_PEER_PROXY") // another HTTP proxy, which may reach loopback
	b.Run("peerConnect", func(b *testing.B) {
		if peer == "" {
			b.Skip("HOLDFAST_PEER_PROXY names no proxy")
		}
		w := &world{t: b, http: peer}
		c, _ := w.connect(benched.places[addrPort("93.184.216.34:9")])
		c.SetDeadline(timeless)
		tunnel(b, c)
	})
	web := func(b *testing.B, c *http.Client, u string) {
		b.SetBytes(size)
		for b.Loop() {
			resp, err := c.Get(u + "/?n=" + strconv.Itoa(size))
			if err != nil {
				b.Fatal(err)
			}
			for {
				if _, err = resp.Body.Read(sink); err != nil {
					break
				}
			}
			resp.Body.Close()
		}
	}
	b.Run("directHTTP", func(b *testing.B) {
		web(b, http.DefaultClient, "http://"+w.places[addrPort("93.184.216.34:80")])
	})
	b.Run("plainHTTP", func(b *testing.B) { web(b, w.client(nil), "http://good.com") })
	b.Run("peerPlainHTTP", func(b *testing.B) {
		if peer == "" {
			b.Skip("HOLDFAST_PEER_PROXY names no proxy")
		}
		p := &world{t: b, http: peer}
		web(b, p.client(nil), "http://"+w.places[addrPort("93.184.216.34:80")])
	})
}

// BenchmarkRequest is a small request on a connection that is kept, and a round
// trip in a tunnel that is open.
func BenchmarkRequest(b *testing.B) {
	w := benchWorld(b)
	web := func(b *testing.B, place, target string) {
		c, err := net.Dial("tcp", place)
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		r := bufio.NewReader(c)
		b.ReportAllocs()
		for b.Loop() {
			io.WriteString(c, "GET "+target+"/?n=100 HTTP/1.1\r\nHost: good.com\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n")
			if code, _ := answerOf(r); code != 200 {
				b.Fatal(code)
			}
		}
	}
	b.Run("direct", func(b *testing.B) { web(b, w.places[addrPort("93.184.216.34:80")], "") })
	b.Run("plainHTTP", func(b *testing.B) { web(b, w.http, "http://good.com") })
	trip := func(b *testing.B, c net.Conn) {
		buf := make([]byte, 100)
		for b.Loop() {
			io.WriteString(c, "100\n")
			if _, err := io.ReadFull(c, buf); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
	}
	b.Run("directTrip", func(b *testing.B) { trip(b, dialServer(b, w)) })
	b.Run("tunnelTrip", func(b *testing.B) {
		w.t = b
		c, _ := w.connect("good.com:9")
		c.SetDeadline(timeless)
		trip(b, c)
	})
}
