package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestARecordThatCameWithAResponseSpoilsTheConnection: two records of TLS are received at once, the
// second holds a response that nothing asked for. crypto/tls has it then, and the socket has nothing.
func TestARecordThatCameWithAResponseSpoilsTheConnection(t *testing.T) {
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer()}}, nil)
	for _, second := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"} {
		s := newSender(t, w, true, func(_ int, c *servedConn) {
			for c.asked() {
				c.say(hello, second)
				second = ""
			}
		})
		want := int32(1)
		if second != "" {
			want = 2
		}
		for range 2 {
			if status, text, err := s.send("GET", ""); status != 200 || text != "hello" || err != nil {
				t.Errorf("after %q: %d %q %v", second, status, text, err)
			}
		}
		if n := s.connections.Load(); n != want {
			t.Errorf("%d connections, and not %d", n, want)
		}
	}
}

// TestARequestIsRepeatedIfItMayBe: the server reads a second request, and hangs up.
func TestARequestIsRepeatedIfItMayBe(t *testing.T) {
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		for _, c := range []struct {
			method, body, says string
			repeated           bool
		}{
			{"GET", "", "", true},
			{"HEAD", "", "", true},
			{"OPTIONS", "", "", true},
			{"GET", "", "H", false}, // it has begun to answer
			{"DELETE", "", "", false},
			{"POST", "", "", false},
			{"POST", "a body", "", false},
			{"GET", "a body", "", false},
		} {
			for _, twice := range []bool{false, true} {
				s := newSender(t, w, secure, func(n int, conn *servedConn) {
					if n == 1 {
						conn.asked()
						conn.say(hello)
					} else if !twice {
						conn.answers()
						return
					}
					conn.asked()
					conn.say(c.says)
				})
				if _, _, err := s.send("GET", ""); err != nil {
					t.Fatal(err)
				}
				status, _, err := s.send(c.method, c.body)
				if answered := c.repeated && !twice; answered != (status == 200) || answered != (err == nil) {
					t.Errorf("%v, twice %v: %d %v", c, twice, status, err)
				}
				want := int32(2)
				if c.repeated {
					want = 3
				}
				if n := s.requests.Load(); n != want {
					t.Errorf("%v, twice %v: the server has read %d requests, and not %d", c, twice, n, want)
				}
			}
		}
	})
}

// TestAResponseThatIsCutOffIsAnError wherever it ends, and one whose bytes come one by one is none.
func TestAResponseThatIsCutOffIsAnError(t *testing.T) {
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		for _, response := range []string{
			"HTTP/1.1 100 Continue\r\n\r\n" + hello,
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
		} {
			length := make(chan int, 1)
			s := newSender(t, w, secure, func(_ int, c *servedConn) {
				for c.asked() {
					n := <-length
					for i := range response[:n] {
						io.WriteString(c.Conn, response[i:i+1])
					}
					if n < len(response) {
						return
					}
				}
			})
			for n := range len(response) + 1 {
				length <- n
				status, text, err := s.send("POST", "a body")
				if whole := n == len(response); whole != (err == nil) || whole && (status != 200 || text != "hello") {
					t.Errorf("%q: %d %q %v", response[:n], status, text, err)
				}
				if kept := s.kept(); kept > 0 != (n == len(response)) {
					t.Errorf("%q: %d connections are kept", response[:n], kept)
				}
			}
		}
	})
}

// TestTheEndOfARequestsContextEndsItsConnection, and the cause is the request's error. After the response's end it does not.
func TestTheEndOfARequestsContextEndsItsConnection(t *testing.T) {
	why := errors.New("the client has left")
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		for _, at := range []string{"the head", "the body", "the request's body", "the end"} {
			ctx, leave := context.WithCancelCause(t.Context())
			over := make(chan struct{})
			s := newSender(t, w, secure, func(_ int, c *servedConn) {
				defer close(over)
				switch http.ReadRequest(c.in); at {
				case "the head":
					leave(why)
				case "the body":
					c.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello")
				case "the request's body":
					leave(why)
				case "the end":
					c.say(hello)
				}
				io.Copy(io.Discard, c.in)
			})
			body := ""
			if at == "the request's body" {
				body = strings.Repeat("x", 64<<20)
			}
			res, err := s.RoundTrip(s.request(ctx, "POST", body))
			if err == nil {
				if at == "the body" {
					io.ReadFull(res.Body, make([]byte, 5))
					leave(why)
				}
				_, err = io.ReadAll(res.Body)
			}
			if at == "the end" {
				if leave(why); err != nil || s.kept() != 1 {
					t.Errorf("at %s: %v, %d connections are kept", at, err, s.kept())
				}
				s.idle.close()
			} else if err != why || s.kept() != 0 {
				t.Errorf("at %s: %v, %d connections are kept", at, err, s.kept())
			}
			<-over
			if res != nil {
				s.g.headerBudget.release(requestOf(res.Request.Context()).heads)
			}
		}
	})
}

// TestABodyThatIsNotReadToItsEndEndsTheConnection, and is not read further.
func TestABodyThatIsNotReadToItsEndEndsTheConnection(t *testing.T) {
	inBoth(t, func(t *testing.T, w *secureWorld, secure bool) {
		over := make(chan struct{})
		s := newSender(t, w, secure, func(_ int, c *servedConn) {
			defer close(over)
			c.asked()
			c.say(hello)
			c.asked()
		})
		r := s.request(t.Context(), "GET", "")
		res, err := s.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		<-over
		if n, err := res.Body.Read(make([]byte, 5)); n > 0 || err == nil || err == io.EOF {
			t.Errorf("%d bytes are read after Close: %v", n, err)
		}
		s.g.headerBudget.release(requestOf(r.Context()).heads)
	})
}

// TestIdleConnectionsAreClosed when they have waited for idleWait, when there are too many, and with their pool.
func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Proxy{ctx: t.Context()}
		var pool idleConns
		put := func() *originConn {
			a, _ := net.Pipe()
			metered := newMeteredConn(a, g)
			c := newOriginConn(metered, metered, "")
			pool.put(c)
			return c
		}
		closed := func(c *originConn) bool { return c.metered.ctx.Err() != nil }
		first := put()
		time.Sleep(idleWait / 2)
		second := put()
		time.Sleep(idleWait/2 - time.Nanosecond)
		if closed(first) {
			t.Error("closed too early")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); !closed(first) || closed(second) {
			t.Errorf("the first is closed: %v, the second: %v", closed(first), closed(second))
		}
		time.Sleep(idleWait / 2)
		if synctest.Wait(); !closed(second) {
			t.Error("the second is not closed")
		}
		pool = idleConns{}
		first, second = put(), put()
		for range maxIdleConns - 1 {
			put()
		}
		if !closed(first) || closed(second) {
			t.Errorf("there are too many: the first is closed: %v, the second: %v", closed(first), closed(second))
		}
		pool.close()
		if late := put(); !closed(second) || !closed(late) || len(pool.conns) > 0 {
			t.Error("a connection outlives its pool")
		}
	})
}
