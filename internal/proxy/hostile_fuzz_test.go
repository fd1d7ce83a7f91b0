package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// hostileTime is how long each of the generators goes on: HOLDFAST_HOSTILE=10m for a long run, under -race.
func hostileTime(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("HOLDFAST_HOSTILE"))
	if err != nil {
		return time.Second
	}
	return d
}

// TestHostilePeers has clients and servers say anything, in clear text, in tunnels of CONNECT and SOCKS, in
// TLS that passes and in TLS that is ended, and below it: nothing panics or hangs, no goroutine, no
// descriptor and no memory is left, nothing is in the harness's log, and no secret comes back.
func TestHostilePeers(t *testing.T) {
	kerneltest.Long(t)
	for name, c := range map[string][2]bool{"clients": {true, false}, "servers": {false, true}, "both": {true, true}} {
		t.Run(name, func(t *testing.T) { hostilePeers(t, c[0], c[1]) })
	}
}

func hostilePeers(t *testing.T, clients, servers bool) {
	logged(t)
	before, files := runtime.NumGoroutine(), fuzzFiles()
	w := &fuzzed{newSecureWorld(t, Config{Network: policy.Network{Observe: func(policy.Connection) {}, Credentials: bearer()}}, quick), clients, servers}
	w.hostileAt("example.com", 80, func(c net.Conn) { w.answer(c, false) })
	w.hostileAt("example.com", 443, func(c net.Conn) { w.answer(c, true) })
	w.hostileAt("api.example.com", 443, func(c net.Conn) { w.answer(c, true) })
	end := time.Now().Add(hostileTime(t))
	var asked, leaked atomic.Int64
	var early int64 // the heap, once everything has been used
	for part := range 4 {
		fuzzing(time.Now().Add(time.Until(end)/time.Duration(4-part)), func(r *rand.Rand) {
			asked.Add(1)
			if got := w.ask(r); bytes.Contains(got, []byte(testSecret)) && leaked.Add(1) < 5 {
				t.Errorf("the secret comes back: %.2000q", got)
			}
		})
		if now := heap(); part == 0 {
			early = now
		} else if now > early+32<<20 {
			t.Errorf("the heap has grown from %d to %d KiB", early>>10, now>>10)
		}
	}
	w.g.Close()
	if s := w.g.Summary(); s.Stuck {
		t.Error("something is stuck")
	}
	if used := w.g.headerBudget.used.Load(); used != 0 {
		t.Errorf("%d bytes of headers are not given back", used)
	}
	for end := time.Now().Add(time.Minute); (runtime.NumGoroutine() > before+20 || fuzzFiles() > files+20) && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	if n, f := runtime.NumGoroutine()-before, fuzzFiles()-files; n > 20 || f > 20 {
		t.Errorf("%d goroutines and %d descriptors are left", n, f)
	}
	t.Logf("%v: %d clients, %d KiB of heap", w, asked.Load(), heap()>>10)
}

// fuzzing has forty-eight do something until a time.
func fuzzing(until time.Time, do func(*rand.Rand)) {
	var all sync.WaitGroup
	for range 48 {
		all.Go(func() {
			for r := rand.New(rand.NewPCG(rand.Uint64(), 0)); time.Now().Before(until); {
				do(r)
			}
		})
	}
	all.Wait()
}

// fuzzFiles is how many descriptors this process has; 0 where that cannot be seen.
func fuzzFiles() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}

// TestConnectionsAtTheirWorst is the figure of docs/network.md: what a crowd's headers take of the harness, by the
// tool alone and with a server that helps it.
func TestConnectionsAtTheirWorst(t *testing.T) {
	kerneltest.Long(t)
	const conns = 1024
	for _, name := range []string{"the tool alone", "with a server"} {
		w := newWorld(t, Config{}, "example.com")
		w.hostileAt("example.com", 80, func(c net.Conn) {
			c.Read(make([]byte, 4096))
			if name == "with a server" {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n%s\r\n", tiny(maxResponseFields-1)+"")
			}
			<-t.Context().Done()
		})
		before := heap()
		var held []net.Conn
		for range conns {
			c, err := net.Dial("tcp", w.http)
			if err != nil {
				t.Skip("the test has not the descriptors that it needs: ", err)
			}
			held = append(held, c)
			if name == "the tool alone" {
				fmt.Fprintf(c, "POST http://example.com/ HTTP/1.1\r\nHost: example.com\r\nContent-Length: 1\r\n%s\r\n", tiny(maxRequestFields-2))
			} else {
				fmt.Fprint(c, "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n")
			}
		}
		grown, last := int64(0), int64(-1)
		for i := 0; i < 50 && grown != last; i++ { // until it grows no more
			last = grown
			time.Sleep(100 * time.Millisecond)
			grown = max(grown, heap()-before)
		}
		t.Logf("%s: %d connections take %d KiB, %d KiB each; %d KiB of the budget", name, conns, grown>>10, grown>>10/conns, w.g.headerBudget.used.Load()>>10)
		if most := int64(maxHeaderMemory) + conns*64<<10; grown > most {
			t.Errorf("%s: %d bytes, and not %d at most", name, grown, most)
		}
		w.g.Close()
		for _, c := range held {
			c.Close()
		}
	}
}
