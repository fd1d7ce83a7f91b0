package sandbox

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A server that comes and goes, or stays.
var _ = offer(programs, "session listener", func(args []string) {
	for {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			println(err.Error())
			os.Exit(1)
		}
		if args[0] == "stays" {
			forever()
		}
		time.Sleep(50 * time.Millisecond)
		l.Close()
	}
})

// watchesPorts reports whether a goroutine of this process looks for a session's ports.
func watchesPorts() bool {
	b := make([]byte, 16<<20)
	return strings.Contains(string(b[:runtime.Stack(b, true)]), "WatchPorts")
}

// TestKernelObserverIsToldWhoListens in a session: who begins, who ends, and nothing after the session's end. Nothing looks without an observer.
func TestKernelObserverIsToldWhoListens(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t) // it waits most of the time
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		p := attackPolicy(t, makeGrounds(t, 1), w)
		p.Files.Protect = policy.Protect{} // without namespaces there is a supervisor then, which has tools serve
		unobserved, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		outputOf(t, unobserved.sh("true"))
		if watchesPorts() {
			t.Error("a session without an observer is watched")
		}
		unobserved.Close()
		events := make(chan policy.Event, 1<<10)
		p.Observe = func(e policy.Event) { events <- e }
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		changed := func() *policy.Ports {
			t.Helper()
			for late := time.After(3 * time.Minute); ; { // a look comes ten seconds after the last, and reads the machine's sockets
				select {
				case e := <-events:
					if _, err := json.Marshal(e); err != nil || e.LogValue().Kind() != slog.KindGroup {
						t.Errorf("%+v: %v", e, err)
					}
					if e.Kind != policy.EventPorts {
						continue
					}
					if e.Run != e.Session || e.Session == 0 || e.Time.IsZero() {
						t.Errorf("%+v", e)
					}
					return e.Ports
				case <-late:
					t.Fatal("nothing was told")
				}
			}
		}
		server := s.program("session listener", "stays")
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		first := changed()
		if len(first.Before) != 0 || len(first.Now) != 1 {
			t.Fatalf("%+v", first)
		}
		if at := first.Now[0]; at.Protocol != "tcp" || !at.Address.IsLoopback() || at.Port == 0 || at.Process.Command != server.Path || at.Process.Outside == 0 || at.Process.Args != nil {
			t.Errorf("%+v", at)
		}
		server.Process.Kill()
		server.Wait()
		last := changed()
		for len(last.Now) == 1 && last.Now[0].Process.Outside == 0 { // it is on its way out
			last = changed()
		}
		if len(last.Now) != 0 || len(last.Before) != 1 || last.Before[0].Port != first.Now[0].Port {
			t.Errorf("%+v", last)
		}
		if err := s.program("session listener", "goes").Start(); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it comes, and it goes
			changed()
		}
		s.Close()
		if watchesPorts() {
			t.Error("a session that was closed is watched")
		}
		var end policy.Event
		for len(events) > 0 {
			end = <-events
		}
		if end.Kind != policy.EventEnded || end.Run != end.Session || end.Ended.Lost != 0 {
			t.Errorf("the last event: %+v", end)
		}
	})
}
