package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestPlainRequestToAnAllowedNameIsCarried(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s %s %s %s", r.Method, r.Host, r.RequestURI, r.Header.Get("X-Mine"))
	})
	req, _ := http.NewRequest("GET", "http://EXAMPLE.com./a%2fb?q=1;2&x=%zz", nil)
	req.Header.Set("X-Mine", "kept")
	resp, err := w.client(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	if got, want := string(body), "GET example.com /a%2fb?q=1;2&x=%zz kept"; got != want {
		t.Errorf("the server saw %q, want %q", got, want)
	}
	e := w.ended()
	if len(e) != 1 || !e[0].Allowed || e[0].Host != "example.com" || e[0].Rule != "example.com" || e[0].Path != "/a%2fb" || e[0].Address == "" || e[0].Received != int64(len(body)) {
		t.Errorf("events %+v", e)
	}
}

func TestDeniedNameIsAnsweredInWords(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	code, body := w.ask("GET http://other.example/secret HTTP/1.1\r\nHost: other.example\r\n\r\n")
	if code != 403 {
		t.Errorf("status %d", code)
	}
	has(t, body, "other.example:80", "rule: none", "allow-list")
	_, r := w.raw("CONNECT other.example:443 HTTP/1.1\r\n\r\n")
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != 403 {
		t.Fatal(resp, err)
	}
	has(t, resp.Status, "other.example:443", "allow-list")
	if w.dials() != 0 || len(w.looked) != 0 {
		t.Errorf("a denied name was looked up or dialled: %v %v", w.looked, w.dialed)
	}
	s := w.g.Summary()
	if s.Denied != 2 || len(s.Violations) != 2 || s.Violations[1].Port != 443 {
		t.Errorf("summary %+v", s)
	}
}

func TestTLSByCONNECT(t *testing.T) {
	w := newWorld(t, Config{}, "example.com:443")
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	w.put("example.com", 443, s.Listener.Addr().String())
	c := w.client(s)
	c.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	if code, body := get(t, c, "https://example.com/"); code != 200 || body != "HTTP/2.0" {
		t.Errorf("%d %q", code, body)
	}
	c.CloseIdleConnections()
	e := w.ended()
	if len(e) != 1 || e[0].Protocol != "connect" || e[0].Sent == 0 || e[0].Received == 0 || !e[0].Allowed {
		t.Errorf("events %+v", e)
	}
}

func TestCONNECTAsOldAndOddClientsSayIt(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 9)
	for text, want := range map[string]int{
		"CONNECT good.com:9 HTTP/1.0\r\n\r\n":                       200,
		"CONNECT good.com:9 HTTP/1.1\r\nHost: good.com\r\n\r\n":     200,
		"CONNECT GOOD.com.:9 HTTP/1.1\r\nHost: good.com:9\r\n\r\n":  200,
		"CONNECT good.com:9 HTTP/1.1\r\nHost: evil.example\r\n\r\n": 200, // its target is what counts (RFC 9112, 3.2.2)
		"CONNECT good.com:9 HTTP/1.1\r\nHost: good.com:8\r\n\r\n":   200,
		"CONNECT good.com HTTP/1.1\r\nHost: good.com\r\n\r\n":       403,
		"CONNECT / HTTP/1.1\r\nHost: good.com\r\n\r\n":              403,
		"CONNECT http://good.com:9/ HTTP/1.1\r\nHost: a\r\n\r\n":    403,
		"GET / HTTP/1.0\r\n\r\n":                                    400,
		"GET https://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n":  400,
		"TRACE http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n": 403,
		"OPTIONS * HTTP/1.1\r\nHost: good.com\r\n\r\n":              400,
	} {
		_, r := w.raw(text)
		resp, err := http.ReadResponse(r, &http.Request{Method: text[:strings.IndexByte(text, ' ')]})
		if err != nil || resp.StatusCode != want {
			t.Errorf("%q: %v %v, want %d", text, resp, err, want)
		}
	}
	c, r := w.raw("CONNECT good.com:9 HTTP/1.1\r\n\r\n\x00early\n") // before the answer
	http.ReadResponse(r, &http.Request{Method: "CONNECT"})
	if line, err := r.ReadString('\n'); line != "\x00early\n" {
		t.Errorf("%q %v", line, err)
	}
	c.Close()
}

func TestOtherServerNameThanCONNECTsIsRefused(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	s := httptest.NewTLSServer(http.NotFoundHandler())
	defer s.Close()
	w.put("example.com", 443, s.Listener.Addr().String())
	for name, ok := range map[string]bool{"example.com": true, "EXAMPLE.com": true, "": true, "evil.example": false, "a.example.com": false} {
		conn, _ := w.connect("example.com:443")
		err := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		if (err == nil) != ok {
			t.Errorf("server name %q: %v", name, err)
		}
		conn.Close()
	}
	w.g.Close()
	if s := w.g.Summary(); s.Denied != 2 {
		t.Errorf("summary %+v", s)
	}
}

func TestHostInsideATunnelHasToBeItsTarget(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	hits := make(chan string, 10)
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { hits <- r.Host })
	for _, c := range []struct {
		text string
		want int
	}{
		{"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: example.com:80\r\n\r\n", 200},
		{"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"GET / HTTP/1.1\r\nHost: example.com:81\r\n\r\n", 403},
		{"GET http://evil.example/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403},
		{"GET http://example.com/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200}, // which a proxy does not look at (RFC 9112, 3.2.2)
		{"\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400},
		{"get / http/1.1\r\nHost: evil.example\r\n\r\n", 400},
		{"GET\t/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400},
		{"GET / HTTP/1.1\nHost: evil.example\n\n", 403},
		{"GET /\r\nHost: evil.example\r\n\r\n", 400},
		{"GET / HTTP/1.1\r\nHost: example.com\r\nHost: evil.example\r\n\r\n", 400},
		{"GET http://example.com:81/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403},
		{"GET http://u@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403},
		{"GET https://example.com:80/ HTTP/1.1\r\nHost: example.com\r\n\r\n", 403},
	} {
		conn, r := w.connect("example.com:80")
		io.WriteString(conn, c.text)
		if got, body := answerOf(r); got != c.want {
			t.Errorf("%q: %d %s", c.text, got, body)
		}
		conn.Close()
	}
	conn, r := w.connect("example.com:80")
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: EXAMPLE.com.\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	for _, want := range []int{200, 403} {
		if got, body := answerOf(r); got != want {
			t.Errorf("of two requests at once: %d %s, want %d", got, body, want)
		}
	}
	for range 4 {
		if h := <-hits; h != "example.com" {
			t.Errorf("the server saw %q", h)
		}
	}
	if len(hits) != 0 {
		t.Errorf("%d requests too many", len(hits))
	}
}

func TestWrongKeyIsAskedForItsPassword(t *testing.T) {
	w := newWorld(t, Config{Key: "k3y"}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprint(rw, "hello"+r.Header.Get("Proxy-Authorization"))
	})
	for auth, want := range map[string]int{
		"":                        407,
		"Basic !!!":               407,
		"Basic " + b64("u:wrong"): 407,
		"Basic " + b64("u:"):      407,
		"Bearer " + b64("u:k3y"):  407,
		"Basic " + b64("u:k3y"):   200,
		"basic " + b64(":k3y"):    200,
	} {
		code, body := w.ask("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\nProxy-Authorization: " + auth + "\r\n\r\n")
		if code != want || code == 200 && body != "hello" {
			t.Errorf("%q: %d %q", auth, code, body)
		}
	}
	if code, _ := w.ask("CONNECT example.com:80 HTTP/1.1\r\n\r\n"); code != 407 {
		t.Errorf("CONNECT without a key: %d", code)
	}
	u, _ := url.Parse("http://any:k3y@" + w.http)
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(u)}}
	defer c.CloseIdleConnections()
	if code, _ := get(t, c, "http://example.com/"); code != 200 {
		t.Errorf("a real client: %d", code)
	}
}

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func TestOddHostsAreRefusedByHTTP(t *testing.T) {
	w := newWorld(t, Config{}, "*.good.com", "good.com", "*")
	for _, h := range []string{"attacker.com%00.good.com", "attacker.com\x00.good.com", "a b.good.com", "a\tb.good.com", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[fe80::1%25eth0]",
		"good.com:80:80", "good.com:0", "good.com:+80", "good.com:99999", "user@good.com", "good..com", ".good.com", "", "good.com#", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"} {
		for _, text := range []string{"GET http://" + h + "/ HTTP/1.1\r\nHost: " + h + "\r\n\r\n", "CONNECT " + h + ":80 HTTP/1.1\r\nHost: " + h + "\r\n\r\n"} {
			if strings.HasPrefix(text, "CONNECT good.com:") && strings.Count(h, ":") < 2 {
				continue
			}
			if code, body := w.ask(text); code != 403 && code != 400 {
				t.Errorf("%q: %d %s", text, code, body)
			}
		}
	}
	if w.dials() != 0 {
		t.Errorf("dialled %v", w.dialed)
	}
}

// TestAmbiguousFramingIsFramedAnew: what two programs could read differently is refused, or
// goes out as the one message that was read, with one framing. Nothing of it is passed on.
func TestAmbiguousFramingIsFramedAnew(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	heads := make(chan string, 10)
	w.hostileAt("example.com", 80, func(c net.Conn) {
		var seen bytes.Buffer
		in := bufio.NewReader(io.TeeReader(c, &seen))
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			head, _, _ := strings.Cut(seen.String(), "\r\n\r\n")
			head += "\r\n"
			seen.Reset()
			heads <- r.URL.Path + "\r\n" + head
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			seen.Reset()
			io.WriteString(c, hello)
		}
	})
	start := "POST http://example.com/x HTTP/1.1\r\nHost: example.com\r\n"
	chunked := start + "Transfer-Encoding: chunked\r\n\r\n"
	for _, text := range []string{
		start + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		start + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		start + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		start + "Content-Length: +5\r\n\r\nhello",
		start + "Content-Length: 5, 5\r\n\r\nhello",
		start + "Content-Length : 5\r\n\r\nhello",
		start + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		start + "X: 1\r\n folded\r\n\r\n",
		start + "X: 1\n\r\n",
		start + "X: a\rb\r\n\r\n",
		start + "X: a\x00b\r\n\r\n",
		start + "Host: example.com\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 4\r\n\r\n",
		"POST http://example.com/x HTTP/1.0\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"GET http://example.com/x HTTP/1.1\r\n\r\n",
		"GET  http://example.com/x HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com/x HTTP/2.0\r\nHost: example.com\r\n\r\n",
		"\r\nGET http://example.com/x HTTP/1.1\r\nHost: example.com\r\n\r\n",
		start + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked\x0c\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chun\u212aed\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding\x00: chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding\xa0: chunked\r\n\r\n0\r\n\r\n",
		start + "Transfer-Encoding chunked\r\n\r\n0\r\n\r\n",
		start + ": chunked\r\n\r\n",
		"POST http://example.com/x HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: example.com\r\n\r\n0\r\n\r\n",
		start + "Content-Length: 9223372036854775808\r\n\r\n",
		start + "Content-Length: -1\r\n\r\n",
		start + "Content-Length: 0x5\r\n\r\nhello",
		start + "Content-Length: 5 5\r\n\r\nhello",
		start + "Content-Length: 5_0\r\n\r\nhello",
		start + "Content-Length:\r\n\r\n",
		start + "Content-Length: 5\r\n\tX: 1\r\n\r\nhello",
		"GET http://example.com/x\r\n\r\n",
		"GET http://example.com/x HTTP/1.1 \r\nHost: example.com\r\n\r\n",
		"GET http://example.com/x\tHTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com/x HTTP/1.2\r\nHost: example.com\r\n\r\n",
		"GET http://example.com/x http/1.1\r\nHost: example.com\r\n\r\n",
		"GET http://example.com/x HTTP/1.1\rHost: example.com\r\r\n\r\n",
		"GET http://example.com/x y HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\nContent-Length: 5\r\n\r\nhello",
		"CONNECT example.com:80 HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		chunked + "10000000000000000\r\nhello",
		chunked + "ffffffffffffffff\r\nhello",
		chunked + "00000000000000005\r\nhello\r\n0\r\n\r\n",
		chunked + "0x5\r\nhello\r\n0\r\n\r\n",
		chunked + " 5\r\nhello\r\n0\r\n\r\n",
		chunked + "5 5\r\nhello\r\n0\r\n\r\n",
		chunked + "5_0\r\nhello\r\n0\r\n\r\n",
		chunked + "\r\nhello\r\n0\r\n\r\n",
		chunked + ";x\r\nhello\r\n0\r\n\r\n",
		chunked + "5;x=\n\r\nhello\r\n0\r\n\r\n",
		chunked + "5;x=\r\r\nhello\r\n0\r\n\r\n",
		chunked + "5;" + strings.Repeat("x", 2000) + "\r\nhello\r\n0\r\n\r\n",
		chunked + "5\r\nhello0\r\n\r\n",
		chunked + "5\r\nhelloXX0\r\n\r\n",
		chunked + "0\r\nHost: evil.example\r\n\r\n",
		chunked + "0\r\nTransfer-Encoding: chunked\r\n\r\n",
		chunked + "0\r\nX: 1\r\n folded\r\n\r\n",
		chunked + "0\r\nX : 1\r\n\r\n",
		chunked + "0\r\nX: 1\n\r\n",
		chunked + "0\r\nGET / HTTP/1.1\r\n\r\n",
	} {
		c, in := w.raw(text)
		c.(*net.TCPConn).CloseWrite()
		code, body := answerOf(in)
		if code != 200 && code != 400 && code != 403 && code != 501 && code != 502 && code != 505 {
			t.Errorf("%q: %d %s", text, code, body)
		}
		for len(heads) > 0 {
			head := strings.ToLower(<-heads)
			if framings := strings.Count(head, "\ncontent-length:") + strings.Count(head, "\ntransfer-encoding:"); framings > 1 || strings.Count(head, "\nhost: example.com\r") != 1 ||
				!strings.HasPrefix(head, "/x\r\n") || strings.Count(head, "\r") != strings.Count(head, "\n") || strings.Contains(head, "\n ") || strings.Contains(head, "\n\t") || strings.Contains(head, "evil") {
				t.Errorf("%q: the server has %q", text, head)
			}
		}
		c.Close()
	}
}

func TestRequestsOnOneConnectionAreEachDecided(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s:%s:%s", r.URL.Path, b, r.Trailer.Get("T"))
	})
	conn, r := w.raw("POST http://example.com/1 HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: end\r\n\r\n" +
		"POST http://example.com/2 HTTP/1.1\r\nHost: example.com\r\nContent-Length: 3\r\n\r\nxyz" +
		"GET http://evil.example/3 HTTP/1.1\r\nHost: evil.example\r\n\r\n" +
		"GET http://example.com/4 HTTP/1.1\r\nHost: evil.example\r\n\r\n" +
		"GET http://example.com/5 HTTP/1.1\r\nHost: example.com\r\n\r\n")
	for _, want := range []string{"200 /1:abcde:end", "200 /2:xyz:", "403 ", "200 /4::", "200 /5::"} {
		code, body := answerOf(r)
		if got := fmt.Sprint(code, " ", body); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	conn.Close()
	if n := w.dials(); n > 2 {
		t.Errorf("%d connections to one server for requests one after the other", n)
	}
}
