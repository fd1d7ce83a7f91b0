package proxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A told is what a server and a client get to know of one exchange.
type told struct {
	Method, URI, Host string
	Asked, Trailer    http.Header

	Status  int
	Answer  http.Header
	Body    string
	Whole   bool
	Trailed http.Header
	Event   policy.Connection
}

// tellOf asks example.com for something through a proxy of its own.
func tellOf(t *testing.T, request, response string) told {
	t.Helper()
	var got told
	var mu sync.Mutex
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		mu.Lock()
		defer mu.Unlock()
		got.Method, got.URI, got.Host, got.Asked, got.Trailer = r.Method, r.RequestURI, r.Host, r.Header, r.Trailer
		return response, func(c net.Conn) {
			if !strings.Contains(response, "KEEP") {
				c.Close()
			}
		}
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	c, in := w.raw("")
	io.WriteString(c, request)
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	mu.Lock()
	defer mu.Unlock()
	got.Status, got.Answer, got.Body, got.Whole, got.Trailed = res.StatusCode, res.Header, string(b), err == nil, res.Trailer
	delete(got.Answer, "Date") // net/http adds one
	if method == http.MethodHead {
		delete(got.Answer, "Trailer") // the name of what does not follow: net/http sends it as a field
		got.Trailed = nil
	}
	for _, e := range w.ended() {
		if e.Method == method {
			e.Time, e.Duration, e.Address = time.Time{}, 0, ""
			got.Event = e
		}
	}
	return got
}

func TestRequestsOfOneConnection(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(rw, "%s %s %s", r.Method, r.URL.Path, b)
	})
	w.echo("example.com", 7)
	request := func(method, path, rest string) string {
		return method + " http://example.com" + path + " HTTP/1.1\r\nHost: example.com\r\n" + rest
	}
	// All at once: what was read of the next request must not be lost, nor its Host
	// mistaken for another's.
	c, in := w.raw(request("GET", "/1", "\r\n") + request("GET", "/2", "\r\n") + request("POST", "/3", "Content-Length: 3\r\n\r\nabc") +
		request("GET", "/4", "\r\n") + "GET http://other.com/ HTTP/1.1\r\nHost: other.com\r\n\r\n" + request("GET", "/5", "\r\n"))
	for _, want := range []string{"200 GET /1 ", "200 GET /2 ", "200 POST /3 abc", "200 GET /4 ", "403 Refused", "200 GET /5 "} {
		code, text := answerOf(in)
		if got := fmt.Sprint(code, " ", text); !strings.HasPrefix(got, want) {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	c.Close()
	c, in = w.raw(request("GET", "/1", "\r\n") + "CONNECT example.com:7 HTTP/1.1\r\nHost: example.com:7\r\n\r\n")
	if code, text := answerOf(in); code != 200 {
		t.Fatal(code, text)
	}
	if res, err := http.ReadResponse(in, &http.Request{Method: "CONNECT"}); err != nil || res.StatusCode != 200 {
		t.Fatal(res, err)
	}
	io.WriteString(c, "over there\n")
	if got, err := in.ReadString('\n'); got != "over there\n" {
		t.Error(got, err)
	}
}

// TestABodyThatBreaksOffIsNotWhole: what there is of it is passed on, and the
// connection ends.
func TestABodyThatBreaksOffIsNotWhole(t *testing.T) {
	for name, head := range map[string]string{"a length": "Content-Length: 9\r\n\r\nhello", "chunks": "Transfer-Encoding: chunked\r\n\r\n9\r\nhello", "after a chunk": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
		t.Run(name, func(t *testing.T) {
			got := tellOf(t, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK\r\n"+head)
			if got.Status != 200 || got.Body != "hello" || got.Whole || got.Event.Err == "" || got.Event.Received != 5 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAPartOfABodyIsNotKeptBack: a server may say something and then wait, for hours,
// to say more.
func TestAPartOfABodyIsNotKeptBack(t *testing.T) {
	for name, head := range map[string]string{"chunks": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "a length": "Content-Length: 10\r\n\r\nhello", "no length": "\r\nhello"} {
		t.Run(name, func(t *testing.T) {
			more := make(chan string)
			addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) {
				return "HTTP/1.1 200 OK\r\n" + head, func(c net.Conn) { io.WriteString(c, <-more); c.Close() }
			})
			w := newWorld(t, Config{}, "example.com")
			w.put("example.com", 80, addr)
			_, in := w.raw("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "hello" {
				t.Fatal(string(b), err)
			}
			more <- map[string]string{"chunks": "5\r\nworld\r\n0\r\n\r\n", "a length": "world", "no length": "world"}[name]
			if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != "world" {
				t.Error(string(rest), err)
			}
		})
	}
}

// TestNobodyWaitsForAClientThatHasGone: the server's connection ends with the
// client's, although the server says nothing.
func TestNobodyWaitsForAClientThatHasGone(t *testing.T) {
	asked, ended := make(chan bool), make(chan error)
	addr, _ := scripted(t, func(int, int, *http.Request) (string, func(net.Conn)) {
		asked <- true
		return "", func(c net.Conn) {
			_, err := c.Read(make([]byte, 1))
			ended <- err
		}
	})
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 80, addr)
	c, _ := w.raw("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
	<-asked
	c.Close()
	if err := <-ended; err == nil {
		t.Error("the server was told something")
	}
}

// TestAPanicOfAJudgeEndsItsConnection and nothing else, and the record has it.
func TestAPanicOfAJudgeEndsItsConnection(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(http.ResponseWriter, *http.Request) {})
	w.g.judgeRequest = func(r *http.Request, _ Target) error {
		if r.URL.Path == "/bad" {
			panic("a rule")
		}
		return nil
	}
	if code, _ := w.ask("GET http://example.com/bad HTTP/1.1\r\nHost: example.com\r\n\r\n"); code != 0 {
		t.Error("answered", code)
	}
	if code, _ := w.ask("GET http://example.com/good HTTP/1.1\r\nHost: example.com\r\n\r\n"); code != 200 {
		t.Error("the next one:", code)
	}
	if e := w.ended(); len(e) != 2 || e[0].Path != "/bad" || e[1].Path != "/good" {
		t.Errorf("told of %+v", e)
	}
}

// TestFieldsOfOneHopStayThere, and what is a server's and a client's own business passes as it is.
func TestFieldsOfOneHopStayThere(t *testing.T) {
	got := tellOf(t, "GET http://example.com/a%2Fb?x=;y HTTP/1.1\r\nHost: example.com\r\nConnection: x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"+
		"Proxy-Authorization: Basic eDp5\r\nTe: deflate\r\nUpgrade: h2c\r\nCookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=me\r\nVia: x\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nConnection: keep-alive, x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\nX-Yours: 2\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n6\r\n<html>\r\n0\r\nX-Sum: 1\r\n\r\n")
	want := told{
		Method: "GET", URI: "/a%2Fb?x=;y", Host: "example.com", Body: "<html>", Whole: true, Status: 200,
		Asked:   http.Header{"Cookie": {"a=b"}, "X-Forwarded-For": {"1.2.3.4"}, "Forwarded": {"for=me"}, "Via": {"x"}},
		Answer:  http.Header{"X-Yours": {"2"}, "Set-Cookie": {"a", "b"}},
		Trailed: http.Header{"X-Sum": {"1"}},
	}
	got.Event = policy.Connection{}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}
