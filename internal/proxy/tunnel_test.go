package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func addrPort(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// clientHello is the first message of a TLS client that wants a name.
func clientHello(t testing.TB, name string) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	go tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	buf := make([]byte, 16<<10)
	n, err := b.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func TestWhatTheFirstBytesLookLike(t *testing.T) {
	for text, want := range map[string]sniffedKind{
		"":                            sniffedUnknown,
		"\x16":                        sniffedUnknown,
		"\x16\x03":                    sniffedTLS,
		"\x16\x02":                    sniffedUnknown,
		"\x16\x02\x00\x00\x04\x01":    sniffedTLS,   // servers that do not look at a first record's version
		"\x16\x02\x00\x01\x85\xa6":    sniffedOther, // MySQL's login
		"\x16\x10":                    sniffedOther,
		"\x15\x03":                    sniffedTLS,
		"\x15\x01\x00\x00\x02\x01":    sniffedTLS,
		"\x15\x01\x00\x00\x03\x01":    sniffedOther,
		"\x17\x01":                    sniffedOther,
		"G":                           sniffedUnknown,
		"GET /":                       sniffedUnknown,
		"GET / HTTP/1.1\r":            sniffedUnknown,
		"GET / HTTP/1.1\r\n":          sniffedHTTP,
		"\r\n\r\nGET / HTTP/1.1\n":    sniffedHTTP,
		"get\t/ http/1.0\n":           sniffedHTTP,
		"GET /\r\n":                   sniffedHTTP, // HTTP/0.9
		"GET  /a?b \n":                sniffedHTTP,
		"GET http://evil.example\r\n": sniffedHTTP,
		"GET key\r\n":                 sniffedHTTP, // to Python's http.server, which takes a Host behind it
		"OPTIONS *\r\n":               sniffedHTTP,
		"GET\r/x\r\n":                 sniffedHTTP,
		"X\rGET x\r\n":                sniffedHTTP,
		"GET /\x01 HTTP/1.0\n":        sniffedHTTP,
		"GET\x00/ HTTP/1.0\n":         sniffedOther,
		" \t\r\n \nGET / HTTP/1.1\n":  sniffedHTTP,
		"get key\r\n":                 sniffedOther, // memcached's
		"SET key /value\r\n":          sniffedOther, // Redis'
		"PING\r\n":                    sniffedOther,
		"USER /me\r\n":                sniffedOther,
		"AMQP\x00\x00\x09\x01":        sniffedOther,
		"A\x09\x00\x00\x01":           sniffedOther, // MongoDB's length
		"AB\x20\x00\x01":              sniffedOther,
		"GET / x\r\n":                 sniffedOther,
		"PRI * HTTP/2.0\r\n\r\nSM":    sniffedUnknown,
		preface:                       sniffedOther,
		"PRI * HTTP/2.0\r\n\r\nGET /": sniffedHTTP,
		"PRI * HTTP/2.0\r\nHost: x":   sniffedHTTP,
		"SSH-2.0-OpenSSH_9.9\r\n":     sniffedOther,
		"EHLO me\r\n":                 sniffedOther,
		"{\"jsonrpc\":":               sniffedOther,
		"*1\r\n$4\r\nPING\r\n":        sniffedOther,
		"\x00\x00\x00\x08\x04\xd2":    sniffedOther,
		"0032git-upload-pack /r\x00h": sniffedOther,
	} {
		var whole, piecemeal classifier
		if got := whole.classify([]byte(text)); got != want {
			t.Errorf("%q looks like %d, want %d", text, got, want)
		}
		got := sniffedUnknown
		for i := 0; i < len(text) && got == sniffedUnknown; i++ {
			got = piecemeal.classify([]byte(text[:i+1]))
		}
		if got != want {
			t.Errorf("%q looks like %d byte by byte, want %d", text, got, want)
		}
	}
}

// TestNoByteIsLookedAtTwice: a client that sends a long line in pieces of one byte
// would have the harness look at it a hundred million times.
func TestNoByteIsLookedAtTwice(t *testing.T) {
	var l classifier
	line := []byte("GET /aaaaaaaaaaaaaaaaaaaaa")
	for i := range line {
		if got := l.classify(line[:i+1]); got != sniffedUnknown {
			t.Fatalf("%q: %d", line[:i+1], got)
		}
		if i > 0 {
			line[i] = 0 // no request's: whoever looks again sees it
		}
	}
}

func TestServerThatSpeaksFirstIsHeard(t *testing.T) {
	w := newWorld(t, Config{}, "ssh.example:22")
	l := listen(t)
	go func() {
		c, _ := l.Accept()
		defer c.Close()
		io.WriteString(c, "SSH-2.0-server\r\n")
		io.Copy(c, c)
	}()
	w.put("ssh.example", 22, l.Addr().String())
	c, r := w.connect("ssh.example:22")
	if line, err := r.ReadString('\n'); line != "SSH-2.0-server\r\n" {
		t.Fatal(line, err)
	}
	io.WriteString(c, "SSH-2.0-client\r\n")
	if line, err := r.ReadString('\n'); line != "SSH-2.0-client\r\n" {
		t.Fatal(line, err)
	}
}

func TestHelloInPiecesIsReadWhole(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 443)
	for name, want := range map[string]bool{"good.com": true, "evil.example": false} {
		hello := clientHello(t, name)
		c, r := w.connect("good.com:443")
		for _, b := range hello {
			if _, err := c.Write([]byte{b}); err != nil {
				break
			}
		}
		got := make([]byte, len(hello))
		n, _ := io.ReadFull(r, got)
		if want != bytes.Equal(got[:n], hello) || !want && n > 0 {
			t.Errorf("%s: %d bytes of %d came back", name, n, len(hello))
		}
	}
	c, r := w.connect("good.com:443")
	io.WriteString(c, "\x16\x03\x01\x00\x05garbage that is no hello")
	if b, _ := io.ReadAll(r); len(b) > 0 {
		t.Errorf("what cannot be read as a hello was passed: %d bytes", len(b))
	}
}

func TestLargeTransferIsWholeBothWays(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 9)
	c, r := w.connect("good.com:9")
	const size = 64 << 20
	sum := make(chan [32]byte, 1)
	go func() {
		h := sha256.New()
		block := make([]byte, 1<<20)
		rand.Read(block)
		block[0] = 0 // neither TLS nor HTTP
		for range size >> 20 {
			h.Write(block)
			c.Write(block)
		}
		c.(*net.TCPConn).CloseWrite()
		sum <- [32]byte(h.Sum(nil))
	}()
	h := sha256.New()
	n, err := io.Copy(h, r)
	if n != size || err != nil || [32]byte(h.Sum(nil)) != <-sum {
		t.Errorf("%d bytes, %v", n, err)
	}
	c.Close()
	e := w.ended()
	if len(e) != 1 || e[0].Sent != size || e[0].Received != size || e[0].Err != "" {
		t.Errorf("events %+v", e)
	}
	if s := w.g.Summary(); s.Sent != size || s.Received != size {
		t.Errorf("summary %+v", s)
	}
}

func TestAddressThatWasCheckedIsTheOneDialled(t *testing.T) {
	answers := [][]netip.Addr{{public}, {netip.MustParseAddr("127.0.0.1")}, {netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("93.184.216.1"), public}}
	var asked int
	var dialed []string
	g, err := New(Config{
		Network: policy.Network{
			Hosts:  []string{"rebind.example"},
			Lookup: func(context.Context, string) ([]netip.Addr, error) { asked++; return answers[asked-1], nil },
		},
		Dial: func(_ context.Context, to netip.AddrPort) (net.Conn, error) {
			dialed = append(dialed, to.String())
			if to.Addr() != public {
				return nil, errors.New("it does not answer")
			}
			a, b := net.Pipe()
			b.Close()
			return a, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	target := Target{Host: mustHost(t, "rebind.example"), Port: 80, Protocol: "tcp"}
	for i, want := range []string{"<nil>", "rebind.example:80: the address 127.0.0.1 is the harness's loopback; only an entry for that address would allow it", "<nil>"} {
		u, err := g.openTunnel(t.Context(), target)
		if err == nil {
			u.Close()
		}
		got := "<nil>"
		if err != nil {
			got = err.Error()
		}
		if asked != i+1 || got != want {
			t.Errorf("look-up %d (%d asked): %s", i, asked, got)
		}
	}
	if got, want := strings.Join(dialed, " "), "93.184.216.34:80 93.184.216.1:80 93.184.216.34:80"; got != want {
		t.Errorf("dialled %s, want %s", got, want)
	}
	if s := g.Summary(); s.Denied != 1 || s.Violations[0].Host != "rebind.example" {
		t.Errorf("%+v", s)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := runtime.NumGoroutine()
	w := newWorld(t, Config{Network: policy.Network{Decide: func(ctx context.Context, _ policy.Request) policy.Verdict {
		<-ctx.Done()
		return policy.Verdict{Allow: true}
	}}}, "good.com")
	var servers []net.Conn
	l, accepted := listen(t), make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			servers = append(servers, c)
		}
	}()
	w.put("good.com", 9, l.Addr().String())
	forward := listen(t)
	done := make(chan error, 1)
	go func() { done <- w.g.Forward(forward, l.Addr().String()) }()
	var ends []io.Reader
	for range 5 {
		_, r := w.connect("good.com:9")
		_, waits := w.raw("CONNECT unknown.example:443 HTTP/1.1\r\n\r\n")
		_, keeps := w.raw("GET http://good.com:9/ HTTP/1.1\r\nHost: good.com:9\r\n\r\n")
		_, half := w.raw("GET http://good.com:9/ HT")
		s, _ := w.dialSOCKS(named("good.com", 9))
		f, _ := net.Dial("tcp", forward.Addr().String())
		defer f.Close()
		idle, _ := net.Dial("tcp", w.socks)
		defer idle.Close()
		ends = append(ends, r, waits, keeps, half, s, f, idle)
	}
	stacks := make([]byte, 1<<20)
	runs := func(what string) bool {
		return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("proxy."+what))
	}
	serving := []string{"(*Tunnel).run(", "(*direction).move(", "(*proxiedRequest).serve(", "(*Proxy).serveSOCKS("}
	for _, what := range serving {
		for !runs(what) {
			runtime.Gosched()
		}
	}
	w.g.Close()
	for _, what := range serving {
		if runs(what) {
			t.Errorf("%s goes on after Close", what)
		}
	}
	for _, r := range ends {
		io.Copy(io.Discard, r) // ends
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	l.Close()
	<-accepted
	for _, c := range servers {
		c.Close()
	}
	if err := w.g.Serve(listen(t), HTTP); err != nil {
		t.Error(err)
	}
	if _, err := w.g.openTunnel(t.Context(), Target{Host: mustHost(t, "good.com"), Port: 9}); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if n := runtime.NumGoroutine(); n > before {
		b := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", n, before, b[:runtime.Stack(b, true)])
	}
}
