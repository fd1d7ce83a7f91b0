package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// It opens a tunnel, says so, and goes on in it when it is told to.
var _ = offer(programs, "session tunnel", func(args []string) {
	proxy, _ := url.Parse(os.Getenv("http_proxy"))
	c, err := net.Dial("tcp", proxy.Host)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: args[0]}, Host: args[0], Header: http.Header{}}
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
		r.Header["Proxy-Authorization"] = r.Header["Authorization"]
	}
	r.Write(c)
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, r)
	if err != nil || res.StatusCode != http.StatusOK {
		fmt.Println(res, err)
		return
	}
	io.WriteString(c, "\x00before\n")
	in.ReadString('\n') // that it has arrived
	fmt.Println("open")
	io.ReadFull(os.Stdin, make([]byte, 1))
	for range 100 {
		if _, err = io.WriteString(c, "after\n"); err != nil {
			break
		}
	}
	_, err = in.ReadByte()
	fmt.Println("ended:", err)
})

// inNetworkSession runs a test in a session with the network of some hosts, as root and as an ordinary user, with namespaces and without.
// got returns what was sent to the first connection to port 9 of any host, once that has ended.
func inNetworkSession(t *testing.T, change func(p *Policy), body func(t *testing.T, s *Session, got func() string)) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, []walls{netWalls[0], netWalls[3]}, func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		of := networkSandbox(t, w, change)
		got := recorded(t, of)
		s, err := of.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s, got)
	})
}

// TestKernelASessionsHostsCanBeSet: wider and narrower, for the next connection and for what is open; reports and the observer say which they were.
func TestKernelASessionsHostsCanBeSet(t *testing.T) {
	var seen observed
	change := func(p *Policy) {
		seen.take()
		p.Observe = seen.observe
		p.Network.Hosts, p.Network.Deny = []string{"allowed.example"}, []string{"sub.allowed.example"}
	}
	inNetworkSession(t, change, func(t *testing.T, s *Session, got func() string) {
		fetch := func(allowed, denied string) *Report {
			t.Helper()
			c := s.program("fetch", "http://"+allowed+"/", "http://"+denied+"/")
			out, err := c.Output()
			if lines := strings.Split(string(out), "\n"); err != nil || len(lines) < 2 || !strings.HasPrefix(lines[0], "200 ") || !strings.HasPrefix(lines[1], "403 ") {
				t.Errorf("%s and %s: %s %v", allowed, denied, out, err)
			}
			return c.Report()
		}
		first := fetch("allowed.example", "denied.example")
		tunnel := s.program("session tunnel", "allowed.example:9")
		in, err := tunnel.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := tunnel.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := tunnel.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		if line, _ := said.ReadString('\n'); line != "open\n" {
			t.Fatal(line)
		}
		if err := s.SetHosts("denied.example", "sub.allowed.example"); err != nil {
			t.Fatal(err)
		}
		in.Write([]byte{1})
		if line, _ := said.ReadString('\n'); !strings.HasPrefix(line, "ended: ") {
			t.Errorf("the tool's end of the tunnel: %q", line)
		}
		tunnel.Wait()
		if text := got(); !strings.Contains(text, "before") || strings.Contains(text, "after") {
			t.Errorf("the host that is no longer allowed was sent %q", text)
		}
		second := fetch("denied.example", "allowed.example")
		fetch("denied.example", "sub.allowed.example") // of the deny-list, whatever SetHosts says
		if err := s.SetHosts(); err != nil {
			t.Fatal(err)
		}
		none := s.program("fetch", "http://denied.example/")
		if out, err := none.Output(); err != nil || !strings.HasPrefix(string(out), "403 ") {
			t.Errorf("no host: %s %v", out, err)
		}
		const set, nothing = "by Session.SetHosts: denied.example, sub.allowed.example", "by Session.SetHosts: none"
		for i, test := range []struct {
			r         *Report
			set, none bool
		}{{first, false, false}, {second, true, false}, {tunnel.Report(), true, false}, {none.Report(), false, true}} {
			notes := strings.Join(test.r.Bound(policy.BoundNetwork).Notes, "\n")
			if strings.Contains(notes, set) != test.set || strings.Contains(notes, nothing) != test.none {
				t.Errorf("report %d: %s", i, notes)
			}
		}
		s.Close()
		var told []string
		for _, e := range seen.take() {
			if e.Kind == policy.EventHosts {
				told = append(told, fmt.Sprint(e.Hosts.Before, e.Hosts.Now, e.Run == e.Session))
			}
		}
		if want := []string{"[allowed.example] [denied.example sub.allowed.example] true", "[denied.example sub.allowed.example] [] true"}; !slices.Equal(told, want) {
			t.Errorf("the observer was told %q", told)
		}
	})
}

// recorded puts a server at port 9 of every host.
func recorded(t *testing.T, of *Sandbox) (got func() string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var text bytes.Buffer
	over := make(chan struct{})
	go func() {
		defer close(over)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if text.Write(b[:n]); err != nil {
				return
			}
			io.WriteString(c, "so\n")
		}
	}()
	dial := of.ready.Networks.Outside.Dial
	of.ready.Networks.Outside.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Port() == 9 {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}
		return dial(ctx, to)
	}
	return func() string { <-over; return text.String() }
}

// TestKernelHostsThatCannotBeSet: an error that names the field, as of New, and nothing has changed.
func TestKernelHostsThatCannotBeSet(t *testing.T) {
	inNetworkSession(t, allowedExample, func(t *testing.T, s *Session, _ func() string) {
		for _, bad := range []string{"https://a.example", "localhost:80", "a b", "10.0.0.1/8"} {
			err, want := s.SetHosts("denied.example", bad), (Policy{Network: Network{Hosts: []string{"a.example", bad}}}).Validate()
			var is *PolicyError
			if !errors.As(err, &is) || is.Field != "Network.Hosts[1]" || err.Error() != want.Error() {
				t.Errorf("%s: %v, and New says %v", bad, err, want)
			}
		}
		if out := outputOf(t, s.program("fetch", "http://allowed.example/", "http://denied.example/")); !strings.HasPrefix(out, "200 ") || !strings.Contains(out, "\n403 ") {
			t.Errorf("after them: %s", out)
		}
		var setting sync.WaitGroup
		for _, host := range []string{"allowed.example", "denied.example", "*.example"} {
			setting.Go(func() {
				for range 10 {
					if err := s.SetHosts(host); err != nil {
						t.Error(err)
					}
				}
			})
			setting.Go(func() { outputOf(t, s.program("fetch", "http://allowed.example/")) })
		}
		setting.Wait()
		notes := strings.Join(outputReport(t, s).Bound(policy.BoundNetwork).Notes, "\n")
		if strings.Count(notes, "Session.SetHosts") != 1 {
			t.Errorf("of a command under one list: %s", notes)
		}
		setting.Go(func() {
			for s.SetHosts("a.example") == nil {
			}
		})
		s.Close()
		setting.Wait()
		if err := s.SetHosts(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
	for name, change := range map[string]func(p *Policy){
		"Network":      func(p *Policy) { p.Network = Network{} },
		"Network.Host": func(p *Policy) { p.Network = Network{Host: true} },
	} {
		inNetworkSession(t, change, func(t *testing.T, s *Session, _ func() string) {
			var no *PolicyError
			if err := s.SetHosts("a.example"); !errors.As(err, &no) || no.Field != name || no.Remedy == "" {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// outputReport is the report of a command of the session.
func outputReport(t *testing.T, s *Session) *Report {
	c := s.sh("true")
	outputOf(t, c)
	return c.Report()
}

// TestKernelASessionThatBeginsClosedIsOpenedLater under the default policy, whose proxy denies every host; without a network namespace there is none.
func TestKernelASessionThatBeginsClosedIsOpenedLater(t *testing.T) {
	inNetworkSession(t, explains, func(t *testing.T, s *Session, _ func() string) {
		fetch := func(want string) *Report {
			t.Helper()
			c := s.program("fetch", "http://allowed.example/")
			if out, err := c.Output(); err != nil || !strings.HasPrefix(string(out), want) {
				t.Errorf("%s %v, want %s", out, err, want)
			}
			// Where every host is denied a JVM is told of no proxy.
			if told := strings.Contains(strings.Join(c.Environ(), "\n"), "-Dhttp.proxyHost="); told != strings.HasPrefix(want, "200") {
				t.Errorf("JVMs are told of the proxy: %v, want %s", told, want)
			}
			return c.Report()
		}
		err := s.SetHosts("allowed.example")
		if bad := (*PolicyError)(nil); err != nil {
			if !errors.As(err, &bad) || strings.Contains(strings.Join(s.program().Environ(), "\n"), "http_proxy") {
				t.Error(err)
			}
			return
		}
		if notes := strings.Join(fetch("200 ").Bound(policy.BoundNetwork).Notes, "\n"); strings.Contains(notes, "no host can be reached") || !strings.Contains(notes, "SetHosts: allowed.example") {
			t.Error(notes)
		}
		if err := s.SetHosts(); err != nil {
			t.Error(err)
		}
		fetch("403 ")
	})
}
