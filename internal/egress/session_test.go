package egress

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// A told is what a server and a client get to know of one exchange.
type told struct {
	Method, URI, Host string
	Asked, Trailer    http.Header

	Hints   []string
	Status  int
	Answer  http.Header
	Body    string
	Whole   bool
	Trailed http.Header
	Event   Event
}

// tell asks example.com for something through a gateway of its own. By a session,
// or, when the connection's first request is one that sessions do not carry,
// by net/http.
func tellOf(t *testing.T, bySession bool, request, response string) told {
	t.Helper()
	var got told
	var mu sync.Mutex
	addr, _ := scripted(t, func(_, _ int, r *http.Request) (string, func(net.Conn)) {
		if r.Method == http.MethodOptions {
			return hello, nil
		}
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
	first := ""
	if !bySession {
		first = "OPTIONS http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"
	}
	c, in := w.raw(first)
	if !bySession {
		if code, text := answerOf(in); code != 200 {
			t.Fatal(code, text)
		}
	}
	io.WriteString(c, request)
	method, _, _ := strings.Cut(request, " ")
	res, err := http.ReadResponse(in, &http.Request{Method: method})
	for err == nil && res.StatusCode < 200 {
		got.Hints = append(got.Hints, fmt.Sprint(res.StatusCode, res.Header))
		res, err = http.ReadResponse(in, &http.Request{Method: method})
	}
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

// TestASessionSaysWhatNetHTTPSays: the server, the client and the harness cannot tell
// which of the two has carried a request.
func TestASessionSaysWhatNetHTTPSays(t *testing.T) {
	const plain = "GET http://example.com/a%2Fb?x=;y HTTP/1.1\r\nHost: example.com\r\n"
	requests := map[string]string{
		"bare":                     plain,
		"with fields":              plain + "User-Agent: me\r\nAccept: */*\r\nCookie: a=b\r\nX-Forwarded-For: 1.2.3.4\r\nForwarded: for=me\r\nVia: x\r\n",
		"with fields for the hop":  plain + "Connection: keep-alive\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nProxy-Authenticate: x\r\n",
		"a head":                   "HEAD http://example.com/ HTTP/1.1\r\nHost: example.com\r\n",
		"another case of the host": "GET http://EXAMPLE.com.:80/ HTTP/1.1\r\nHost: Example.COM\r\n",
		"no path":                  "GET http://example.com HTTP/1.1\r\nHost: example.com\r\n",
		"a query alone":            "GET http://example.com?q HTTP/1.1\r\nHost: example.com\r\n",
		"a range":                  plain + "Range: bytes=0-1\r\nIf-None-Match: x\r\nAccept-Encoding: gzip\r\n",
		"another name":             "GET http://other.com/ HTTP/1.1\r\nHost: other.com\r\n",
		"another Host":             "GET http://example.com/ HTTP/1.1\r\nHost: other.com\r\n",
		"a name and password":      "GET http://me:me@example.com/ HTTP/1.1\r\nHost: example.com\r\n",
		"a length of nothing":      plain + "Content-Length: 0\r\n",
	}
	const ok = "HTTP/1.1 200 OK\r\n"
	responses := map[string]string{
		"a length":              hello,
		"kept":                  ok + "Content-Length: 5\r\nX-A: KEEP\r\n\r\nhello",
		"chunks and a trailer":  ok + "Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n",
		"until the end":         ok + "\r\nhello",
		"of HTTP/1.0":           "HTTP/1.0 404 Gone Fishing\r\nContent-Length: 5\r\n\r\nhello",
		"nothing":               ok + "Content-Length: 0\r\n\r\n",
		"no content":            "HTTP/1.1 204 No Content\r\nX-A: KEEP\r\n\r\n",
		"not modified":          "HTTP/1.1 304 Not Modified\r\nEtag: x\r\nX-A: KEEP\r\n\r\n",
		"hints before":          "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
		"fields for the hop":    ok + "Connection: keep-alive, x-mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Authenticate: x\r\nUpgrade: h2c\r\nX-Yours: 2\r\nContent-Length: 5\r\n\r\nhello",
		"many of one field":     ok + "Set-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\nhello",
		"chunks that end early": ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"no type":               ok + "Content-Length: 6\r\n\r\n<html>",
	}
	for name, request := range requests {
		for kind, response := range responses {
			t.Run(name+", "+kind, func(t *testing.T) {
				mine, theirs := tellOf(t, true, request+"\r\n", response), tellOf(t, false, request+"\r\n", response)
				if !reflect.DeepEqual(mine, theirs) {
					t.Errorf("\nsession  %+v\nnet/http %+v", mine, theirs)
				}
			})
		}
	}
	if n := len(requests) * len(responses); n < 100 {
		t.Errorf("%d pairs", n)
	}
}

// TestASessionCarriesWhatItSays pins that the requests of these tests are a session's
// at all, and which are not.
func TestASessionCarriesPlainRequestsAlone(t *testing.T) {
	const get = "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n"
	for text, want := range map[string]bool{
		get + "\r\n": true,
		get + "Connection: Keep-Alive\r\n\r\nGET":                        true,
		"HEAD http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n": true,
		get:                                                              false,
		get + "Connection: close\r\n\r\n":                                false,
		get + "Connection: x-secret\r\n\r\n":                             false,
		get + "Upgrade: websocket\r\n\r\n":                               false,
		get + "Te: trailers\r\n\r\n":                                     false,
		get + "Trailer: x\r\n\r\n":                                       false,
		get + "Expect: 100-continue\r\n\r\n":                             false,
		get + "Content-Length: 3\r\n\r\nabc":                             false,
		get + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n":              false,
		"GET http://example.com/ HTTP/1.0\r\nHost: example.com\r\n\r\n":  false,
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n":                    false,
		"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n": false,
		"POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 0\r\n\r\n": false,
		"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n":                   true,
		"CONNECT example.com:443 HTTP/1.0\r\nHost: example.com:443\r\n\r\n":                   false,
	} {
		if r, _ := plainRequest([]byte(text)); (r != nil) != want {
			t.Errorf("%q: %v", text, r != nil)
		}
	}
	if _, rest := plainRequest([]byte(get + "\r\nGET http")); string(rest) != "GET http" {
		t.Errorf("what follows is %q", rest)
	}
}

func TestASessionHandsItsConnectionOver(t *testing.T) {
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
			got := tellOf(t, true, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "HTTP/1.1 200 OK\r\n"+head)
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
	select {
	case err := <-ended:
		t.Fatal("the request ended while the client waited:", err)
	case <-time.After(lookTime * 3 / 2): // one look at a client that is there
	}
	c.Close()
	if err := <-ended; err == nil {
		t.Error("the server was told something")
	}
}

// TestAPanicOfAJudgeEndsItsConnection and nothing else.
func TestAPanicOfAJudgeEndsItsConnection(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.web("example.com", 80, func(http.ResponseWriter, *http.Request) {})
	w.g.screen = func(r *http.Request, _ Target) error {
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
}

func TestFieldsOfOneHopStayThere(t *testing.T) {
	h := http.Header{"Connection": {"close, X-One", "x-two"}, "X-One": {"1"}, "X-Two": {"2"}, "X-Three": {"3"}, "Te": {"trailers"}, "Keep-Alive": {"1"},
		"Transfer-Encoding": {"chunked"}, "Proxy-Authorization": {"x"}, "Upgrade": {"h2c"}, "Trailer": {"x"}, "Proxy-Connection": {"x"}, "Proxy-Authenticate": {"x"}}
	if withoutHops(h); !maps.EqualFunc(h, http.Header{"X-Three": {"3"}}, func(a, b []string) bool { return reflect.DeepEqual(a, b) }) {
		t.Error(h)
	}
}
