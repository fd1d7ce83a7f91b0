package proxy

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestFirstBytesHaveOneDeadline: a client that goes on saying a little has as little time
// as one that says nothing more.
func TestFirstBytesHaveOneDeadline(t *testing.T) {
	for what, text := range map[string]string{"a line": "GET /" + strings.Repeat("x", 8<<10), "a ClientHello": string(clientHello(t, "good.com"))} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			defer a.Close()
			var drips sync.WaitGroup
			defer drips.Wait()
			drips.Go(func() {
				for _, c := range []byte(text[1:]) {
					time.Sleep(time.Second)
					if _, err := a.Write([]byte{c}); err != nil {
						return
					}
				}
			})
			began := time.Now()
			kind, head, err := sniff(b, []byte(text[:1]))
			if kind == sniffedTLS {
				began = time.Now()
				_, err = readClientHello(b, head, func(*tls.ClientHelloInfo) error { return nil })
			}
			b.Close()
			if refusalOf(err) == nil && !errors.Is(err, errHello) || time.Since(began) != headerTimeout {
				t.Errorf("%s, a byte a second: %v after %v", what, err, time.Since(began))
			}
		})
	}
}

// stalled makes a world whose exchanges may be idle for a moment only.
func stalled(t *testing.T, h http.HandlerFunc) (*secureWorld, chan policy.Connection) {
	t.Helper()
	told := make(chan policy.Connection, 100)
	w := newSecureWorld(t, Config{Network: policy.Network{Credentials: bearer(), Observe: func(e policy.Connection) { told <- e }}}, h)
	w.web("example.com", 80, h)
	w.g.idleTimeout = 50 * time.Millisecond
	return w, told
}

// TestBodyThatDoesNotComeEndsItsRequest in HTTP/1, plain and within TLS.
func TestBodyThatDoesNotComeEndsItsRequest(t *testing.T) {
	over := make(chan error, 10)
	var begun atomic.Int64
	w, told := stalled(t, func(rw http.ResponseWriter, r *http.Request) {
		begun.Add(1)
		_, err := io.Copy(io.Discard, r.Body)
		over <- err
	})
	const head = "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1000\r\n\r\nbegun"
	for _, secure := range []bool{false, true} {
		var c net.Conn
		if secure {
			c, _ = w.tls("example.com:443", "example.com", "http/1.1")
			io.WriteString(c, strings.Replace(head, "%s", "/", 1))
		} else {
			c, _ = w.raw(strings.Replace(head, "%s", "http://example.com/", 1))
		}
		io.Copy(io.Discard, c) // ends
		if e := <-told; !strings.Contains(e.Err, "nothing was sent") {
			t.Errorf("%+v", e)
		}
		c.Close()
		if secure {
			<-told // the tunnel's
		}
	}
	w.g.Close()
	for begun.Load() > 0 { // none where the machine was too slow for the head to reach the server
		begun.Add(-1)
		if err := <-over; err == nil {
			t.Error("the server has had all of the body")
		}
	}
}

// TestRequestThatMovesIsNotEnded however long it takes.
func TestRequestThatMovesIsNotEnded(t *testing.T) {
	x := &proxiedRequest{g: &Proxy{idleTimeout: time.Hour}, c: new(clientConn)}
	synctest.Test(t, func(t *testing.T) {
		ctx, end := x.watchIdle(context.Background(), nil)
		for range 20 {
			time.Sleep(50 * time.Minute)
			x.received.Add(1)
		}
		if ctx.Err() != nil {
			t.Error(context.Cause(ctx))
		}
		end()
		if x.err != nil || ctx.Err() == nil {
			t.Error(x.err, ctx.Err())
		}
	})
}
