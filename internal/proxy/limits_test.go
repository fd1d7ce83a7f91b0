package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestConnectionsBeyondTheLimitAreTurnedAway(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: 2}}}, "good.com")
	w.echo("good.com", 9)
	a, _ := w.connect("good.com:9")
	w.connect("good.com:9")
	code, body := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n")
	if code != 503 {
		t.Errorf("%d %s", code, body)
	}
	has(t, body, "limit on connections is reached: 2 are open", "try again when others have ended", "Network.Limits.Connections")
	if _, got := w.dialSOCKS(named("good.com", 9)); len(got) < 4 || got[3] != replyRefused {
		t.Errorf("SOCKS: %x", got)
	}
	a.Close()
	for range 1000 { // until the proxy has seen it
		if c, got := w.dialSOCKS(named("good.com", 9)); len(got) == 12 {
			c.Close()
			return
		}
	}
	t.Error("a place that is free again is not given")
}

func TestBytesBeyondTheLimitDoNotPass(t *testing.T) {
	const most = 1 << 20
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Bytes: most}}}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) { io.CopyN(rw, zeros{}, 10<<20) })
	l := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.CopyN(c, zeros{}, 10<<20)
			c.Close()
		}
	}()
	w.put("good.com", 9, l.Addr().String())
	_, r := w.connect("good.com:9")
	n, _ := io.Copy(io.Discard, r)
	if n > most || n < most-bufferSize {
		t.Errorf("%d bytes passed", n)
	}
	for _, text := range []string{"GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n", "CONNECT good.com:9 HTTP/1.1\r\n\r\n"} {
		if code, body := w.ask(text); code != 403 || !strings.Contains(body, "limit on bytes") {
			t.Errorf("%d %s", code, body)
		}
	}
	w.g.Close()
	if s := w.g.Summary(); s.Sent+s.Received > most {
		t.Errorf("%+v", s)
	}
}

func TestBytesOfPlainRequestsCountToo(t *testing.T) {
	const most = 1 << 20
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Bytes: most}}}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			io.Copy(io.Discard, r.Body)
			return
		}
		io.CopyN(rw, zeros{}, 10<<20)
	})
	resp, err := w.client(nil).Get("http://good.com/")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, resp.Body); n > most || err == nil {
		t.Errorf("%d bytes passed, %v", n, err)
	}
	if s := w.g.Summary(); s.Sent+s.Received > most {
		t.Errorf("%+v", s)
	}
}

func TestHeaderOfMegabytesIsRefused(t *testing.T) {
	kerneltest.Long(t)
	w := newWorld(t, Config{}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("X", strings.Repeat("x", 4<<20)) })
	for _, text := range []string{
		"GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\nX: %s\r\n\r\n",
		"GET http://good.com/%s HTTP/1.1\r\nHost: good.com\r\n\r\n",
		"CONNECT good.com:80 HTTP/1.1\r\nX: %s\r\n\r\n",
		"%s",
	} {
		c, r := w.raw("")
		go fmt.Fprintf(c, text, strings.Repeat("x", 4<<20))
		if code, _ := answerOf(r); code != 431 && code != 400 && code != 0 { // 0: reset, for what was sent and not read
			t.Errorf("%.20q: %d", text, code)
		}
	}
	if code, _ := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n"); code != 502 {
		t.Errorf("megabytes from the server: %d", code)
	}
	c, r := w.connect("good.com:80")
	go io.WriteString(c, "GET /"+strings.Repeat("x", 4<<20))
	if b, _ := io.ReadAll(r); len(b) > 0 {
		t.Errorf("a line without an end: %q", b)
	}
}

// TestSlowReaderHoldsNoMemory lets servers send without end to clients that do not
// read: what the proxy holds of it is nothing, or a buffer.
func TestSlowReaderHoldsNoMemory(t *testing.T) {
	kerneltest.Long(t)
	w := newWorld(t, Config{}, "good.com")
	l := listen(t)
	sent := make(chan int64, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c.SetWriteDeadline(time.Now().Add(time.Second))
				n, _ := io.CopyN(c, zeros{}, 1<<30)
				sent <- n
				<-t.Context().Done()
				c.Close()
			}()
		}
	}()
	w.put("good.com", 9, l.Addr().String())
	const clients = 40
	before := heap()
	for range clients {
		w.connect("good.com:9")
	}
	for range clients {
		if n := <-sent; n == 1<<30 {
			t.Error("all of it was taken in")
		}
	}
	if grown := heap() - before; grown > clients*4*bufferSize {
		t.Errorf("%d bytes more for %d clients", grown, clients)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func TestRedirectIsTheClientsToFollow(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Location", r.URL.RawQuery)
		rw.WriteHeader(http.StatusFound)
	})
	for _, to := range []string{"http://evil.example/", "http://169.254.169.254/", "//127.0.0.1/"} {
		resp, err := w.client(nil).Get("http://good.com/?" + to)
		if err != nil || resp.StatusCode != 302 || resp.Header.Get("Location") != to {
			t.Error(resp, err)
		}
	}
	for _, a := range w.dialed {
		if a.Addr() != public {
			t.Errorf("dialled %v", a)
		}
	}
}

func TestForwardReachesWhatWasGranted(t *testing.T) {
	w := newWorld(t, Config{})
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "granted") }))
	defer s.Close()
	w.places[addrPort(s.Listener.Addr().String())] = s.Listener.Addr().String()
	l := listen(t)
	done := make(chan error, 1)
	go func() { done <- w.g.Forward(l, s.Listener.Addr().String()) }()
	if code, body := get(t, http.DefaultClient, "http://"+l.Addr().String()); code != 200 || body != "granted" {
		t.Errorf("%d %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	e := w.ended()
	if err := <-done; err != nil || len(e) != 1 || e[0].Protocol != "forward" || !e[0].Allowed {
		t.Errorf("%v %+v", err, e)
	}
	if err := w.g.Forward(listen(t), "no address"); err == nil {
		t.Error("forwarded to nowhere")
	}
}

func TestWhatNothingWouldCarryOutIsRefused(t *testing.T) {
	if g, err := New(Config{Network: policy.Network{Credentials: []policy.Credential{{}}}}); err == nil || g != nil {
		t.Error(err)
	}
	if g, err := New(Config{Network: policy.Network{Requests: []policy.RequestRule{{}}}}); err == nil || g != nil {
		t.Error(err)
	}
	w := newWorld(t, Config{})
	if err := w.g.Serve(listen(t), "gopher"); err == nil {
		t.Error("served an unknown protocol")
	}
}

func TestHarnesssOwnProxyIsNotUsed(t *testing.T) {
	l := listen(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://"+l.Addr().String())
	}
	w := newWorld(t, Config{}, "good.com")
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {})
	if code, _ := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n"); code != 200 || w.dials() != 1 {
		t.Error(code, w.dialed)
	}
}

func TestRequestsThatThePolicyJudgesCannotHide(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "good.com", Methods: []string{"GET"}}}}}, "good.com")
	w.echo("good.com", 9)
	w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "s3cret") })
	for _, sent := range [][]byte{{0, 1, 2}, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")} {
		c, r := w.connect("good.com:9")
		c.Write(sent)
		if b, _ := io.ReadAll(r); len(b) > 0 {
			t.Errorf("%q passed", b)
		}
	}
	for _, inside := range []bool{false, true} {
		for method, want := range map[string]int{"GET": 200, "POST": 403} {
			var c net.Conn
			var r *bufio.Reader
			target := "/"
			if inside {
				c, r = w.connect("good.com:80")
			} else {
				c, r = w.raw("")
				target = "http://good.com/"
			}
			io.WriteString(c, method+" "+target+" HTTP/1.1\r\nHost: good.com\r\nContent-Length: 0\r\n\r\n")
			if code, body := answerOf(r); code != want || code == 200 && body != "s3cret" {
				t.Errorf("%s inside %v: %d %s", method, inside, code, body)
			}
		}
	}
}
