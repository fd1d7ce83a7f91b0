package sandbox

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/runner"
)

// The tool that asks its proxies for a target in whatever spelling: "absolute T",
// "connect T", "socks HEX", where HEX is an address in the request of SOCKS5, from
// its kind to its port. It prints one line for each: what a server answered, or
// nothing.
var _ = offer(programs, "spell", func(args []string) {
	for _, a := range args {
		way, target, _ := strings.Cut(a, " ")
		fmt.Printf("%s\n", spell(way, target))
	}
})

func spell(way, target string) string {
	proxy, _ := url.Parse(os.Getenv("http_proxy"))
	if way == "socks" {
		proxy = socksAddress()
	}
	c, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	key, get := "", "GET / HTTP/1.0\r\n\r\n"
	if proxy.User != nil {
		r := http.Request{Header: http.Header{}}
		password, _ := proxy.User.Password()
		r.SetBasicAuth(proxy.User.Username(), password)
		key = "Proxy-Authorization: " + r.Header.Get("Authorization") + "\r\n"
	}
	switch way {
	case "absolute":
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n", target, target, key)
	case "connect":
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", target, target, key, get)
	case "socks":
		if err := greetSOCKS(c, proxy.User); err != nil {
			return err.Error()
		}
		address, _ := strconv.Unquote(`"` + target + `"`)
		c.Write(append([]byte{5, 1, 0}, address...))
		io.WriteString(c, get)
	}
	answer, _ := io.ReadAll(bufio.NewReader(c))
	if _, mark, found := strings.Cut(string(answer), "<server "); found {
		mark, _, _ = strings.Cut(mark, ">")
		return mark
	}
	return "nothing"
}

// ofSOCKS writes an address for the tool above.
func ofSOCKS(kind byte, address []byte, port int) string {
	b := append([]byte{kind}, address...)
	var s strings.Builder
	for _, c := range binary.BigEndian.AppendUint16(b, uint16(port)) {
		fmt.Fprintf(&s, `\x%02x`, c)
	}
	return "socks " + s.String()
}

func named(name string) []byte { return append([]byte{byte(len(name))}, name...) }

// TestKernelNetworkReachesNoOtherPortOfTheHarness: one port of the harness's loopback
// is allowed, and a name that can be led there; another one is reached by no
// spelling and by no proxy.
func TestKernelNetworkReachesNoOtherPortOfTheHarness(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, func(*Policy) {}, func(t *testing.T, _ *Sandbox, w walls) {
		open, closed := marked(t, "127.0.0.1:0", "open"), marked(t, "127.0.0.1:0", "closed")
		if l, err := net.Listen("tcp6", fmt.Sprintf("[::1]:%d", closed)); err == nil {
			t.Cleanup(func() { l.Close() })
			go http.Serve(l, mark("closed"))
		}
		s := networkSandbox(t, w, func(p *Policy) {
			p.Network.Hosts = []string{fmt.Sprintf("127.0.0.1:%d", open), "rebound.example", "*"}
		})
		s.ready.Networks.Outside.Dial, s.ready.Networks.Outside.Lookup = nil, func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		var args, want []string
		try := func(answer string, list ...string) {
			for _, a := range list {
				args, want = append(args, a), append(want, answer)
			}
		}
		at := func(host string, port int) string { return host + ":" + strconv.Itoa(port) }
		four, six := []byte{127, 0, 0, 1}, netip.MustParseAddr("::1").AsSlice()
		mappedAddr := netip.MustParseAddr("::ffff:127.0.0.1").As16()
		try("open", "absolute "+at("127.0.0.1", open), "connect "+at("127.0.0.1", open), "connect "+at("[::ffff:7f00:1]", open), "connect "+at("rebound.example", open),
			ofSOCKS(1, four, open), ofSOCKS(4, mappedAddr[:], open), ofSOCKS(3, named("127.0.0.1"), open), ofSOCKS(3, named("ReBound.Example."), open))
		for _, host := range []string{
			"127.0.0.1", "127.0.0.1.", "127.1", "0.0.0.0", "0", "127.0.0.2", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "0177.0.0.1", "127.0.0.01", "localhost", "LOCALHOST.", "a.localhost",
			"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1%25lo]", "[fe80::1%25lo]", "rebound.example", "rebound.example%00", "127。0。0。1", "①②⑦.⓪.⓪.①",
			at("127.0.0.1", open) + "@127.0.0.1", "127.0.0.1:" + strconv.Itoa(open) + ",127.0.0.1", "127.0.0.1\t", "127.0.0.1#", "127.0.0.1%2f",
		} {
			try("nothing", "absolute "+at(host, closed), "connect "+at(host, closed), ofSOCKS(3, named(strings.Trim(host, "[]")), closed))
		}
		for _, port := range []string{strconv.Itoa(closed + 65536), "0" + strconv.Itoa(closed), "+" + strconv.Itoa(closed), strconv.Itoa(open) + ":" + strconv.Itoa(closed), strconv.Itoa(closed) + " "} {
			try("nothing", "absolute 127.0.0.1:"+port, "connect 127.0.0.1:"+port)
		}
		nul := "rebound.example\x00.example"
		try("nothing", ofSOCKS(1, four, closed), ofSOCKS(1, []byte{0, 0, 0, 0}, closed), ofSOCKS(4, six, closed), ofSOCKS(4, make([]byte, 16), closed), ofSOCKS(4, mappedAddr[:], closed),
			ofSOCKS(3, named(nul), open), ofSOCKS(2, four, open), ofSOCKS(1, four, 0))
		out, r := says(t, s, append([]string{"spell"}, args...)...)
		got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if len(got) != len(want) {
			t.Fatalf("%d answers to %d questions\n%s", len(got), len(want), out)
		}
		for i := range got {
			if got[i] != want[i] && (want[i] != "nothing" || got[i] == "closed" || got[i] == "open") {
				t.Errorf("%q: %s, want %s", args[i], got[i], want[i])
			}
		}
		if t.Failed() {
			t.Log(r)
		}
	})
}

func mark(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<server %s>", name) })
}

// marked serves a mark and returns the port.
func marked(t *testing.T, at, name string) int {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: mark(name)}}
	s.Start()
	t.Cleanup(s.Close)
	return l.Addr().(*net.TCPAddr).Port
}

// TestKernelNetworkOfAnotherRunTakesNoKey: a run that was told the address and the
// key of another one's proxies gets to what that run may reach by no way of its own.
func TestKernelNetworkOfAnotherRunTakesNoKey(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		holder := s.Command("/bin/cat")
		holder.Dir = "/"
		in := must(holder.StdinPipe())
		n := newInternet(t)
		handler := mark("allowed")
		n.handler.Store(&handler)
		s.ready.Networks.Outside.Dial = n.world().Dial
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { in.Close(); holder.Wait() }()
		proxies := slices.DeleteFunc(holder.NetworkEnviron(), func(kv string) bool {
			return !strings.HasPrefix(kv, "http_proxy=") && !strings.HasPrefix(kv, runner.SOCKSVariable+"=")
		})
		if out, r := says(t, s, "spell", "absolute allowed.example:80"); out != "allowed\n" {
			t.Fatalf("this run itself: %q\n%s", out, r)
		}
		other := networkSandbox(t, w, func(p *Policy) { p.Network.Hosts = []string{"denied.example", "127.0.0.1:1-65535"} })
		other.ready.Networks.Outside.Dial = n.world().Dial
		for _, way := range []string{"absolute allowed.example:80", "connect allowed.example:80", ofSOCKS(3, named("allowed.example"), 80)} {
			out, err := hostileWith(t, other, proxies, "spell", way).CombinedOutput()
			if strings.Contains(string(out), "allowed") || err != nil {
				t.Errorf("%s: %q, %v", way, out, err)
			}
		}
		if len(proxies) != 2 {
			t.Errorf("%q", proxies)
		}
	})
}

func hostileWith(t *testing.T, s *Sandbox, env []string, args ...string) *Cmd {
	c := hostile(t, s, args...)
	c.Env = append([]string{"A=b"}, env...)
	return c
}

// The tool that leaves as much open as it can: it begins everything and ends
// nothing.
var _ = offer(programs, "clutter", func([]string) {
	proxy, _ := url.Parse(os.Getenv("http_proxy"))
	socks := socksAddress()
	for i := range 300 {
		for _, begun := range []struct{ at, text string }{
			{proxy.Host, ""}, {proxy.Host, "GET http://allowed.example/ HT"}, {proxy.Host, "CONNECT allowed.example:443 HTTP/1.1\r\n"},
			{proxy.Host, "POST http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1000\r\n\r\nx"}, {socks.Host, "\x05"}, {socks.Host, "\x05\x01\x00\x05\x01\x00\x03\xff"},
		} {
			if c, err := net.Dial("tcp", begun.at); err == nil {
				io.WriteString(c, begun.text)
				kept = append(kept, c)
			}
		}
		if i == 0 {
			fmt.Println(spell("connect", "allowed.example:80"))
		}
	}
	fmt.Println(len(kept) > 1000)
})

var kept []net.Conn

// TestKernelNetworkLeavesNothingOfAClutter: neither a goroutine nor a descriptor, though
// the tool has ended nothing itself.
func TestKernelNetworkLeavesNothingOfAClutter(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		says(t, s, "clutter") // what is made once
		goroutines, descriptors := runtime.NumGoroutine(), descriptorCount(t)
		out, r := says(t, s, "clutter")
		if !strings.HasSuffix(out, "true\n") {
			t.Errorf("%q\n%s", out, r)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		settled := func() bool { return runtime.NumGoroutine() <= goroutines && descriptorCount(t) <= descriptors }
		for deadline := time.Now().Add(time.Minute); !settled() && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if !settled() {
			b := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before; %d descriptors, %d before\n%s", runtime.NumGoroutine(), goroutines, descriptorCount(t), descriptors, b[:runtime.Stack(b, true)])
		}
	})
}

func descriptorCount(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}
