package sandbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A tool that may fetch packages from two hosts, and nothing from anywhere else.
// What it was denied stands in the report.
func ExampleWorkspaceNet() {
	s, err := sandbox.New(sandbox.WorkspaceNet("/srv/project", "packages.example.com:443", "*.example.com"))
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("npm", "ci")
	cmd.Dir = "/srv/project"
	err = cmd.Run()
	for _, note := range cmd.Report().Bound(policy.BoundNetwork).Notes {
		log.Print(note) // "there is no network namespace: ...", on a host without
	}
	var v sandbox.Violation
	for _, v = range cmd.Report().Violations {
		log.Print(v) // "connect evil.example:443: no entry of the allow-list names it ... (to allow it: ...)"
		log.Printf("%d times, first at %s by %s: %s (%s) port %d, %s %s: rule %q: %s: %s", v.Count, v.Time, v.Protocol, v.Host, v.Address, v.Port, v.Method, v.Path, v.Rule, v.Why, v.Remedy)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// A person is asked about hosts that no rule is about, for a minute; a log has
// every connection; and the run cannot move more than a gigabyte.
func ExampleNetwork() {
	p := sandbox.Workspace("/srv/project")
	p.Network = sandbox.Network{
		Hosts: []string{"modules.example.com:443", "*.githubusercontent.com", "10.20.0.0/16"},
		Deny:  []string{"gist.githubusercontent.com"},
		Decide: func(ctx context.Context, r policy.Request) policy.Verdict {
			log.Printf("%s wants %s:%d (%s %s; %s)", r.Protocol, r.Host, r.Port, r.Method, r.Path, r.Rule)
			select {
			case yes := <-answers():
				return policy.Verdict{Allow: yes, Reason: "the user says so"}
			case <-ctx.Done():
				return policy.Verdict{} // no
			}
		},
		Patience: time.Minute,
		Observe: func(c policy.Connection) {
			log.Printf("%s %s %s:%d (%s) %s %s: allowed %t by %q (%s): %d bytes out, %d in, %s, %s",
				c.Time, c.Protocol, c.Host, c.Port, c.Address, c.Method, c.Path, c.Allowed, c.Rule, c.Reason, c.Sent, c.Received, c.Duration, c.Err)
		},
		Limits: policy.NetworkLimits{Connections: 100, Bytes: 1 << 30, Rate: 10 << 20, Names: 50},
	}
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(s.Explain())
}

func answers() <-chan bool { return nil }

// An answer that is remembered. Decide is asked for each request, by many goroutines
// at once; one question at a time is put to the person, and to none whose time is up.
func ExampleVerdict() {
	var mu sync.Mutex
	known := map[string]policy.Verdict{}
	p := sandbox.Workspace("/srv/project")
	p.Network.Decide = func(ctx context.Context, r policy.Request) policy.Verdict {
		mu.Lock()
		defer mu.Unlock()
		to := net.JoinHostPort(r.Host, fmt.Sprint(r.Port))
		if v, ok := known[to]; ok {
			return v
		}
		if ctx.Err() != nil { // another question has taken all the time
			return policy.Verdict{Reason: "no answer was given"}
		}
		log.Printf("may it connect to %s?", to)
		select {
		case yes := <-answers():
			known[to] = policy.Verdict{Allow: yes, Reason: "the user has said no"} // the reason of a denial
			return known[to]
		case <-ctx.Done():
			return policy.Verdict{Reason: "no answer was given"} // and is asked again the next time
		}
	}
	p.Network.Patience = time.Minute
	if _, err := sandbox.New(p); err != nil {
		log.Fatal(err)
	}
}

// A log of all connections, as lines of JSON.
func ExampleConnection() {
	lines := log.New(os.Stdout, "", 0) // which has a lock: commands may run at the same time
	p := sandbox.WorkspaceNet("/srv/project", "packages.example.com:443")
	p.Network.Observe = func(c policy.Connection) {
		if line, err := json.Marshal(c); err == nil {
			lines.Print(string(line))
		}
	}
	p.Network.Observe(policy.Connection{
		Time: time.Unix(0, 0).UTC(), Protocol: "http", Host: "evil.example", Port: 80, Method: "GET", Path: "/",
		Reason: "no entry of the allow-list names it", Duration: time.Millisecond,
	})
	// Output: {"time":"1970-01-01T00:00:00Z","protocol":"http","host":"evil.example","port":80,"method":"GET","path":"/","allowed":false,"why":"no entry of the allow-list names it","sent":0,"received":0,"nanoseconds":1000000}
}

// What the tool may use of this machine's own: a database's port, a daemon's
// socket, and the user's keys to sign with.
func ExampleNetwork_local() {
	p := sandbox.Workspace("/srv/project")
	p.Network = sandbox.Network{
		Loopback: []uint16{5432},
		Unix:     []string{"/run/mysqld/mysqld.sock"},
		SSHAgent: true, // with the keys of whoever runs the harness
		SSH:      true, // by way of the proxy
		GPGAgent: true,
	}
	if _, err := sandbox.New(p); err != nil {
		var wrong *sandbox.PolicyError
		if errors.As(err, &wrong) {
			log.Printf("%s: %s", wrong.Field, wrong.Problem)
		}
	}
}

// A development server inside, looked at from the harness.
func ExampleCmd_DialInside() {
	p := sandbox.Workspace("/srv/site")
	p.Network.Listen = []uint16{8080}
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("npm", "run", "dev")
	cmd.Dir = "/srv/site"
	if err := cmd.Start(); err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			for {
				c, err := cmd.DialInside(ctx, 8080)
				if !errors.Is(err, syscall.ECONNREFUSED) { // it does not listen yet
					return c, err
				}
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(50 * time.Millisecond):
				}
			}
		},
	}, Timeout: time.Minute}
	if r, err := client.Get("http://inside/"); err == nil {
		io.Copy(os.Stdout, r.Body)
		r.Body.Close()
	}
	cmd.Process.Kill()
	cmd.Wait()
}

// A command that gets an environment of its own still has to be told of the
// proxies.
func ExampleCmd_NetworkEnviron() {
	s, err := sandbox.New(sandbox.WorkspaceNet("/srv/project", "example.com:443"))
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("curl", "-fsS", "https://example.com/")
	cmd.Dir = "/srv/project"
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, cmd.NetworkEnviron()...)
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// The tool reads pull requests with a token that it never has.
func ExampleCredential() {
	p := sandbox.WorkspaceNet("/srv/project", "api.github.com:443", "api.example.com:443")
	p.Network.Credentials = []policy.Credential{
		{Name: "GITHUB_TOKEN", Secret: os.Getenv("GITHUB_TOKEN"), Hosts: []string{"api.github.com:443"}, Place: policy.PlaceBearer},
		{Name: "EXAMPLE_KEY", Secret: os.Getenv("EXAMPLE_KEY"), Hosts: []string{"api.example.com:443"}, Place: policy.PlaceHeader, Field: "X-Api-Key"},
	}
	p.Network.Requests = []policy.RequestRule{
		{Host: "api.github.com:443", Methods: []string{"GET"}, Paths: []string{"/repos/holdfast-dev/"}, Headers: []string{"X-Example-Tenant"}},
	}
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("gh", "pr", "list")
	cmd.Dir = "/srv/project"
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
}

// A policy can be printed and logged: the secret is not in it.
func ExampleCredential_MarshalJSON() {
	c := policy.Credential{Name: "KEY", Secret: "hunter two", Hosts: []string{"api.example.com"}, Place: policy.PlaceQuery, Field: "key"}
	fmt.Println(c)
	text, err := json.Marshal(c)
	fmt.Println(string(text), err)
	d := policy.Credential{Name: "PASSWORD", Secret: "hunter two", Hosts: []string{"git.example.com"}, Place: policy.PlaceBasic, Field: "me"}
	fmt.Printf("%+v %#v\n", d, d) // by Format, whatever the verb
	// Output:
	// {KEY for [api.example.com] in query key}
	// {"Name":"KEY","Secret":"","Hosts":["api.example.com"],"Place":"query","Field":"key"} <nil>
	// {PASSWORD for [git.example.com] in basic me} {PASSWORD for [git.example.com] in basic me}
}

// A capture of one's own, which refuses everything and says so. Package capture
// has one that carries connections.
func ExampleCapture() {
	var refuse policy.Capture = func(tun *os.File, g policy.CaptureGate) (func(), error) {
		for _, c := range g.DNS {
			c.Close()
		}
		for _, l := range g.DNSStreams {
			l.Close()
		}
		log.Printf("the tool's device has %s and packets of %d bytes", g.Address, g.MTU)
		go func() {
			packet := make([]byte, g.MTU)
			for {
				n, err := tun.Read(packet)
				if err != nil {
					return
				}
				if !g.Allowed("example.com", 443) && !g.Datagrams("example.com", 443) && bytes.Contains(packet[:n], []byte("example")) {
					g.Denied("packet", "example.com", 443, "this capture carries nothing")
				}
			}
		}()
		_ = g.Tunnel // with which another one would carry a connection
		return func() { tun.Close() }, nil
	}
	p := sandbox.WorkspaceNet("/srv/project", "example.com:443")
	p.Network.Capture = refuse
	if _, err := sandbox.New(p); err != nil {
		log.Fatal(err)
	}
}

// A tool that sets its clock and sends its logs by datagrams, which only a capture
// carries. What speaks HTTP/3 first is refused it at once, and goes on by TCP.
func ExampleNetwork_datagrams() {
	p := sandbox.WorkspaceNet("/srv/project", "packages.example.com:443")
	p.Network.UDP = []string{"time.example.com:123", "10.20.0.9:514"}
	_, err := sandbox.New(p)
	var wrong *sandbox.PolicyError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Field, wrong.Problem) // Network.Capture is to be set: package capture has one
	}
	may, _ := sandbox.Allows(p, sandbox.Access{Op: sandbox.OpConnect, Network: "udp", Host: "packages.example.com", Port: 443})
	fmt.Println(may)
	// Output:
	// Network.UDP has nothing that could carry datagrams: the proxies do not
	// false
}

// A service inside a company: its name is in the company's own directory, its
// address is a private one, and its certificate is signed by the company.
func ExampleNetwork_privateService() {
	p := sandbox.WorkspaceNet("/srv/project", "build.corp.example:443", "10.20.0.0/16:443")
	p.Network.Lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.20.0.7")}, nil
	}
	authority, err := os.ReadFile("/etc/ssl/corp.pem")
	if err != nil {
		return
	}
	p.Network.Authorities = string(authority)
	s, err := sandbox.New(p)
	if err != nil {
		return
	}
	s.Command("curl", "https://build.corp.example/").Run()
}
