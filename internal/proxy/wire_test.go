package proxy

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestATerminatedConnectionIsForItsTargetAlone(t *testing.T) {
	hits := make(chan string, 100)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, func(rw http.ResponseWriter, r *http.Request) { hits <- r.Host + r.URL.Path })
	if _, err := w.tls("example.com:443", "api.example.com"); err == nil {
		t.Error("another server name than CONNECT's is served")
	}
	res, body := w.do(w.inside(), "GET", "https://example.com/", func(r *http.Request) { r.Host = "api.example.com" })
	if res.StatusCode != 403 {
		t.Errorf("another Host: %s %q", res.Status, body)
	}
	for name, text := range map[string]string{
		"another Host":                         "GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"another port":                         "GET / HTTP/1.1\r\nHost: example.com:8443\r\n\r\n",
		"a URL of another host":                "GET https://api.example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a URL of another scheme":              "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a user's name in the URL":             "GET https://u@example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT within":                       "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"CONNECT within, to itself":            "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"TRACE":                                "TRACE / HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"a second request to another":          "GET /first HTTP/1.1\r\nHost: example.com\r\n\r\nGET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
		"two framings of one body, the second": "POST /first HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
		"two lengths of one body":              "POST / HTTP/1.1\r\nHost: example.com\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
		"bare line feeds, another Host":        "GET / HTTP/1.1\nHost: api.example.com\n\n",
		"HTTP/2 where HTTP/1 was agreed":       preface,
		"an upgrade to HTTP/2 is not asked on": "GET /first HTTP/1.1\r\nHost: example.com\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		c, err := w.tls("example.com:443", "example.com", "http/1.1")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, text)
		r := bufio.NewReader(c)
		code, _ := answerOf(r)
		if strings.Contains(text, "/first") {
			if code != 200 || <-hits != "example.com/first" {
				t.Errorf("%s: the first request is answered %d", name, code)
			}
			code, _ = answerOf(r)
		}
		if code == 200 {
			t.Errorf("%s is served", name)
		}
		c.Close()
	}
	if len(hits) != 0 {
		t.Errorf("the server was asked for %s", <-hits)
	}
}

func TestRequestRulesHoldOnTheWire(t *testing.T) {
	hits := make(chan string, 100)
	w := newSecureWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "example.com", Methods: []string{"GET"}, Paths: []string{"/ok"}}}}},
		func(rw http.ResponseWriter, r *http.Request) { hits <- r.Method + " " + r.RequestURI })
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) { hits <- "plain " + r.RequestURI })
	ask := func(first string) int {
		c, err := w.tls("example.com:443", "example.com", "http/1.1")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, first+" HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n")
		method, _, _ := strings.Cut(first, " ")
		res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		if err != nil {
			return 0
		}
		return res.StatusCode
	}
	for _, first := range []string{
		"POST /ok", "get /ok", "GET /", "GET /okay", "GET /ok/../admin", "GET /ok/%2e%2e/admin", "GET /ok%2f..%2fadmin", "GET /ok/..;/admin", "GET //ok", "GET /ok//x", "GET /ok/%252e%252e/admin",
		`GET /ok/..\admin`, "GET /ok/%5c..%5cadmin", "GET https://example.com/admin", "GET /OK", "OPTIONS *", "GET /ok/%c0%ae%c0%ae/admin", "TRACE /ok",
	} {
		if code := ask(first); code == 200 || len(hits) != 0 {
			t.Errorf("%s: %d", first, code)
		}
	}
	for first, want := range map[string]string{"GET /ok": "GET /ok", "GET /ok/a%20b?x=/../y": "GET /ok/a%20b?x=/../y", "HEAD /ok": "HEAD /ok", "GET https://example.com/ok": "GET /ok"} {
		if code := ask(first); code != 200 {
			t.Errorf("%s: %d", first, code)
		} else if got := <-hits; got != want {
			t.Errorf("%s: the server saw %q", first, got)
		}
	}
	plain := w.client(nil)
	if code, _ := get(t, plain, "http://example.com/ok"); code != 200 || <-hits != "plain /ok" {
		t.Errorf("plain HTTP by the proxy: %d", code)
	}
	if code, _ := get(t, plain, "http://example.com/admin"); code != 403 {
		t.Errorf("plain HTTP by the proxy: %d", code)
	}
	conn, r := w.connect("example.com:80")
	io.WriteString(conn, "GET /admin HTTP/1.1\r\nHost: example.com\r\n\r\n")
	if code, _ := answerOf(r); code != 403 {
		t.Errorf("plain HTTP in a tunnel: %d", code)
	}
	conn, _ = w.connect("example.com:80")
	io.WriteString(conn, preface+"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	if b, _ := io.ReadAll(conn); len(b) != 0 {
		t.Errorf("HTTP/2 in clear text in a tunnel: %q", b)
	}
}

func TestATrailerDoesNotFollowARequestThatWasJudged(t *testing.T) {
	const request = "POST http://%s/ok HTTP/1.1\r\nHost: %s\r\nTrailer: X-A\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-A: a\r\nX-Http-Method-Override: DELETE\r\n\r\n"
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "judged.com", Methods: []string{"POST"}, Paths: []string{"/ok"}}}}}, "judged.com", "other.com")
	for name, want := range map[string]string{"judged.com": "map[]", "other.com": "map[X-A:[a]]"} {
		w.web(name, 80, func(rw http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			fmt.Fprint(rw, r.Trailer)
		})
		if code, body := w.ask(fmt.Sprintf(request, name, name)); code != 200 || body != want {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestAnAddressIsNoWayAroundTheRulesOfItsName(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "example.com", Methods: []string{"GET"}}}}},
		func(rw http.ResponseWriter, r *http.Request) { t.Error("the server was asked") }, public.String())
	conn, _ := w.connect(public.String() + ":443")
	c := tls.Client(conn, &tls.Config{ServerName: "example.com", InsecureSkipVerify: true})
	if err := c.Handshake(); err == nil {
		t.Error("the address is a way to the name, by the TLS server name")
	}
}
