package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestDecideOpensWhatNoRuleSpeaksOf(t *testing.T) {
	var asked []policy.Request
	w := newWorld(t, Config{Network: policy.Network{Decide: func(_ context.Context, r policy.Request) policy.Verdict {
		asked = append(asked, r)
		return policy.Verdict{Allow: r.Method == "GET", Reason: "only reading is fine"}
	}}})
	w.web("new.example", 80, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "hello") })
	if code, body := w.ask("GET http://NEW.example/p?q HTTP/1.1\r\nHost: new.example\r\n\r\n"); code != 200 || body != "hello" {
		t.Errorf("%d %s", code, body)
	}
	code, body := w.ask("POST http://new.example/p HTTP/1.1\r\nHost: new.example\r\nContent-Length: 0\r\n\r\n")
	if code != 403 {
		t.Error(code)
	}
	has(t, body, "only reading is fine", `"Decide"`)
	if len(asked) != 2 || asked[0] != (policy.Request{Host: "new.example", Port: 80, Protocol: "http", Method: "GET", Path: "/p"}) {
		t.Errorf("%+v", asked)
	}
}

func TestDecideOpensNoSpecialAddress(t *testing.T) {
	asked := 0
	w := newWorld(t, Config{Network: policy.Network{Decide: func(context.Context, policy.Request) policy.Verdict { asked++; return policy.Verdict{Allow: true} }}})
	w.put("inside.example", 80, "")
	w.names["inside.example"] = append(w.names["inside.example"][:0:0], addrPort("10.0.0.1:80").Addr())
	for _, host := range []string{"10.0.0.1", "127.0.0.1", "169.254.169.254", "inside.example"} {
		if code, _ := w.ask("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n"); code != 403 {
			t.Errorf("%s: %d", host, code)
		}
	}
	if asked != 1 || w.dials() != 0 {
		t.Errorf("asked %d times, dialled %d", asked, w.dials())
	}
}

// TestRememberedAnswersAreToldAsThat: by any protocol a connection to a host and port is the same question, which
// answers no request, and each method and path is another.
func TestRememberedAnswersAreToldAsThat(t *testing.T) {
	var asked []string
	var events []policy.Connection
	w := newWorld(t, Config{Network: policy.Network{
		Decide: func(_ context.Context, r policy.Request) policy.Verdict {
			asked = append(asked, fmt.Sprint(r.Protocol, " ", r.Port, " ", r.Method, r.Path))
			return policy.Verdict{Allow: r.Path != "/no", Reason: "so it is", For: policy.Run}
		},
		Observe: func(c policy.Connection) { events = append(events, c) },
	}})
	w.web("a.example", 80, func(rw http.ResponseWriter, r *http.Request) {})
	w.echo("a.example", 9)
	tunnel := func(to string) {
		c, _ := w.connect(to)
		c.Close()
	}
	get := func(method, path string, want int) {
		if code, body := w.ask(method + " http://a.example" + path + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	tunnel("a.example:9")
	tunnel("a.example:9")
	if c, got := w.dialSOCKS(named("a.example", 9)); len(got) < 4 || got[3] != 0 {
		t.Errorf("SOCKS: %v", got)
	} else {
		c.Close()
	}
	tunnel("a.example:80")
	get("GET", "/yes", 200)
	get("GET", "/yes?query", 200)
	get("HEAD", "/yes", 200)
	get("GET", "/no", 403)
	get("GET", "/no", 403)
	if got, want := strings.Join(asked, ", "), "connect 9 , connect 80 , http 80 GET/yes, http 80 HEAD/yes, http 80 GET/no"; got != want {
		t.Errorf("asked: %s, want %s", got, want)
	}
	w.g.Close()
	rules := map[string]int{}
	for _, e := range events {
		rules[e.Rule]++
	}
	if rules["Decide"] != 5 || rules["Decide, for the run"] != 4 || len(rules) != 2 {
		t.Errorf("%v", rules)
	}
	var list []string
	for _, v := range w.g.Summary().Violations {
		list = append(list, fmt.Sprint(v.Rule, ": ", v.Reason, " ", v.Count))
	}
	if got := strings.Join(list, "; "); got != "Decide: so it is 1; Decide, for the run: so it is 1" {
		t.Error(got)
	}
}

func TestNobodyAnswersIsADenial(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	g, err := New(Config{Network: policy.Network{Patience: time.Millisecond, Decide: func(context.Context, policy.Request) policy.Verdict { <-release; return policy.Verdict{Allow: true} }}})
	if err != nil {
		t.Fatal(err)
	}
	v := g.ask(t.Context(), policy.Request{Host: "a.example"})
	if v.Allow || !strings.Contains(v.Reason, "did not answer within 1ms") {
		t.Errorf("%+v", v)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if g.ask(gone, policy.Request{Host: "b.example"}).Allow {
		t.Error("allowed to nobody")
	}
	g.Close() // although Decide has not returned
	if g.ask(t.Context(), policy.Request{Host: "c.example"}).Allow {
		t.Error("allowed after the end")
	}
}

func TestPanicInDecideOrObserveIsNobodysEnd(t *testing.T) {
	told := 0
	w := newWorld(t, Config{
		Network: policy.Network{
			Decide:  func(context.Context, policy.Request) policy.Verdict { panic("decide") },
			Observe: func(policy.Connection) { told++; panic("observe") },
		},
	})
	for range 2 {
		if code, body := w.ask("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n"); code != 403 || !strings.Contains(body, "panicked") {
			t.Errorf("%d %s", code, body)
		}
	}
	if w.g.Close(); told != 2 { // one, and that there was another
		t.Errorf("%d events", told)
	}
}

// TestLookupThatPanicsOrStaysAwayIsNobodysEnd: by every way in, of which some have no
// server above them that would recover.
func TestLookupThatPanicsOrStaysAwayIsNobodysEnd(t *testing.T) {
	never := make(chan struct{})
	asked := make(chan struct{}, 8)
	g, err := New(Config{Network: policy.Network{Hosts: []string{"*.example"}, Lookup: func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "away.example" {
			asked <- struct{}{}
			<-never
		}
		panic("lookup")
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, g: g}
	w.http, w.socks = w.serve(HTTP), w.serve(SOCKS)
	if _, got := w.dialSOCKS(named("panics.example", 80)); len(got) < 4 || got[3] != replyFailed {
		t.Errorf("SOCKS: %v", got)
	}
	if code, body := w.ask("GET http://panics.example/ HTTP/1.1\r\nHost: panics.example\r\n\r\n"); code != 502 || !strings.Contains(body, "panicked") {
		t.Errorf("HTTP: %d %q", code, body)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := g.openTunnel(t.Context(), Target{Host: mustHost(t, "away.example"), Port: 80})
		ended <- err
	}()
	<-asked
	g.Close() // although Lookup has not returned
	if err := <-ended; err == nil {
		t.Error("it is connected to nowhere")
	}
}

// TestCallsThatNobodyWaitsForAreBounded: a tool asks and goes, again and again, and
// neither Decide nor Lookup minds.
func TestCallsThatNobodyWaitsForAreBounded(t *testing.T) {
	const most, tries = 4, 20
	never := make(chan struct{})
	var asked, looked atomic.Int64
	g, err := New(Config{
		Network: policy.Network{
			Hosts:  []string{"*.known.example"},
			Limits: policy.NetworkLimits{Connections: most},
			Decide: func(context.Context, policy.Request) policy.Verdict { asked.Add(1); <-never; return policy.Verdict{} },
			Lookup: func(context.Context, string) ([]netip.Addr, error) { looked.Add(1); <-never; return nil, nil },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, c := range []struct {
		suffix string
		called *atomic.Int64
	}{{".example", &asked}, {".known.example", &looked}} {
		for i := range tries {
			before := c.called.Load()
			ctx, gone := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				g.openTunnel(ctx, Target{Host: mustHost(t, fmt.Sprintf("n%d%s", i, c.suffix)), Port: 80})
			}()
			for over := false; !over && c.called.Load() == before; {
				select {
				case <-ended:
					over = true
				default:
					runtime.Gosched()
				}
			}
			gone()
			<-ended
		}
		if n := c.called.Load(); n != most {
			t.Errorf("%s: %d calls are open", c.suffix, n)
		}
	}
}

func TestQuestionEndsWhenItsClientGoes(t *testing.T) {
	for _, way := range []Protocol{HTTP, SOCKS} {
		ended := make(chan struct{})
		began := make(chan struct{})
		w := newWorld(t, Config{Network: policy.Network{Patience: time.Hour, Decide: func(ctx context.Context, _ policy.Request) policy.Verdict {
			close(began)
			<-ctx.Done()
			close(ended)
			return policy.Verdict{Allow: true}
		}}})
		place, sent := w.http, "CONNECT a.example:443 HTTP/1.1\r\n\r\n"
		if way == SOCKS {
			place, sent = w.socks, named("a.example", 443)
		}
		c, err := net.Dial("tcp", place)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, sent)
		<-began
		c.Close()
		<-ended
		w.g.Close()
		if s := w.g.Summary(); s.Denied != 1 || s.Allowed != 0 {
			t.Errorf("%s: %+v", way, s)
		}
	}
}

func TestClientThatDoesNotWaitForDecideLosesNothing(t *testing.T) {
	answer := make(chan policy.Verdict)
	w := newWorld(t, Config{Network: policy.Network{Decide: func(context.Context, policy.Request) policy.Verdict { return <-answer }}})
	w.echo("a.example", 9)
	c, err := net.Dial("tcp", w.socks)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, named("a.example", 9)+"\x00early\n")
	answer <- policy.Verdict{Allow: true}
	got := make([]byte, 12+7)
	if _, err := io.ReadFull(c, got); err != nil || string(got[12:]) != "\x00early\n" {
		t.Errorf("%q %v", got, err)
	}
}

func TestSlowObserveLosesEventsAndHoldsNothingUp(t *testing.T) {
	release := make(chan struct{})
	g, err := New(Config{Network: policy.Network{Observe: func(policy.Connection) { <-release }}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 1024 + 200
	for i := range n {
		g.openTunnel(t.Context(), Target{Host: mustHost(t, fmt.Sprint(i, ".example")), Port: 1})
	}
	s := g.Summary()
	if s.Denied != n || s.Unobserved < n-514 || s.Unobserved > n-512 || len(s.Violations) != maxDenialKinds || s.Beyond != n-maxDenialKinds {
		t.Errorf("denied %d, unobserved %d, %+v, beyond %d", s.Denied, s.Unobserved, s.Violations, s.Beyond)
	}
	close(release)
	g.Close()
}
