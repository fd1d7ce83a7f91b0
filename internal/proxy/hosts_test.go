package proxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestNothingReachesAHostThatIsNoLongerAllowed: of what a client writes when SetRules has returned the server gets nothing, by any way that
// was open. The client's connection ends or is told of the denial, and what is allowed stays open.
func TestNothingReachesAHostThatIsNoLongerAllowed(t *testing.T) {
	for _, o := range openers() {
		t.Run(o.name, func(t *testing.T) {
			t.Parallel()
			w, h := narrowed(t)
			other, in := w.connect("api.example.com:7")
			alive := func() {
				t.Helper()
				fmt.Fprint(other, "\x00 alive\n")
				if line, err := in.ReadString('\n'); line != "\x00 alive\n" {
					t.Errorf("the other tunnel: %q, %v", line, err)
				}
			}
			alive()
			send, c := o.open(w)
			var next, last atomic.Int64
			last.Store(1 << 60)
			over := make(chan error, 1)
			go func() {
				for {
					n := next.Add(1)
					if err := send(n); err != nil || n > last.Load() {
						over <- err
						return
					}
				}
			}()
			var drained chan error
			if o.name == "pipelined requests" {
				drained = make(chan error, 1)
				go func() { _, err := io.Copy(io.Discard, c); drained <- err }()
			}
			for h.most.Load() < 3 {
				time.Sleep(time.Millisecond)
			}
			w.hosts("api.example.com", "other.example")
			n := next.Load()
			last.Store(n + 50)
			if err := <-over; err == nil && drained == nil && !strings.HasPrefix(o.name, "requests") {
				c.SetReadDeadline(time.Now().Add(time.Minute))
				if status, text := answerOf(bufio.NewReader(c)); status != http.StatusForbidden && status != 0 || strings.Contains(text, "timeout") {
					t.Errorf("the client is told %d %s", status, text) // 0: its connection has ended
				}
			}
			alive()
			if status, text := w.ask("GET http://example.com/1000000000 HTTP/1.1\r\nHost: example.com\r\n\r\n"); status != http.StatusForbidden || !strings.Contains(text, "no entry") {
				t.Errorf("a new request: %d %s", status, text)
			}
			c.Close()
			other.Close()
			w.ended()
			h.serving.Wait()
			if got := h.most.Load(); got > n {
				t.Errorf("the server was sent %d; SetRules had returned before %d", got, n+1)
			}
			if v := w.g.Summary().Violations; len(v) == 0 {
				t.Error("no denial is told")
			}
		})
	}
}

// TestWhatIsUnderWayToAHostThatIsNoLongerAllowedEnds: a look-up, a dial, and a dial that comes with a connection all the same.
func TestWhatIsUnderWayToAHostThatIsNoLongerAllowedEnds(t *testing.T) {
	var w *world
	began, over := make(chan bool, 1), new(atomic.Bool)
	until := func(ctx context.Context) error {
		defer over.Store(true)
		began <- true
		<-ctx.Done()
		return ctx.Err()
	}
	for _, test := range []struct {
		name   string
		lookup func(context.Context, string) ([]netip.Addr, error)
		dial   func(context.Context, netip.AddrPort) (net.Conn, error)
	}{
		{"a look-up", func(ctx context.Context, _ string) ([]netip.Addr, error) { return nil, until(ctx) }, nil},
		{"a dial", nil, func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) { return nil, until(ctx) }},
		{"a dial that succeeds", nil, func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			until(ctx)
			return w.dial(context.Background(), to)
		}},
	} {
		for _, client := range []string{"CONNECT old.example:9 HTTP/1.1\r\nHost: old.example:9\r\n\r\n", "GET http://old.example:9/ HTTP/1.1\r\nHost: old.example:9\r\n\r\n"} {
			w = newWorld(t, Config{}, "old.example")
			heard := make(chan string, 1)
			l := listen(t)
			go func() {
				c, err := l.Accept()
				if err != nil {
					heard <- ""
					return
				}
				defer c.Close()
				b, _ := io.ReadAll(c)
				heard <- string(b)
			}()
			w.put("old.example", 9, l.Addr().String())
			if test.lookup != nil {
				w.g.cfg.Lookup = test.lookup
			} else {
				w.g.cfg.Dial = test.dial
			}
			over.Store(false)
			_, in := w.raw(client)
			<-began
			w.hosts("new.example")
			if test.lookup == nil && !over.Load() {
				t.Errorf("%s: SetRules has returned while it goes on", test.name)
			}
			if status, text := answerOf(in); status != http.StatusForbidden {
				t.Errorf("%s: %d %s", test.name, status, text)
			}
			l.Close()
			if got := <-heard; got != "" {
				t.Errorf("%s: the server was sent %q", test.name, got)
			}
			w.g.Close()
		}
	}
}

// TestDecideIsAskedAnewUnderOtherHosts: an earlier answer for the run or the sandbox counts no more, what it has opened is closed, and
// a question that waits is decided by the new list.
func TestDecideIsAskedAnewUnderOtherHosts(t *testing.T) {
	for _, lasts := range []policy.Lifetime{policy.Once, policy.Run, policy.Sandbox} {
		var asked atomic.Int32
		waits, said := make(chan bool), make(chan bool)
		w := newWorld(t, Config{Network: policy.Network{Decide: func(ctx context.Context, r policy.Request) policy.Verdict {
			if r.Host == "slow.example" {
				waits <- true
				<-ctx.Done()
				said <- true
			}
			return policy.Verdict{Allow: asked.Add(1) == 1, For: lasts}
		}}})
		w.echo("a.example", 9)
		w.echo("slow.example", 9)
		c, in := w.connect("a.example:9")
		fmt.Fprint(c, "\x00\n")
		in.ReadString('\n')
		slow, slowly := w.raw("CONNECT slow.example:9 HTTP/1.1\r\nHost: slow.example:9\r\n\r\n")
		<-waits
		w.hosts("slow.example")
		<-said // its context has ended
		res, err := http.ReadResponse(slowly, &http.Request{Method: http.MethodConnect})
		if err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("for the %s: what waited: %v %v", lasts, res, err)
		}
		slow.Close()
		if _, err := in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("for the %s: what Decide had allowed: %v", lasts, err)
		}
		if status, _ := w.ask("CONNECT a.example:9 HTTP/1.1\r\nHost: a.example:9\r\n\r\n"); status != http.StatusForbidden || asked.Load() < 2 {
			t.Errorf("for the %s: %d, asked %d times", lasts, status, asked.Load())
		}
		w.g.Close()
	}
}

// TestAnAddressThatOnlyTheOldListHadIsLeft, although its name is allowed still.
func TestAnAddressThatOnlyTheOldListHadIsLeft(t *testing.T) {
	w := newWorld(t, Config{Route: remote}, "db.example", "10.0.0.0/8")
	l := listen(t)
	w.put("db.example", 9, "")
	w.names["db.example"] = []netip.Addr{netip.MustParseAddr("10.0.0.5")}
	w.places[addrPort("10.0.0.5:9")] = l.Addr().String()
	w.connect("db.example:9")
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.hosts("db.example", "10.0.0.5")
	if w.placesHeld() != 1 {
		t.Error("it was closed where both lists have the address")
	}
	w.hosts("db.example")
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) { // at a close the kernel would send what is left
		t.Errorf("the server's end: %v", err)
	}
}

// TestRulesAreSetByManyAtOnce, while clients connect; when the last has returned, what is open is what the rules allow.
func TestRulesAreSetByManyAtOnce(t *testing.T) {
	w := newWorld(t, Config{}, "a.example")
	for _, name := range []string{"a.example", "b.example"} {
		w.echo(name, 9)
		w.web(name, 80, func(http.ResponseWriter, *http.Request) {})
	}
	var setting, asking sync.WaitGroup
	stop := make(chan struct{})
	for _, name := range []string{"a.example", "b.example"} {
		setting.Go(func() {
			for range 50 {
				w.hosts(name)
			}
		})
		for range 2 {
			asking.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					w.ask("GET http://" + name + "/ HTTP/1.1\r\nHost: " + name + "\r\nConnection: close\r\n\r\n")
					c, r := w.raw("CONNECT " + name + ":9 HTTP/1.1\r\nHost: " + name + ":9\r\n\r\n")
					http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
					c.Close()
				}
			})
		}
	}
	setting.Wait()
	w.hosts()
	w.g.tracker.mu.Lock()
	for _, t := range w.g.open {
		if t.rules != nil && t.rules != w.g.rules.Load() {
			w.t.Errorf("a connection to %s is open", t.Host)
		}
	}
	w.g.tracker.mu.Unlock()
	close(stop)
	asking.Wait()
	w.g.Close()
	w.hosts("a.example") // which is of no use, and of no harm
}

// TestDatagramsEndWithTheHostOfHosts: a flow to a host that Hosts named as well ends when it no longer does; one to a host that UDP alone names
// does not.
func TestDatagramsEndWithTheHostOfHosts(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"both.example:5000", "udp.example:5000"}, hosts: []string{"both.example:443"}}, nil)
	f.put("both.example", "93.184.216.34")
	f.put("udp.example", "93.184.216.35")
	servers := map[string]*net.UDPConn{"both.example": f.serve("93.184.216.34:5000"), "udp.example": f.serve("93.184.216.35:5000")}
	mouths, overs := map[string]*mouth{}, map[string]<-chan error{}
	for name, server := range servers {
		mouths[name], overs[name] = f.flow(name, 5000)
		mouths[name].say(t, "before")
		if got, _ := hear(t, server); got != "before" {
			t.Fatal(got)
		}
	}
	f.g.SetRules(hostrules.Rules{})
	mouths["both.example"].end.Write([]byte("after")) // which fails, if it is told already that there is no socket any more
	mouths["udp.example"].say(t, "after")
	if got, _ := hear(t, servers["udp.example"]); got != "after" {
		t.Error(got)
	}
	if r := refusalOf(<-overs["both.example"]); r == nil || !strings.Contains(r.Why, "no entry") {
		t.Errorf("%+v", r)
	}
	servers["both.example"].SetReadDeadline(time.Unix(1, 0))
	if n, err := servers["both.example"].Read(make([]byte, 10)); err == nil {
		t.Errorf("its server was sent %d bytes", n)
	}
	if _, over := f.flow("both.example", 5000); refusalOf(<-over) == nil {
		t.Error("a new flow is not refused")
	}
	f.g.SetRules(f.g.compiled.rules)
	again, _ := f.flow("both.example", 5000)
	again.say(t, "again")
	servers["both.example"].SetReadDeadline(time.Now().Add(time.Minute))
	if got, _ := hear(t, servers["both.example"]); got != "again" {
		t.Error(got)
	}
}
