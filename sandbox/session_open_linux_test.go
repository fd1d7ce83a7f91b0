package sandbox

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// TestKernelOpenSaysWhatASessionTakes: where there cannot be one, the error names what is missing, and single commands run. Elsewhere
// a session's report says what it is without.
func TestKernelOpenSaysWhatASessionTakes(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.HasSeccompFilter)
	mayTrace := allSets[1]
	mayTrace.name, mayTrace.may = "without Landlock, which the policy accepts", []Bound{policy.BoundProcesses}
	for _, test := range []struct {
		walls walls
		set   func(p *Policy)
		want  string // of the error
		lost  string // of the report
	}{
		{walls: allSets[1], want: "see Probe's Landlock, or name processes in Policy.May"},
		{walls: mayTrace, lost: "commands of the session can read each other's memory"},
		{walls: walls{name: "Landlock without scopes", abi: 5}},
		{walls: walls{name: "Landlock's first version", abi: 1}},
		{walls: allSets[3], lost: "other processes' names and command lines can be seen"},
		{walls: unscoped[0], lost: "the user's other processes can be seen and signalled"},
		{walls: unscoped[1], lost: "the user's other processes can be seen and signalled"},
		{walls: walls{name: "without a bound on processes"}, set: func(p *Policy) { p.Open = []Bound{policy.BoundProcesses} }},
	} {
		eachWall(t, []walls{test.walls}, func(t *testing.T, w walls) {
			if !w.bare() {
				kerneltest.Need(t, kerneltest.HasUserNamespaces)
			}
			if w.abi != 0 {
				kerneltest.Need(t, kerneltest.LandlockABI(w.abi))
			} else if w.bare() {
				kerneltest.Need(t, kerneltest.LandlockABI(6))
			}
			p := attackPolicy(t, "", w)
			if test.set != nil {
				test.set(&p)
			}
			s := attackSandbox(t, p, w)
			live, err := s.Open(t.Context())
			var is *policy.SessionError
			if test.want != "" {
				if live != nil || !errors.As(err, &is) || !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("%v, %v", live, err)
				}
				c := s.Command("/bin/true")
				c.Dir = "/"
				if err := c.Run(); err != nil {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer live.Close()
			c := live.sh("sleep 1000 >/dev/null 2>&1 & echo ran")
			if out := outputOf(t, c); out != "ran" {
				t.Errorf("%q", out)
			}
			line := c.Report().Bound(policy.BoundProcesses)
			if lost := strings.Join(line.Lost, "\n"); !strings.Contains(lost, test.lost) || (lost != "") != (test.lost != "") {
				t.Errorf("processes: %s, lost: %s", line.State, lost)
			}
			if c.Cancel(); len(awaitProcesses(t, live, 0, "sleep")) > 0 {
				t.Error("it outlives its command")
			}
		})
	}
}

// TestKernelOpenRefusesPoliciesWithoutSessions names the field.
func TestKernelOpenRefusesPoliciesWithoutSessions(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	nested := Policy{Files: Files{Read: []string{"/usr"}}, Nested: true}
	for want, p := range map[string]Policy{"Policy.Root": {Root: &rootfs.Layout{Entries: []rootfs.Entry{rootfs.Bind{Source: "/", At: "/"}}}}, "Policy.Nested": nested} {
		s, err := New(p)
		if errors.Is(err, errors.ErrUnsupported) {
			t.Logf("%s is not held here: %v", want, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Open(t.Context()); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestKernelASessionWhoseScopeIsMissingIsNotHeld: the evidence notices what the plan has promised and is not there.
func TestKernelASessionWhoseScopeIsMissingIsNotHeld(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, []walls{{name: "its steps dropped", drop: plan.LandlockScope}}, func(t *testing.T, w walls) {
		s, err := attackSandbox(t, attackPolicy(t, "", w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		c := s.sh("true")
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if line := c.Report().Bound(policy.BoundProcesses); line.State != Weaker && line.State != Absent {
			t.Errorf("%v", c.Report())
		}
	})
}

// TestKernelObserverIsToldOfASession: its beginning and end, its network's denials, and each of its commands.
func TestKernelObserverIsToldOfASession(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, []walls{{name: allWalls}}, func(t *testing.T, w walls) {
		var seen observed
		of := networkSandbox(t, w, func(p *Policy) {
			allowedExample(p)
			p.Observe = seen.observe
		})
		s, err := of.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if out := outputOf(t, s.program("fetch", "http://allowed.example/")); !strings.HasPrefix(out, "200 ") {
			t.Errorf("%q", out)
		}
		s.program("fetch", "http://other.example/").Run()
		if err := s.sh("sleep 1000 & exit 3").Run(); err == nil {
			t.Error("no error")
		}
		s.Close()
		var own, commands []policy.Event
		events := seen.take()
		number := events[0].Session
		for _, e := range events {
			switch {
			case e.Session != number:
				t.Errorf("%+v is not the session's", e)
			case e.Run == number:
				own = append(own, e)
			default:
				commands = append(commands, e)
			}
		}
		if got := kindsOf(own); got != "started denied ended" {
			t.Errorf("of the session: %s", got)
		}
		if got := kindsOf(commands); got != "started ended started ended started ended" {
			t.Fatalf("of its commands: %s", got)
		}
		if last := events[len(events)-1]; last.Ended == nil || last.Run != number || last.Ended.Denied != 1 || last.Ended.Sent == 0 || last.Ended.Err != "" {
			t.Errorf("%+v", last.Ended)
		}
		if end := commands[5].Ended; end.ExitCode != 3 || end.Status != "exit status 3" || end.MaxRSS == 0 || end.Sent != 0 || end.Err != "" {
			t.Errorf("%+v", end)
		}
		if slices.ContainsFunc(commands, func(e policy.Event) bool { return e.Run == 0 }) {
			t.Error("a command without a number")
		}
	})
}
