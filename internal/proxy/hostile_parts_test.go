package proxy

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

// requestParts and answerParts are put together at random; HOST is the URL's or the path's beginning.
var requestParts = []string{
	"GET HOST/ HTTP/1.1\r\n", "POST HOST/a HTTP/1.1\r\n", "HEAD HOST/ HTTP/1.0\r\n", "CONNECT example.com:80 HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"Host: example.com\r\n", "Content-Length: 5\r\n", "Content-Length: 99999\r\n", "Transfer-Encoding: chunked\r\n", "Trailer: X\r\n", "Expect: 100-continue\r\n", "Connection: close\r\n", "Connection: upgrade\r\nUpgrade: websocket\r\n",
	"\r\n", "\r\n", "hello", "5\r\nhello\r\n", "0\r\n\r\n", "0\r\nX: y\r\n\r\n", "fffffffffffffff\r\n", ";;;\r\n", " folded\r\n", "\n", "\x00", "a:\r\n", "X: " + strings.Repeat("x", 5000) + "\r\n", strings.Repeat("a:\r\n", 300),
	"Authorization: Bearer TOKEN\r\n", "Accept-Encoding: gzip\r\n", "Range: bytes=0-5\r\n", "\x16\x03\x01\x40\x00\x01\x00", "\x05\x01\x00",
}

var answerParts = []string{
	"HTTP/1.1 200 OK\r\n", "HTTP/1.0 200 OK\r\n", "HTTP/1.1 204 No\r\n", "HTTP/1.1 304 No\r\n", "HTTP/1.1 103 Hint\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\nConnection: upgrade\r\n", "HTTP/1.1 042 x\r\n", "HTTP/2 200\r\n", "JUNK JUNK\r\n",
	"Content-Length: 5\r\n", "Content-Length: 0\r\n", "Content-Length: 7, 7\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n", "Connection: close\r\n", "Trailer: X\r\n", "Content-Encoding: gzip\r\n",
	"\r\n", "\r\n", "\r\n", "hello", "5\r\nhello\r\n", "0\r\n\r\n", "0\r\nX: JUNK\r\n\r\n", "0\r\n" + strings.Repeat("a:\r\n", 600) + "\r\n", "ffffffff\r\n", "-1\r\n", " folded\r\n", "\n", "\x00", strings.Repeat("a:\r\n", 600), "X: " + strings.Repeat("x", 70_000) + "\r\n",
	"SECRET", "X: SECRET\r\n", "\x81\x05hello", "\x82\x7e\xff\xffSECRET", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff",
}

// valid are exchanges that are in order: what a client says, and its server.
var valid = []struct{ request, answer string }{
	{"GET HOST/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
	{"GET HOST/ HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer TOKEN\r\n\r\n", "HTTP/1.1 200 OK\r\nX-Echo: SECRET\r\nContent-Length: 51\r\n\r\nthe token is SECRET, and so on"},
	{"POST HOST/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: SECRET\r\n\r\n"},
	{"POST HOST/ HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", "HTTP/1.1 204 No\r\n\r\n"},
	{"PUT HOST/ HTTP/1.1\r\nHost: example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: 0\r\n\r\n"},
	{"HEAD HOST/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"},
	{"GET HOST/ HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x85abcdhello", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x05hello\x82\x10SECRET"},
	{"GET HOST/ HTTP/1.0\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\nSECRET until the end"},
	{"GET HOST/ HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer TOKEN\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nGZIPPED"},
	{"POST HOST/ HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/grpc-web\r\nContent-Length: 10\r\n\r\n\x00\x00\x00\x00\x05hello", "HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web\r\n\r\n\x00\x00\x00\x00\x05hello\x00\x00\x00\x00\x15SECRET"},
	{"GET HOST/a HTTP/1.1\r\nHost: example.com\r\n\r\nGET HOST/b HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 304 No\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
}

// saying is what a hostile peer says: parts at random, or a valid text with changes.
func saying(r *rand.Rand, text string, parts []string) []byte {
	var b []byte
	if r.IntN(3) == 0 {
		for range 2 + r.IntN(12) {
			b = append(b, parts[r.IntN(len(parts))]...)
		}
		return changed(r, b, r.IntN(2))
	}
	if b = []byte(text); r.IntN(2) == 0 { // a part where a line begins
		if at := bytes.IndexByte(b[r.IntN(len(b)):], '\n'); at >= 0 {
			b = append(b[:at:at], append([]byte(parts[r.IntN(len(parts))]), b[at:]...)...)
		}
	}
	return changed(r, b, r.IntN(4))
}

// changed cuts, repeats, and overwrites what it is given.
func changed(r *rand.Rand, b []byte, times int) []byte {
	for range times {
		if len(b) == 0 {
			break
		}
		from := r.IntN(len(b))
		to := from + r.IntN(len(b)-from)
		switch r.IntN(5) {
		case 0:
			b[from] = byte(r.Uint32())
		case 1:
			b[from] ^= 1 << r.IntN(8)
		case 2:
			b = append(b[:from:from], b[to:]...)
		case 3:
			b = append(b[:to:to], b[from:]...)
		case 4:
			b = b[:from]
		}
	}
	return b
}

// A mangler is a connection whose bytes are changed on their way: below TLS, and within it.
type mangler struct {
	net.Conn
	r    *rand.Rand
	rare int // of so many writes one is changed; 0: none
}

func (m *mangler) Write(p []byte) (int, error) {
	b := p
	if m.rare > 0 && m.r.IntN(m.rare) == 0 {
		b = changed(m.r, bytes.Clone(p), 1+m.r.IntN(3))
	}
	for len(b) > 0 {
		n := 1 + m.r.IntN(len(b))
		if _, err := m.Conn.Write(b[:n]); err != nil {
			return 0, err
		}
		b = b[n:]
	}
	return len(p), nil
}

func (m *mangler) unwrap() net.Conn { return m.Conn }

// part ends a connection in one of several ways.
func part(r *rand.Rand, c net.Conn) {
	under, _ := unwrapConn(c).(*net.TCPConn)
	if t, ok := c.(*tls.Conn); ok {
		under, _ = unwrapConn(t.NetConn()).(*net.TCPConn)
	}
	switch r.IntN(4) {
	case 0:
		if w, ok := c.(interface{ CloseWrite() error }); ok {
			w.CloseWrite()
		}
	case 1:
		if under != nil {
			under.CloseWrite()
		}
	case 2:
		if under != nil {
			under.SetLinger(0) // a reset
			under.Close()
		}
	}
}

// A fuzzed world has a server at a port of each kind, which is hostile or not, and clients that are.
type fuzzed struct {
	*secureWorld
	clients, servers bool // which of them are hostile
}

const fuzzTime = 200 * time.Millisecond // of a connection

// answer is a server's connection.
func (w *fuzzed) answer(c net.Conn, ended bool) {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	c.SetDeadline(time.Now().Add(fuzzTime))
	m := &mangler{Conn: c, r: r}
	if w.servers && r.IntN(4) == 0 {
		m.rare = 4
	}
	var s net.Conn = m
	if ended {
		s = tls.Server(m, &tls.Config{Certificates: w.server.TLS.Certificates, NextProtos: []string{h1}})
	}
	defer s.Close()
	if !w.servers || r.IntN(8) > 0 { // else it speaks first
		s.Read(make([]byte, 1+r.IntN(4096)))
	}
	for range 1 + r.IntN(3) {
		text := []byte(valid[r.IntN(len(valid))].answer)
		if w.servers {
			text = saying(r, string(text), answerParts)
		}
		s.Write([]byte(strings.NewReplacer("SECRET", testSecret, "GZIPPED", packedSecret).Replace(string(text))))
		if r.IntN(2) == 0 {
			s.Read(make([]byte, 4096))
		}
	}
	if part(r, s); r.IntN(2) == 0 {
		io.Copy(io.Discard, s)
	}
}

// ways are how a client comes to a server: what it sends before, and whether it begins TLS then.
var fuzzWays = []struct {
	socks        bool
	before, host string
	tls          string // the server's name; empty: it begins none
}{
	{false, "", "http://example.com", ""},
	{false, "CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\n\r\n", "", ""},
	{false, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n", "", "example.com"},
	{false, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", "", "api.example.com"},
	{false, "CONNECT api.example.com:443 HTTP/1.1\r\n\r\n", "", "example.com"},
	{true, named("example.com", 80), "", ""},
	{true, named("example.com", 443), "", "example.com"},
	{true, named("api.example.com", 443), "", "api.example.com"},
}

// ask is a client's connection. It returns what came back of the inner protocol.
func (w *fuzzed) ask(r *rand.Rand) (got []byte) {
	way := fuzzWays[r.IntN(len(fuzzWays))]
	c, err := net.Dial("tcp", map[bool]string{true: w.socks, false: w.http}[way.socks])
	if err != nil {
		return nil
	}
	c.SetDeadline(time.Now().Add(fuzzTime))
	m := &mangler{Conn: c, r: r}
	if w.clients && r.IntN(4) == 0 {
		m.rare = 4
	}
	var s net.Conn = m
	defer func() { s.Close() }()
	if way.before != "" {
		before := []byte(way.before)
		if w.clients && r.IntN(4) == 0 {
			before = changed(r, before, 1+r.IntN(2))
		}
		m.Write(before)
		if n := map[bool]int{true: 12, false: len("HTTP/1.1 200 Connection established\r\n\r\n")}[way.socks]; r.IntN(8) > 0 {
			io.ReadFull(c, make([]byte, n)) // else it does not wait
		}
	}
	if way.tls != "" && (!w.clients || r.IntN(16) > 0) {
		s = tls.Client(m, &tls.Config{ServerName: way.tls, InsecureSkipVerify: true, MaxVersion: uint16(tls.VersionTLS12 + r.IntN(2))})
	}
	for range 1 + r.IntN(2) {
		text := []byte(valid[r.IntN(len(valid))].request)
		if w.clients {
			text = saying(r, string(text), requestParts)
		}
		head, rest, both := strings.Cut(strings.NewReplacer("HOST", way.host, "TOKEN", w.placeholder).Replace(string(text)), "\r\n\r\n")
		if !both || r.IntN(2) == 0 {
			io.WriteString(s, head+"\r\n\r\n"+rest)
			continue
		}
		io.WriteString(s, head+"\r\n\r\n")
		b := make([]byte, 4096)
		n, _ := s.Read(b) // "continue", or another protocol
		got = append(got, b[:n]...)
		io.WriteString(s, rest)
	}
	if w.clients {
		part(r, s)
	}
	more, _ := io.ReadAll(io.LimitReader(s, 1<<20))
	if got = append(got, more...); way.host+way.tls != "example.com" {
		return nil // its server has been given no secret, nor is it looked at
	}
	return got
}

// packedSecret is an answer that echoes the secret, packed.
var packedSecret = func() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, "the token is "+testSecret+"\n")
	z.Close()
	return b.String()
}()

func (w *fuzzed) String() string {
	return fmt.Sprintf("clients hostile %v, servers %v", w.clients, w.servers)
}
