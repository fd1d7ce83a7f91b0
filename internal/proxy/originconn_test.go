package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

// TestARecordThatCameWithAResponseSpoilsTheConnection: two records of TLS are received at once, the
// second holds a response that nothing asked for. The next request is not written, whether or not
// http.Transport has come to wait for the server by then.
func TestARecordThatCameWithAResponseSpoilsTheConnection(t *testing.T) {
	w := newSecureWorld(t, Config{Credentials: bearer()}, nil)
	for _, second := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"} {
		l := listen(t)
		go func() {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			together := &corked{Conn: raw}
			c := tls.Server(together, w.server.TLS)
			defer c.Close()
			c.Read(make([]byte, 1))
			together.hold.Store(true)
			io.WriteString(c, hello)
			if second != "" {
				io.WriteString(c, second)
			}
			together.flush()
			io.Copy(io.Discard, c)
		}()
		raw, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		metered := newMeteredConn(raw, w.g)
		secure := tls.Client(metered, &tls.Config{InsecureSkipVerify: true})
		if err := secure.Handshake(); err != nil {
			t.Fatal(err)
		}
		c := newOriginConn(secure, metered, "")
		defer c.Close()
		turn := c.begin()
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		head := make([]byte, len(hello)-len("hello"))
		if _, err := io.ReadFull(c, head); err != nil {
			t.Fatal(err)
		}
		c.gotResponse(turn, &http.Response{StatusCode: 200, ContentLength: 5})
		if _, err := io.ReadFull(c, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		c.begin()
		if _, err := c.Write([]byte("x")); errors.Is(err, errUnasked) != (second != "") {
			t.Errorf("after %q: %v", second, err)
		}
	}
}
