package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An internet is what the gateway of a test finds outside: names with public
// addresses, and servers on this machine's loopback behind them.
type internet struct {
	plain, tls *httptest.Server
	handler    atomic.Pointer[http.Handler] // nil: the usual one
	names      map[string]string
}

// newInternet serves "served METHOD HOST PATH" at ports 80 and 443 of every host.
func newInternet(t *testing.T) *internet {
	t.Helper()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "served %s %s %s", r.Method, r.Host, r.URL.Path)
	})
	n := &internet{names: map[string]string{}}
	any := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if other := n.handler.Load(); other != nil {
			(*other).ServeHTTP(w, r)
			return
		}
		h(w, r)
	})
	n.plain, n.tls = httptest.NewServer(any), httptest.NewTLSServer(any)
	t.Cleanup(func() { n.plain.Close(); n.tls.Close() })
	for i, name := range []string{"allowed.example", "denied.example", "undecided.example", "sub.allowed.example"} {
		n.names[name] = fmt.Sprintf("93.184.216.%d", i+1)
	}
	n.names["inward.example"] = "10.0.0.1" // rebound
	return n
}

func (n *internet) world() runner.Outside {
	return runner.Outside{
		Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
			if a, ok := n.names[name]; ok {
				return []netip.Addr{netip.MustParseAddr(a)}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr().IsLoopback() {
				return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
			}
			server := n.plain
			if to.Port() == 443 {
				server = n.tls
			}
			if to.Port() != 80 && to.Port() != 443 {
				return nil, fmt.Errorf("no server at %s", to)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	}
}

// netWalls are the sets of walls in which a network is tested: with a network
// namespace of its own, and without.
var netWalls = []walls{allSets[0], allSets[1], inContainer, allSets[3]}

// inNetwork runs a body with a sandbox whose policy has a network.
func inNetwork(t *testing.T, change func(p *Policy), body func(t *testing.T, s *Sandbox, w walls)) {
	eachWall(t, netWalls, func(t *testing.T, w walls) {
		s := networkSandbox(t, w, change)
		body(t, s, w)
	})
}

func networkSandbox(t *testing.T, w walls, change func(p *Policy)) *Sandbox {
	t.Helper()
	p := attackPolicy(t, "", w)
	p.Env = Env{Pass: []string{"HOME", "TMPDIR", "GORACE"}} // the last: else the race detector waits for a second in each tool
	change(&p)
	s := attackSandbox(t, p, w)
	outside := newInternet(t).world()
	s.ready.Networks.Outside.Lookup, s.ready.Networks.Outside.Dial = outside.Lookup, outside.Dial
	return s
}

// says runs a hostile program and returns what it printed.
func says(t *testing.T, s *Sandbox, args ...string) (string, *Report) {
	t.Helper()
	c := hostile(t, s, args...)
	out, err := c.Output() // the race detector talks on the other one
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, c.Report())
	}
	return string(out), c.Report()
}

func allowedExample(p *Policy) { p.Network.Hosts = []string{"allowed.example", "inward.example"} }

func TestKernelNetworkReachesWhatIsAllowed(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "fetch", "http://allowed.example/a", "https://allowed.example/b", "socks allowed.example:80", "http://ALLOWED.example./c")
		want := "200 served GET allowed.example /a\n200 served GET allowed.example /b\n200 served GET allowed.example /socks\n200 served GET allowed.example /c\n"
		if !strings.EqualFold(strings.ReplaceAll(out, "example.", "example"), want) {
			t.Errorf("got\n%swant\n%s%s", out, want, r)
		}
		if line := r.Bound(policy.BoundNetwork); len(r.Violations) > 0 || line.State == Absent || line.State == Open {
			t.Errorf("%s", r)
		}
		if text := r.String(); !strings.Contains(text, "egress proxy (HTTP at 127.0.0.1:") || !strings.Contains(text, " allowed, 0 denied") {
			t.Errorf("%s", text)
		}
	})
}

func TestKernelNetworkRefusesTheRestAndSaysWhy(t *testing.T) {
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "fetch", "http://denied.example/a", "https://denied.example/b", "socks denied.example:80", "http://"+"10.0.0.1/", "http://inward.example/",
			"http://169.254.169.254/latest/meta-data/", "http://sub.allowed.example/", "http://localhost/", "http://[::1]/", "http://2130706433/")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if strings.Contains(out, "served") || len(lines) != 10 {
			t.Fatalf("got\n%s%s", out, r)
		}
		if !strings.HasPrefix(lines[0], "403 ") || !strings.Contains(lines[0], "denied.example") {
			t.Errorf("a plain request: %s", lines[0])
		}
		if !strings.Contains(lines[1], "refused by the sandbox: denied.example:443") {
			t.Errorf("CONNECT: %s", lines[1])
		}
		if lines[2] != "refused with code 2" {
			t.Errorf("SOCKS: %s", lines[2])
		}
		denied := map[string]Violation{}
		for _, v := range r.Violations {
			denied[v.Host] = v
			if v.Time.IsZero() || v.Why == "" || v.Remedy == "" || v.Protocol == "" && v.Operation == "" {
				t.Errorf("a violation without a word: %+v", v)
			}
		}
		for _, host := range []string{"denied.example", "10.0.0.1", "inward.example", "169.254.169.254", "sub.allowed.example"} {
			if _, ok := denied[host]; !ok {
				t.Errorf("%s is not in the report\n%s", host, r)
			}
		}
		if v := denied["denied.example"]; v.Remedy != `add "denied.example:80" to Network.Hosts, if you trust that host: the tool chose it` || v.Port != 80 {
			t.Errorf("%+v", v)
		}
		if v := denied["inward.example"]; v.Remedy != `add "10.0.0.1:80" to Network.Hosts, if that address is meant` {
			t.Errorf("%+v", v)
		}
		if !strings.Contains(r.String(), "denied: ") {
			t.Errorf("%s", r)
		}
	})
}

// TestKernelNetworkIsOffByDefault: without hosts there is no proxy to be found.
func TestKernelNetworkIsOffByDefault(t *testing.T) {
	kerneltest.Long(t)
	for name, hosts := range map[string][]string{"nil": nil, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			inNetwork(t, func(p *Policy) { p.Network.Hosts = hosts }, func(t *testing.T, s *Sandbox, w walls) {
				out, r := says(t, s, "fetch", "http://allowed.example/", "http://127.0.0.1:3128/", "http://93.184.216.1/")
				if strings.Contains(out, "served") || strings.Count(out, "error: ") != 3 {
					t.Errorf("got\n%s%s", out, r)
				}
			})
		})
	}
}

// TestKernelNetworkVariables: a command's own Env has them, unless the policy passes it as it is
// or the caller has set them otherwise.
func TestKernelNetworkVariables(t *testing.T) {
	kerneltest.Long(t)
	type way struct {
		env    func(c *Cmd) []string
		served bool
	}
	try := func(t *testing.T, s *Sandbox, ways map[string]way) {
		for name, way := range ways {
			c := hostile(t, s, "fetch", "http://allowed.example/")
			c.Env = way.env(c)
			out, err := c.Output()
			if r := c.Report().String(); err != nil || strings.Contains(string(out), "served") != way.served || strings.Contains(r, "add Cmd.NetworkEnviron") == way.served {
				t.Errorf("with %s: %q, %v\n%s", name, out, err, r)
			}
		}
	}
	plain := func(*Cmd) []string { return []string{"A=b", noWait} }
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		try(t, s, map[string]way{
			"an Env of the caller's": {plain, true},
			"the harness's and more": {func(*Cmd) []string { return append(os.Environ(), "A=b") }, true},
			"NetworkEnviron":         {func(c *Cmd) []string { return append([]string{"A=b", noWait}, c.NetworkEnviron()...) }, true},
			"Environ":                {func(c *Cmd) []string { return append(c.Environ(), "A=b") }, true},
			"proxies of its own":     {func(*Cmd) []string { return append(os.Environ(), ownProxies...) }, false},
		})
	})
	inNetwork(t, func(p *Policy) { allowedExample(p); p.Env.AsGiven = true }, func(t *testing.T, s *Sandbox, w walls) {
		try(t, s, map[string]way{
			"an Env as it is given":         {plain, false},
			"NetworkEnviron as it is given": {func(c *Cmd) []string { return append([]string{"A=b", noWait}, c.NetworkEnviron()...) }, true},
		})
	})
}

// ownProxies lead nowhere, by every name that a Go program reads.
var ownProxies = []string{"HTTP_PROXY=http://127.0.0.1:9", "http_proxy=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9",
	"ALL_PROXY=http://127.0.0.1:9", "all_proxy=http://127.0.0.1:9", noWait}

// TestKernelNetworkSaysWhatFailed: what is allowed and fails is no violation, and a
// tool such as curl shows little of the answer to a CONNECT.
func TestKernelNetworkSaysWhatFailed(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, func(p *Policy) { p.Network.Hosts = []string{"allowed.example", "nowhere.example"} }, func(t *testing.T, s *Sandbox, w walls) {
		failed := func(r *Report) bool {
			return slices.ContainsFunc(r.Bound(policy.BoundNetwork).Notes, func(n string) bool { return strings.Contains(n, "was allowed failed") })
		}
		if out, r := says(t, s, "fetch", "http://allowed.example/", "http://denied.example/"); failed(r) {
			t.Errorf("nothing has failed: %s\n%s", out, r)
		}
		out, r := says(t, s, "fetch", "https://nowhere.example/", "http://allowed.example/")
		if want := "1 of what was allowed failed; the last: connect nowhere.example:443: lookup nowhere.example: no such host"; !strings.Contains(r.String(), want) {
			t.Errorf("not a word of it: %s\n%s", out, r)
		}
	})
}

func TestKernelNetworkAsksDecide(t *testing.T) {
	asked := make(chan policy.Request, 8)
	inNetwork(t, func(p *Policy) {
		p.Network.Hosts, p.Network.Deny = []string{"allowed.example"}, []string{"denied.example"}
		p.Network.Decide = func(_ context.Context, r policy.Request) policy.Verdict {
			asked <- r
			return policy.Verdict{Allow: r.Host == "undecided.example", Reason: "nobody wants it"}
		}
	}, func(t *testing.T, s *Sandbox, w walls) {
		out, r := says(t, s, "fetch", "http://undecided.example/", "http://denied.example/", "http://sub.allowed.example/")
		if !strings.HasPrefix(out, "200 served") || strings.Count(out, "served") != 1 || !strings.Contains(out, "nobody wants it") {
			t.Errorf("got\n%s%s", out, r)
		}
		var hosts []string
		for len(asked) > 0 {
			hosts = append(hosts, (<-asked).Host)
		}
		if !slices.Equal(hosts, []string{"undecided.example", "sub.allowed.example"}) {
			t.Errorf("asked about %v", hosts)
		}
	})
}

// TestKernelNetworkDoesNotWaitForNobody: a Decide that never answers, and does not
// even mind its context, neither holds up the tool past its patience nor the run
// past its end.
func TestKernelNetworkDoesNotWaitForNobody(t *testing.T) {
	kerneltest.Long(t)
	never := make(chan struct{})
	stubborn := func(p *Policy) {
		p.Network.Decide = func(context.Context, policy.Request) policy.Verdict { <-never; return policy.Verdict{Allow: true} }
	}
	t.Run("past its patience", func(t *testing.T) {
		inNetwork(t, func(p *Policy) { stubborn(p); p.Network.Patience = 20 * time.Millisecond }, func(t *testing.T, s *Sandbox, w walls) {
			if out, r := says(t, s, "fetch", "http://undecided.example/"); !strings.HasPrefix(out, "403 ") {
				t.Errorf("got\n%s%s", out, r)
			}
		})
	})
	t.Run("past the run's end", func(t *testing.T) {
		asked := make(chan struct{}, 1)
		inNetwork(t, func(p *Policy) {
			p.Network.Patience = time.Hour
			p.Network.Decide = func(context.Context, policy.Request) policy.Verdict {
				asked <- struct{}{}
				<-never
				return policy.Verdict{Allow: true}
			}
		}, func(t *testing.T, s *Sandbox, w walls) {
			ctx, cancel := context.WithCancel(t.Context())
			c := s.CommandContext(ctx, must(os.Executable()))
			c.Args, c.Dir = []string{attackTool, "fetch", "http://undecided.example/"}, "/"
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			<-asked
			cancel()
			if err := c.Wait(); err == nil {
				t.Error("the tool has ended by itself")
			}
		})
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestKernelNetworkIsObserved(t *testing.T) {
	kerneltest.Long(t)
	var seen chan policy.Connection
	inNetwork(t, func(p *Policy) {
		seen = make(chan policy.Connection, 8)
		p.Network.Hosts = []string{"allowed.example"}
		p.Network.Observe = func(c policy.Connection) { seen <- c }
	}, func(t *testing.T, s *Sandbox, w walls) {
		says(t, s, "fetch", "http://allowed.example/a", "http://denied.example/b")
		first, second := <-seen, <-seen
		if !first.Allowed || first.Host != "allowed.example" || first.Address == "" || first.Received == 0 || first.Rule != "allowed.example" {
			t.Errorf("%+v", first)
		}
		if second.Allowed || second.Host != "denied.example" || second.Address != "" || second.Reason == "" {
			t.Errorf("%+v", second)
		}
	})
}

// TestKernelNetworkOfOthersIsOutOfReach: another sandbox's proxies, and those of
// this run from outside.
func TestKernelNetworkOfOthersIsOutOfReach(t *testing.T) {
	kerneltest.Long(t)
	inNetwork(t, allowedExample, func(t *testing.T, s *Sandbox, w walls) {
		holder := s.Command("/bin/cat")
		holder.Dir = "/"
		in := must(holder.StdinPipe())
		if err := holder.Start(); err != nil {
			t.Fatal(err)
		}
		var proxy string
		for _, kv := range holder.NetworkEnviron() {
			if v, ok := strings.CutPrefix(kv, "http_proxy="); ok {
				proxy = v
			}
		}
		u, err := url.Parse(proxy)
		if err != nil || u.Host == "" {
			t.Fatalf("no proxy in %q", holder.NetworkEnviron())
		}
		keyless := *u
		keyless.User = nil
		client := &http.Client{Transport: &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return &keyless, nil }}, Timeout: time.Minute}
		if r, err := client.Get("http://allowed.example/"); err == nil {
			if r.StatusCode != http.StatusProxyAuthRequired || s.ready.Plan.Namespaces.Net {
				t.Errorf("from outside the proxy answers %s", r.Status)
			}
			r.Body.Close()
		} else if !s.ready.Plan.Namespaces.Net {
			t.Errorf("without a namespace the proxy can be reached, and its key is what keeps others out: %v", err)
		}
		if !s.ready.Plan.Namespaces.Net { // what can be reached, with the key, by who is in no sandbox
			plain := hostileBare(t, "fetch", "http://allowed.example/")
			plain.Env = append(os.Environ(), "http_proxy="+proxy)
			if out, err := plain.Output(); err != nil || !strings.Contains(string(out), "served") {
				t.Errorf("without walls: %q, %v", out, err)
			}
		}
		other := networkSandbox(t, w, func(p *Policy) {})
		for _, with := range []string{keyless.String(), proxy} {
			c := hostile(t, other, "fetch", "http://allowed.example/")
			c.Env = []string{"http_proxy=" + with}
			if out, err := c.Output(); err != nil || strings.Contains(string(out), "served") {
				t.Errorf("from another sandbox: %q, %v", out, err)
			}
		}
		in.Close()
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// noWait keeps the race detector from waiting for a second at a tool's end.
const noWait = "GORACE=atexit_sleep_ms=0"
