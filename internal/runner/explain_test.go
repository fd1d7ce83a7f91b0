package runner

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAnExplanationAnswersEveryClientAndEnds: the first, which has the gateway made, and the others;
// a network that is closed at any moment leaves nothing behind.
func TestAnExplanationAnswersEveryClientAndEnds(t *testing.T) {
	of, err := NewNetworks(&policy.Network{Explain: true})
	if err != nil {
		t.Fatal(err)
	}
	wiring := compile.NewNetConfig(policy.Network{Explain: true})
	for clients := range 4 {
		n, err := of.New(wiring, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.serveListener(l, "HTTP", n.serveExplanation)
		var asking sync.WaitGroup
		for range clients {
			asking.Go(func() {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				io.WriteString(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
				answer := make([]byte, 12)
				if _, err := io.ReadFull(c, answer); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 403") {
					t.Errorf("%q, %v", answer, err)
				}
			})
		}
		asking.Wait()
		if n.gatewayMade() != nil != (clients > 0) {
			t.Errorf("%d clients: the gateway is there: %t", clients, n.gatewayMade() != nil)
		}
		for range clients {
			asking.Go(func() {
				if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
					c.Close()
				}
			})
		}
		n.Close()
		asking.Wait()
		if s := n.Summary(); s.Gateway.Denied < clients {
			t.Errorf("%d clients: %d denied", clients, s.Gateway.Denied)
		}
	}
}
