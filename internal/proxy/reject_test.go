package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestConnectionBeyondTheLimitIsAnswered in each protocol, to clients that wait until
// they are asked and to such as do not, one after the other and many at once, while those
// within the limit go on.
func TestConnectionBeyondTheLimitIsAnswered(t *testing.T) {
	for _, key := range []string{"", "k3y"} {
		w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: 1}}, Key: key}, "good.com")
		w.echo("good.com", 9)
		l := listen(t)
		go w.g.Forward(l, "127.0.0.1:9")
		hello := named("good.com", 9)
		if key != "" {
			hello = "\x05\x01\x02\x01\x01u\x03k3y" + hello[3:]
		}
		held, _ := w.dialSOCKS(hello)
		if key != "" {
			io.ReadFull(held, make([]byte, 2))
		}
		for range 3 * maxRejections {
			c, err := net.Dial("tcp", w.socks)
			if err != nil {
				t.Fatal(err)
			}
			methods := "\x05\x01\x00"
			if key != "" {
				methods = "\x05\x01\x02"
			}
			io.WriteString(c, methods)
			want := []byte{5, methods[2]}
			b := make([]byte, 10)
			if _, err := io.ReadFull(c, b[:2]); err != nil || !bytes.Equal(b[:2], want) {
				t.Errorf("SOCKS greets with %x, %v", b[:2], err)
			}
			if key != "" {
				io.WriteString(c, "\x01\x01u\x03k3y")
				if _, err := io.ReadFull(c, b[:2]); err != nil || b[1] != 0 {
					t.Errorf("SOCKS takes a password with %x, %v", b[:2], err)
				}
			}
			io.WriteString(c, named("good.com", 9)[3:])
			if _, err := io.ReadFull(c, b); err != nil || b[1] != replyRefused {
				t.Errorf("SOCKS says %x, %v", b, err)
			}
			c.Close()
		}
		for !w.g.rejections.Acquire(1) { // beyond mostDeclined the answer comes before the request is read
			runtime.Gosched()
		}
		w.g.rejections.Release()
		// A client of the standard library takes no answer that comes before its request.
		proxied := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.http}), DisableKeepAlives: true}}
		for range 5 {
			code, body := get(t, proxied, "http://good.com/")
			if code != 503 {
				t.Errorf("HTTP says %d %s", code, body)
			}
			has(t, body, "Refused by the sandbox's network policy", "try again when others have ended", "1 are open", "Network.Limits.Connections")
		}
		if _, err := proxied.Get("https://good.com/"); err == nil || !strings.Contains(err.Error(), "too many connections") {
			t.Errorf("CONNECT: %v", err)
		}
		f, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(f); len(b) > 0 {
			t.Errorf("a granted port says %q", b)
		}
		io.WriteString(held, "still\n")
		if line, err := bufio.NewReader(held).ReadString('\n'); line != "still\n" {
			t.Errorf("the one within the limit: %q %v", line, err)
		}
		held.Close()
		w.g.Close()
		s := w.g.Summary()
		if s.Allowed != 1 || s.Denied < 3*maxRejections+7 {
			t.Errorf("%d allowed, %d denied", s.Allowed, s.Denied)
		}
		for _, v := range s.Violations {
			if !strings.Contains(v.Reason, "limit on connections") {
				t.Errorf("%+v", v)
			}
		}
		w.g.tracker.mu.Lock()
		if n := len(w.g.open); n != 0 || w.g.clients != 0 {
			t.Errorf("%d are open, %d clients", n, w.g.clients)
		}
		w.g.tracker.mu.Unlock()
	}
}

// TestRequestIsHeardToItsEnd before it is answered, in whatever pieces it comes, for with an
// answer that comes amid it many clients can do nothing; and is answered if it has no end.
func TestRequestIsHeardToItsEnd(t *testing.T) {
	const says = "HTTP/1.1 503 no\r\n\r\n"
	g := new(Proxy)
	g.open = map[io.Closer]Target{}
	for _, end := range []string{"\r\n", ""} {
		synctest.Test(t, func(t *testing.T) {
			tool, c := net.Pipe()
			go g.rejectConn(c, []byte(says))
			began := time.Now()
			for _, part := range []string{"GET http://good.com/ HT", "TP/1.1\r\nHost: good.com\r\n", end} {
				if _, err := io.WriteString(tool, part); err != nil {
					t.Fatalf("%q: %v", part, err)
				}
			}
			if b, _ := io.ReadAll(io.LimitReader(tool, int64(len(says)))); string(b) != says {
				t.Errorf("%q", b)
			}
			if d := time.Since(began); (d == 0) != (end != "") {
				t.Errorf("after %q it is answered in %v", end, d)
			}
			tool.Close()
		})
	}
}

// TestClientThatDoesNotListenIsNotWaitedFor when it is told that there is no room.
func TestClientThatDoesNotListenIsNotWaitedFor(t *testing.T) {
	g := new(Proxy)
	g.open = map[io.Closer]Target{}
	for _, reads := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			tool, c := net.Pipe()
			defer tool.Close()
			go io.WriteString(tool, "\x05\x01\x00")
			if reads { // and stays
				go io.Copy(io.Discard, tool)
			}
			began := time.Now()
			g.rejectConn(c, []byte{socksVersion, 0})
			if d := time.Since(began); d > rejectTimeout {
				t.Errorf("reads %v: it has taken %v", reads, d)
			}
		})
	}
}

// TestManyAreTurnedAwayWithoutAGoroutineEach: those who say nothing do not make the next
// ones wait either.
func TestManyAreTurnedAwayWithoutAGoroutineEach(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: 1}}}, "good.com")
	w.echo("good.com", 9)
	w.connect("good.com:9")
	conns := make([]net.Conn, 10*maxRejections)
	for i := range conns {
		c, err := net.Dial("tcp", w.http)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns[i] = c
	}
	// Those beyond are answered at once, though they have said nothing.
	if code, _ := answerOf(bufio.NewReader(conns[len(conns)-1])); code != 503 {
		t.Errorf("the last: %d", code)
	}
	if !w.g.rejections.Acquire(maxRejections + 1) {
		t.Errorf("more than %d are listened to", maxRejections)
	}
}

// TestCapturedConnectionBeyondTheLimitIsNotDialled, nor is anybody asked about it.
func TestCapturedConnectionBeyondTheLimitIsNotDialled(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: 1}}}, "good.com", "other.com")
	w.echo("good.com", 9)
	w.connect("good.com:9")
	a, b := net.Pipe()
	defer a.Close()
	err := w.g.CarryTCP(t.Context(), b, Target{Host: mustHost(t, "other.com"), Port: 9, Protocol: "tcp"})
	if r := refusalOf(err); r == nil || r.Limit != limitConnections || r.Host != "other.com" {
		t.Errorf("%v", err)
	}
	if n := w.dials(); n != 1 || len(w.looked) != 1 {
		t.Errorf("%d dialled, looked up %v", n, w.looked)
	}
	if v := w.g.Summary().Violations; len(v) != 1 || v[0].Host != "other.com" || v[0].Port != 9 {
		t.Errorf("%+v", v)
	}
}

// TestBytesLimitEndsATunnelAsAViolation and not as an accident of the connection.
func TestBytesLimitEndsATunnelAsAViolation(t *testing.T) {
	kerneltest.Long(t)
	for _, c := range ways {
		w := newWays(t, policy.NetworkLimits{Bytes: 100 << 10})
		if err := c.move(w, 1<<20); err == nil {
			t.Errorf("%s: a megabyte has passed", c.name)
		}
		events := w.ended()
		s := w.g.Summary()
		if s.Sent+s.Received > 100<<10 || s.Sent+s.Received < 90<<10 {
			t.Errorf("%s: %d bytes have passed: %+v", c.name, s.Sent+s.Received, events)
		}
		told := false
		for _, e := range events {
			told = told || !e.Allowed && strings.Contains(e.Reason, "limit on bytes") && e.Host != ""
		}
		if !told || len(s.Violations) == 0 {
			t.Errorf("%s: %+v", c.name, events)
		}
	}
}

// TestAClientThatComesAtTheEndIsTurnedAwayInSilence: a connection may be accepted while
// the proxy ends, which is no limit's doing.
func TestAClientThatComesAtTheEndIsTurnedAwayInSilence(t *testing.T) {
	for _, p := range []Protocol{HTTP, SOCKS, "forward"} {
		w := newWorld(t, Config{})
		w.g.Close()
		tool, gate := net.Pipe()
		if _, err := w.g.admit(gate, Target{}); err != ErrClosed {
			t.Error(err)
		}
		w.g.reject(gate, p, ErrClosed)
		if b, err := io.ReadAll(tool); len(b) > 0 || err != nil {
			t.Errorf("%s: told %q, %v", p, b, err)
		}
		if s := w.g.Summary(); s.Denied > 0 || s.Allowed > 0 {
			t.Errorf("%s: noted: %+v", p, s)
		}
	}
}
