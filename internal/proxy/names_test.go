package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestNamesBelowAWildcardAreBounded(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Names: 3}}}, "*.good.com", "one.example")
	for i := range 10 {
		for range 2 {
			host := fmt.Sprintf("secret%d.good.com", i)
			code, body := w.ask("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
			if want := map[bool]int{true: 502, false: 403}[i < 3]; code != want {
				t.Errorf("%s: %d %s", host, code, body)
			}
		}
	}
	if code, _ := w.ask("GET http://one.example/ HTTP/1.1\r\nHost: one.example\r\n\r\n"); code != 502 {
		t.Errorf("a name of its own: %d", code)
	}
	asked := map[string]bool{}
	for _, name := range w.looked {
		asked[name] = true
	}
	if len(asked) != 4 {
		t.Errorf("asked for %v", asked)
	}
	if s := w.g.Summary(); s.Denied != 14 || !strings.Contains(s.Violations[0].Reason, "3 names") {
		t.Errorf("%+v", s)
	}
}

// TestNamesThatDecideAllowsAreBounded: whoever allows what ends in a name has written a
// wildcard, by which a tool tells a name server what it likes.
func TestNamesThatDecideAllowsAreBounded(t *testing.T) {
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Names: 3}, Decide: func(_ context.Context, r policy.Request) policy.Verdict {
		return policy.Verdict{Allow: strings.HasSuffix(r.Host, ".good.com") || r.Host == public.String()}
	}}}, "listed.com", "*.wild.com")
	ask := func(host string) (int, string) {
		return w.ask("GET http://" + host + "/ HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
	}
	for i := range 10 {
		for range 2 {
			code, body := ask(fmt.Sprintf("secret%d.good.com", i))
			if i < 3 && code != 502 {
				t.Errorf("name %d: %d %s", i, code, body)
			} else if i >= 3 {
				if code != 403 {
					t.Errorf("name %d: %d", i, code)
				}
				has(t, body, "3 names were asked for that Decide alone allowed", "Network.Limits.Names")
			}
		}
	}
	// What is listed, what a wildcard has, an address, a name that is known and one that is
	// denied have nothing to do with it.
	for host, want := range map[string]int{"listed.com": 502, "a.wild.com": 502, public.String(): 502, "secret1.good.com": 502, "bad.com": 403} {
		if code, body := ask(host); code != want || strings.Contains(body, "names were") {
			t.Errorf("%s: %d %s", host, code, body)
		}
	}
	asked := map[string]bool{}
	for _, name := range w.looked {
		asked[name] = true
	}
	if len(asked) != 5 {
		t.Errorf("looked up %v", asked)
	}
	if s := w.g.Summary(); s.Denied != 15 || s.Violations[0].Rule != "Decide" || !strings.Contains(s.Violations[0].Reason, "3 names") {
		t.Errorf("%+v", s)
	}
}

// TestFloodOfQuestionsIsBounded: Decide does not answer, and a tool asks about ever more
// names, waiting for none.
func TestFloodOfQuestionsIsBounded(t *testing.T) {
	const most, flood = 50, 2000
	var open, highest atomic.Int64
	release := make(chan struct{})
	g, err := New(Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: most}, Decide: func(ctx context.Context, _ policy.Request) policy.Verdict {
		defer open.Add(-1)
		for n := open.Add(1); ; {
			if h := highest.Load(); n <= h || highest.CompareAndSwap(h, n) {
				break
			}
		}
		<-release // it does not heed its context
		return policy.Verdict{Allow: true}
	}}})
	if err != nil {
		t.Fatal(err)
	}
	memory, routines := heap(), runtime.NumGoroutine()
	var all sync.WaitGroup
	ctx, gone := context.WithCancel(t.Context())
	for i := range flood {
		all.Go(func() {
			_, err := g.openTunnel(ctx, Target{Host: mustHost(t, fmt.Sprintf("n%d.%s.example", i, strings.Repeat("x", 60))), Port: 80})
			if refusalOf(err) == nil {
				t.Error(err)
			}
		})
		if i == flood/2 {
			for open.Load() < most { // they are all there before the rest comes
				runtime.Gosched()
			}
		}
	}
	for s := g.Summary(); s.Denied < flood-most; s = g.Summary() {
		runtime.Gosched()
	}
	if n := highest.Load(); n != most {
		t.Errorf("Decide was called %d times at once", n)
	}
	for until := time.Now().Add(time.Minute); runtime.NumGoroutine()-routines > 4*most; runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatalf("%d goroutines more", runtime.NumGoroutine()-routines)
		}
	}
	if n := heap() - memory; n > 8<<20 { // 4.5 MiB were seen, under -race
		t.Errorf("%d bytes more", n)
	}
	gone()
	all.Wait()
	close(release)
	g.Close()
	if s := g.Summary(); s.Denied != flood || len(s.Violations) != maxDenialKinds || s.Beyond != flood-maxDenialKinds {
		t.Errorf("denied %d, %d listed, %d beyond", s.Denied, len(s.Violations), s.Beyond)
	}
}

// TestFloodOfDenialsIsCountedAndNotKept: whatever a tool writes, and however long it is,
// by every way that has words of its own in an event.
func TestFloodOfDenialsIsCountedAndNotKept(t *testing.T) {
	release := make(chan struct{})
	w := newWorld(t, Config{Network: policy.Network{Observe: func(policy.Connection) { <-release }}}, "good.com")
	long := strings.Repeat("9", 60_000)
	texts := []string{
		"GET http://bad.com/" + long + " HTTP/1.1\r\nHost: bad.com\r\n\r\n",
		"GET http://" + long + "/ HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT good.com:" + long + " HTTP/1.1\r\n\r\n",
		"M" + long + " http://bad.com/ HTTP/1.1\r\nHost: bad.com\r\n\r\n",
	}
	const rounds = 40
	for range rounds {
		for _, text := range texts {
			if code, _ := w.ask(text); code == 200 {
				t.Errorf("%.40q is served", text)
			}
		}
	}
	close(release)
	w.g.Close() // the last event may come after its answer
	s := w.g.Summary()
	if n := len(texts) * rounds; s.Denied != n || len(s.Violations) != len(texts)-1 || s.Violations[0].Count != 2*rounds || s.Beyond != 0 {
		t.Errorf("denied %d of %d, %d listed, %d beyond", s.Denied, n, len(s.Violations), s.Beyond)
	}
	for _, v := range s.Violations {
		if n := len(fmt.Sprintf("%+v", v)); n > 4*maxEventText {
			t.Errorf("an event of %d bytes: %.300v", n, v)
		}
	}
}

// TestPublicAddressIsNoName: it is never looked up, so it is not counted.
func TestPublicAddressIsNoName(t *testing.T) {
	g, err := New(Config{Network: policy.Network{Hosts: []string{"*"}, Limits: policy.NetworkLimits{Names: 1}}, Dial: nil})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for i := range 5 {
		a := netip.AddrFrom4([4]byte{93, 184, 216, byte(i)})
		if _, err := g.decide(t.Context(), &Target{Host: hostrules.HostOf(a), Port: 80}, "", ""); err != nil {
			t.Error(err)
		}
	}
}
