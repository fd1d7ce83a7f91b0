package proxy

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestProtocolThatNobodyAskedForIsNotSwitchedTo: a server that helps the tool would
// otherwise turn a request that the rules allow into a connection that they do not see.
func TestProtocolThatNobodyAskedForIsNotSwitchedTo(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing was asked for":     "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"an upgrade without a name": "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n",
		"another one":               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
	} {
		for _, ask := range []string{"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"} {
			w := newWorld(t, Config{Network: policy.Network{Requests: []policy.RequestRule{{Host: "good.com", Methods: []string{"GET"}, Paths: []string{"/ok"}}}}}, "good.com")
			got := make(chan string, 2)
			w.web("good.com", 80, func(rw http.ResponseWriter, r *http.Request) {
				c, b, _ := rw.(http.Hijacker).Hijack()
				defer c.Close()
				fmt.Fprint(b, answer)
				b.Flush()
				c.SetReadDeadline(time.Now().Add(time.Minute))
				line, err := b.ReadString('\n')
				if errors.Is(err, os.ErrDeadlineExceeded) {
					line = "nothing, and not the end"
				}
				got <- line
			})
			c, r := w.raw("GET http://good.com/ok HTTP/1.1\r\nHost: good.com\r\n" + ask + "\r\n")
			res, err := http.ReadResponse(r, nil)
			if err != nil || res.StatusCode != http.StatusBadGateway {
				t.Errorf("%s, after %q: %v %v", name, ask, res, err)
				c.Close()
				continue
			}
			io.Copy(io.Discard, res.Body)
			io.WriteString(c, "POST /admin HTTP/1.1\r\nHost: good.com\r\n\r\n")
			http.ReadResponse(bufio.NewReader(r), nil)
			if line := <-got; line != "" {
				t.Errorf("%s, after %q: the server was sent %q", name, ask, line)
			}
		}
	}
}
