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

// TestANameIsNoWayPastARuleForItsAddress: *.example may be a hostile server of names, and there are public ones that know each address by a name.
func TestANameIsNoWayPastARuleForItsAddress(t *testing.T) {
	const at, name = "10.0.0.5", "10-0-0-5.nip.example"
	answer := func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Method) }
	network := policy.Network{Requests: []policy.RequestRule{{Host: "10.0.0.0/8", Methods: []string{"GET"}}, {Host: "*:81", Methods: []string{"PUT"}}}}
	w := newSecureWorld(t, Config{Network: network}, answer, "*", "10.0.0.0/8")
	s := w.web("unused.example", 80, answer)
	w.mu.Lock()
	w.names[name] = []netip.Addr{netip.MustParseAddr("::ffff:" + at)}
	w.names["other.example"] = []netip.Addr{public}
	w.places[netip.MustParseAddrPort(at+":80")], w.places[netip.AddrPortFrom(public, 81)] = s.Listener.Addr().String(), s.Listener.Addr().String()
	w.places[netip.MustParseAddrPort(at+":443")] = w.server.Listener.Addr().String()
	w.mu.Unlock()
	for asked, want := range map[string]string{
		"GET http://" + at + "/": "200 GET", "DELETE http://" + at + "/": "403", "GET http://" + name + "/": "403", "DELETE http://" + name + "/": "403",
		"PUT http://other.example:81/": "200 PUT", "GET http://other.example:81/": "403",
	} {
		code, text := w.ask(asked + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if got := fmt.Sprint(code, " ", text); !strings.HasPrefix(got, want) || strings.Contains(asked, name) && !strings.Contains(text, `"request rule 10.0.0.0/8"`) {
			t.Errorf("%s: %s", asked, got)
		}
	}
	for _, port := range []uint16{80, 443} {
		if _, got := w.dialSOCKS(named(name, port)); len(got) < 4 || got[3] != replyRefused {
			t.Errorf("SOCKS, port %d: %v", port, got)
		}
		if code, text := w.ask(fmt.Sprintf("CONNECT %s:%d HTTP/1.1\r\nHost: x\r\n\r\n", name, port)); code != 403 {
			t.Errorf("CONNECT, port %d: %d %q", port, code, text)
		}
	}
}

// TestARuleForManyHostsIsForSpecialAddressesToo: another entry opens these, and no entry is as narrow as the rule is wide.
func TestARuleForManyHostsIsForSpecialAddressesToo(t *testing.T) {
	const at = "10.0.0.5"
	for rule, name := range map[string]string{"*": "200 GET", "*:80": "200 GET", "10.0.0.0/7": "403", "0.0.0.0/0:1-99": "403", "10.0.0.0/7:81": "200 DELETE"} {
		n := policy.Network{Hosts: []string{"*", at + ":80"}, Requests: []policy.RequestRule{{Host: rule, Methods: []string{"GET"}}}}
		if err := (policy.Policy{Network: n}).Validate(); err != nil && !strings.HasSuffix(rule, ":81") {
			t.Error(err)
		}
		w := newWorld(t, Config{Network: n})
		w.web("unused.example", 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Method) })
		w.mu.Lock()
		w.names["leads.example"] = []netip.Addr{netip.MustParseAddr(at)}
		w.places[netip.MustParseAddrPort(at+":80")] = w.places[netip.AddrPortFrom(public, 80)]
		w.mu.Unlock()
		want := map[string]string{"GET " + at: "200 GET", "DELETE " + at: "403", "GET leads.example": name, "DELETE leads.example": "403"}
		if strings.HasSuffix(rule, ":81") { // another port's
			want = map[string]string{"DELETE " + at: name, "DELETE leads.example": name}
		}
		for asked, want := range want {
			method, host, _ := strings.Cut(asked, " ")
			code, text := w.ask(method + " http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
			if got := fmt.Sprint(code, " ", text); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: %s", rule, asked, got)
			}
		}
	}
}

// TestANameIsReachedAtItsPrivateAddressAlone: a mirror of a company's, beside a name of another's that leads to the same address.
func TestANameIsReachedAtItsPrivateAddressAlone(t *testing.T) {
	answer := func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "ok") }
	w := newSecureWorld(t, Config{}, answer, "*", "mirror.example:80@private", "meta.example@private")
	s := w.web("unused.example", 80, answer)
	w.mu.Lock()
	for name, at := range map[string]string{"mirror.example": "10.0.0.5", "other.example": "10.0.0.5", "meta.example": "169.254.169.254"} {
		w.names[name] = []netip.Addr{netip.MustParseAddr(at)}
	}
	for _, at := range []string{"10.0.0.5:80", "169.254.169.254:80"} {
		w.places[netip.MustParseAddrPort(at)] = s.Listener.Addr().String()
	}
	w.mu.Unlock()
	for host, want := range map[string]int{"mirror.example": 200, "other.example": 403, "10.0.0.5": 403, "meta.example": 403} {
		if code, text := w.ask("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\n\r\n"); code != want {
			t.Errorf("%s: %d %s", host, code, text)
		}
	}
}
