package proxy

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestWhatIsBoundToAnAddressGoesToNoOtherHost: a server has other hosts at its address, to which a credential was sent, and at which
// requests were judged by the rule for the address.
func TestWhatIsBoundToAnAddressGoesToNoOtherHost(t *testing.T) {
	const at = "127.0.0.1"
	for name, network := range map[string]policy.Network{
		"a credential":   {Credentials: []policy.Credential{{Name: "TOKEN", Secret: testSecret, Hosts: []string{at + ":443"}, Place: "bearer"}}},
		"a request rule": {Requests: []policy.RequestRule{{Host: at + ":443", Methods: []string{"GET"}}, {Host: at + ":80", Methods: []string{"GET"}}}},
		"neither":        {},
	} {
		w := newSecureWorld(t, Config{Network: network}, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) }, at+":443", at+":80")
		s := w.web("unused.example", 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Host) })
		w.mu.Lock()
		w.places[netip.MustParseAddrPort(at+":443")] = w.server.Listener.Addr().String()
		w.places[netip.MustParseAddrPort(at+":80")] = s.Listener.Addr().String()
		w.mu.Unlock()
		ask := func(c net.Conn, host string) (int, string) {
			fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
			return answerOf(bufio.NewReader(c))
		}
		if name != "neither" {
			for host, want := range map[string]int{at: 200, at + ":443": 200, "": 200, "other-tenant.example": 403, "127.0.0.2": 403} {
				c, err := w.tls(at+":443", at)
				if err != nil {
					t.Fatal(err)
				}
				code, text := ask(c, host)
				if code != want || code == 200 && text != at || host == "other-tenant.example" && !strings.Contains(text, "what would work: a request to the address by itself") {
					t.Errorf("%s: %q: %d %q", name, host, code, text)
				}
			}
		}
		want := 200
		if name == "a request rule" {
			want = 403
		}
		c, _ := w.connect(at + ":80")
		if code, text := ask(c, "other-tenant.example"); code != want {
			t.Errorf("%s, in clear text: %d %q", name, code, text)
		}
	}
}
