package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAClientThatEndsItsSendingHalfGetsItsAnswer by each way, while a question is open and while its server takes its time.
func TestAClientThatEndsItsSendingHalfGetsItsAnswer(t *testing.T) {
	slow := func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		time.Sleep(lookEvery * 3 / 2) // the client is looked for meanwhile
		fmt.Fprintf(rw, "%s %s", r.Method, b)
	}
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Decide: func(context.Context, policy.Request) policy.Verdict {
		time.Sleep(lookEvery / 10)
		return policy.Verdict{Allow: true}
	}}}, slow)
	w.put("example.com", 80, strings.TrimPrefix(w.web("asked.example", 80, slow).URL, "http://"))
	const get, post = "GET / HTTP/1.0\r\nHost: example.com\r\n\r\n", "POST / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"
	for name, c := range map[string]struct {
		open func() (net.Conn, *bufio.Reader)
		said string
		want string
	}{
		"absolute":            {func() (net.Conn, *bufio.Reader) { return w.raw("") }, "GET http://example.com/ HTTP/1.0\r\n\r\n", "GET "},
		"absolute, asked":     {func() (net.Conn, *bufio.Reader) { return w.raw("") }, "GET http://asked.example/ HTTP/1.0\r\n\r\n", "GET "},
		"a body":              {func() (net.Conn, *bufio.Reader) { return w.raw("") }, strings.Replace(post, " /", " http://example.com/", 1), "POST abc"},
		"a tunnel":            {func() (net.Conn, *bufio.Reader) { return w.connect("example.com:80") }, get, "GET "},
		"a body in a tunnel":  {func() (net.Conn, *bufio.Reader) { return w.connect("example.com:80") }, post, "POST abc"},
		"CONNECT and request": {func() (net.Conn, *bufio.Reader) { return w.raw("") }, "CONNECT asked.example:80 HTTP/1.0\r\n\r\n" + strings.Replace(get, "example.com", "asked.example", 1), "GET "},
		"SOCKS": {func() (net.Conn, *bufio.Reader) {
			c, _ := w.dialSOCKS(named("example.com", 80))
			return c, bufio.NewReader(c)
		}, get, "GET "},
		"TLS": {func() (net.Conn, *bufio.Reader) {
			c, err := w.tls("example.com:443", "example.com", "http/1.1")
			if err != nil {
				t.Fatal(err)
			}
			return c, bufio.NewReader(c)
		}, get, "GET "},
	} {
		t.Run(name, func(t *testing.T) {
			conn, r := c.open()
			defer conn.Close()
			io.WriteString(conn, c.said)
			conn.(interface{ CloseWrite() error }).CloseWrite()
			conn.SetDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(r)
			if !strings.HasSuffix(string(answer), c.want) || err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%q, %v", answer, err)
			}
		})
	}
}

// TestAClientThatHasClosedFreesItsServer by each way, although neither says anything: one that ends its sending half sends the same.
func TestAClientThatHasClosedFreesItsServer(t *testing.T) {
	asked, ended := make(chan bool), make(chan bool)
	silent := func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		asked <- true
		<-r.Context().Done()
		ended <- true
	}
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, silent)
	w.web("example.com", 80, silent)
	for name, open := range map[string]func() net.Conn{
		"absolute": func() net.Conn { c, _ := w.raw("GET http://example.com/ HTTP/1.1\r\nHost: x\r\n\r\n"); return c },
		"a body": func() net.Conn {
			c, _ := w.raw("PUT http://example.com/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab")
			return c
		},
		"a tunnel": func() net.Conn {
			c, _ := w.connect("example.com:80")
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
			return c
		},
		"TLS": func() net.Conn {
			c, err := w.tls("example.com:443", "example.com", "http/1.1")
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n")
			return c
		},
	} {
		for _, half := range []bool{false, true} {
			c := open()
			<-asked
			if half {
				c.(interface{ CloseWrite() error }).CloseWrite()
				time.Sleep(lookEvery / 10)
			}
			c.Close()
			select {
			case <-ended:
			case <-time.After(20 * lookEvery):
				t.Fatalf("%s, half %t: the server is still asked", name, half)
			}
		}
	}
	for end := time.Now().Add(time.Minute); w.placesHeld() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d places are held", w.placesHeld())
		}
	}
}
