package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// observed are the events of a sandbox's runs.
type observed struct {
	mu   sync.Mutex
	list []policy.Event
}

func (o *observed) observe(e policy.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, e)
}

// take returns what has been told since it was called last.
func (o *observed) take() []policy.Event {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.list
	o.list = nil
	return list
}

func kindsOf(events []policy.Event) string {
	var list []string
	for _, e := range events {
		list = append(list, string(e.Kind))
	}
	return strings.Join(list, " ")
}

// TestKernelEachRunThatStartsEndsOnceForItsObserver: in whatever way it ends, by whatever way it was started, and nothing is told after Wait.
func TestKernelEachRunThatStartsEndsOnceForItsObserver(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		var seen observed
		p := tracedPolicy(t, w)
		p.Observe = seen.observe
		s := attackSandbox(t, p, w)
		p.Limits.WallClock = 300 * time.Millisecond
		late := attackSandbox(t, p, w)
		wait := func(c *Cmd, end func()) error {
			if err := c.Start(); err != nil {
				return err
			}
			end()
			return c.Wait()
		}
		at := func(c *Cmd) *Cmd { c.Dir = "/"; return c }
		sh := func(text string) *Cmd { return at(s.Command("/bin/sh", "-c", text)) }
		broken := filepath.Join(p.Files.Write[0], "broken")
		if err := os.WriteFile(broken, []byte("\x7fELF, and then not"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			name, status, err string
			code              int
			run               func() error
		}{
			{"it exits", "exit status 3", "", 3, func() error { return sh("exit 3").Run() }},
			{"its output is taken", "exit status 0", "", 0, func() error { _, err := sh("echo").Output(); return err }},
			{"it kills itself", "signal: terminated", "", -1, func() error { return sh("kill -TERM $$").Run() }},
			{"it cannot be executed", "not started", "exec format error", -1, func() error { return at(s.Command(broken)).Run() }},
			{"the harness kills it", "signal: killed", "", -1, func() error {
				c := at(s.Command("/bin/sleep", "1000"))
				return wait(c, func() { c.Process.Kill() })
			}},
			{"the harness's context ends", "signal: killed", "context canceled", -1, func() error {
				ctx, cancel := context.WithCancel(t.Context())
				return wait(at(s.CommandContext(ctx, "/bin/sleep", "1000")), cancel)
			}},
			{"its deadline passes", "ended at its deadline, 300ms", "deadline was reached", -1, func() error { return at(late.Command("/bin/sleep", "1000")).Run() }},
			{"its init is killed", "signal: killed", "while the tool ran", -1, func() error {
				c := sh(sleeper)
				return whileItSleeps(t, c, func() error { return unix.Kill(initOf(t, s, c), unix.SIGKILL) })
			}},
			{"another library starts and waits for it", "exit status 4", "", 4, func() error {
				c := exec.Command("/bin/sh", "-c", "exit 4")
				c.Dir = "/"
				if err := s.Wrap(c); err != nil {
					t.Fatal(err)
				}
				return c.Run()
			}},
			{"the embedded command is started", "exit status 5", "", 5, func() error { return sh("exit 5").Cmd.Run() }},
			{"its standard output is closed early", "exit status 0", "", 0, func() error { return sh("exec >&- 2>&-").Run() }},
		} {
			err := test.run()
			events := seen.take()
			if len(events) != 2 || kindsOf(events) != "started ended" || events[0].Run != events[1].Run {
				t.Errorf("%s (%v): %s", test.name, err, kindsOf(events))
				continue
			}
			first, end := events[0].Started, events[1].Ended
			if first.PID <= 0 || first.Tool == "" || len(first.Args) == 0 {
				t.Errorf("%s: %+v", test.name, first)
			}
			if end.Status != test.status || end.ExitCode != test.code || (end.Err == "") != (test.err == "") || !strings.Contains(end.Err, test.err) || end.Duration <= 0 || end.Denied != 0 {
				t.Errorf("%s (%v): %+v", test.name, err, end)
			}
			if said := end.Status == fmt.Sprint(err) || end.Status == "exit status 0" && err == nil; !said && test.err == "" {
				t.Errorf("%s: Wait says %v, the event %s", test.name, err, end.Status)
			}
		}
		for _, c := range []*Cmd{at(s.Command("/nonexistent")), s.Command("/bin/sh")} {
			if c.Dir == "" {
				c.SysProcAttr = &syscall.SysProcAttr{Chroot: "/"}
			}
			if err := c.Run(); err == nil {
				t.Error("it was started")
			}
		}
		if events := seen.take(); len(events) != 0 {
			t.Errorf("of what was not started, or after Wait: %s", kindsOf(events))
		}
	})
}

// initOf is the number of a run's first process.
func initOf(t *testing.T, s *Sandbox, c *Cmd) int {
	pid := onlyChild(t, c.Process.Pid)
	if !s.ready.Plan.Namespaces.PID {
		pid = onlyChild(t, pid) // of the keeper
	}
	return pid
}

// TestKernelObserverIsToldWhatTheReportHas: denials, those of the network at once and those of the supervisor before the end,
// questions with their answers, and what the run has used.
func TestKernelObserverIsToldWhatTheReportHas(t *testing.T) {
	eachWall(t, netWalls, func(t *testing.T, w walls) {
		var seen observed
		asked := make(chan string, 8)
		s := networkSandbox(t, w, func(p *Policy) {
			p.Observe = func(e policy.Event) { seen.observe(e); panic("which is ignored") }
			p.Network.Decide = func(_ context.Context, r policy.Request) policy.Verdict {
				asked <- r.Host
				return policy.Verdict{Allow: r.Host == "allowed.example", Reason: "it is not known", For: policy.Sandbox}
			}
		})
		run := func() (*Report, []policy.Event) {
			_, r := says(t, s, "fetch", "http://allowed.example/", "http://other.example/", "http://other.example/")
			return r, seen.take()
		}
		r, events := run()
		if got, want := kindsOf(events), "started asked answered asked answered denied denied ended"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		var denied []Violation
		for _, e := range events {
			if e.Denied != nil {
				denied = append(denied, *e.Denied)
			}
			if e.Kind == policy.EventAnswered && (e.Answer.Allow != (e.Asked.Host == "allowed.example") || e.Answer.For != policy.Sandbox) {
				t.Errorf("%+v", e)
			}
			if _, err := json.Marshal(e); err != nil || e.LogValue().Kind() != slog.KindGroup {
				t.Errorf("%+v: %v", e, err)
			}
		}
		if !slices.Equal(denied, r.Violations) || denied[0].Rule != "Decide" || denied[1].Rule != "Decide, for the sandbox" {
			t.Errorf("told\n%v, reported\n%v", denied, r.Violations)
		}
		end := events[len(events)-1].Ended
		if end == nil || end.Denied != 2 || end.Sent == 0 || end.Received == 0 || end.Lost != 0 {
			t.Fatalf("%+v", end)
		}
		if end.MaxRSS < 1<<16 || end.UserTime+end.SystemTime <= 0 || end.UserTime+end.SystemTime > time.Hour {
			t.Errorf("used: %+v", end)
		}
		for _, line := range r.Bounds {
			if held := line.State == Held || line.State == Partly || line.State == Open; held == slices.Contains(end.Unheld, line.Bound) {
				t.Errorf("%s is %s, and not held are %v", line.Bound, line.State, end.Unheld)
			}
		}
		if len(asked) != 2 {
			t.Errorf("%d questions", len(asked))
		}
		// The next run of the sandbox has the answers.
		if _, events := run(); kindsOf(events) != "started denied ended" || len(asked) != 2 {
			t.Errorf("%s, and %d questions", kindsOf(events), len(asked))
		}
	})
}

// TestKernelObserverIsToldWhatTheSupervisorRefused while the tool goes on: it ends when its observer has been told. Nothing is told twice.
func TestKernelObserverIsToldWhatTheSupervisorRefused(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		var seen observed
		p := tracedPolicy(t, w)
		told := make(chan bool, 8)
		p.Observe = func(e policy.Event) {
			if seen.observe(e); e.Kind == policy.EventDenied {
				told <- true
			}
		}
		s := attackSandbox(t, p, w)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		c := s.CommandContext(ctx, "/bin/sh", "-c", "cd "+filepath.Join(p.Files.Write[0], "0")+"; for i in 1 2 3; do true >.bashrc; done; true >.envrc; read x; true >.bashrc; true >.zshrc; exit 0")
		c.Dir = "/"
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			select {
			case <-told:
			case <-ctx.Done():
				t.Error("nothing was told while the tool ran")
			}
		}
		in.Close()
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		events, r := seen.take(), c.Report()
		var denied, reported []string
		for _, e := range events {
			if e.Denied != nil {
				denied = append(denied, e.Denied.String())
			}
		}
		for _, v := range r.Violations {
			reported = append(reported, v.String())
		}
		if kindsOf(events) != "started denied denied denied ended" || !slices.Equal(denied, reported) || events[len(events)-1].Ended.Denied != 6 {
			t.Errorf("%s, told\n%v, reported\n%v", kindsOf(events), denied, r.Violations)
		}
	})
}
