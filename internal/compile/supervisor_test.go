package compile

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestWhoBindsASocket: the supervisor where it can take the tool's descriptor, and else the kernel, where Landlock lets no socket be made in
// what can be written or around it.
func TestWhoBindsASocket(t *testing.T) {
	for _, c := range []struct {
		name               string
		take, landlock, ns bool
		off                bool
		notified, closed   bool
		bound              policy.Bound // whose note says what does not work
	}{
		{name: "a host with everything", take: true, landlock: true, ns: true, notified: true},
		{name: "no descriptor can be taken", landlock: true, ns: true, closed: true, bound: policy.BoundFiles},
		{name: "nor are there namespaces", landlock: true, notified: true},
		{name: "nor is there Landlock", ns: true, notified: true, bound: policy.BoundNetwork},
		{name: "no name is protected", landlock: true, ns: true, off: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}})
			in.Tree.Entries = append(in.Tree.Entries, resolve.Entry{Path: "/home/me/src", Kind: pathrule.Write, Dir: true})
			in.Policy.Files.Protect.Off = c.off
			in.Facts.Take, in.Facts.Landlock, in.Facts.Namespaces = factOf(c.take, "take"), factOf(c.landlock, "Landlock"), factOf(c.ns, "namespaces")
			in.Facts.Landlock.Value = 7
			if c.off {
				in.Tree = resolve.Tree{Entries: []resolve.Entry{{Path: "/ws", Kind: pathrule.Write, Dir: true}}}
			}
			p, err := Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			notified := false
			for _, s := range p.Steps {
				switch do := s.Do.(type) {
				case plan.LoadSupervisor:
					call, err := seccomp.NewCall(seccomp.AMD64, "bind")
					if err != nil {
						t.Fatal(err)
					}
					action, err := do.Program.Evaluate(call)
					if err != nil {
						t.Fatal(err)
					}
					notified = action == seccomp.Notify
				case plan.RestrictFiles:
					for _, r := range do.Ruleset.Paths {
						around := r.Path == "/ws" || r.Path == "/home/me" || r.Path == "/home/me/src"
						if makes := r.Access&landlock.FSMakeSock != 0; around && makes == c.closed && r.Access&landlock.FSMakeReg != 0 || c.ns && r.Path == "/tmp" && !makes {
							t.Errorf("%s: a socket can be made: %t", r.Path, makes)
						}
					}
				}
			}
			if notified != c.notified {
				t.Errorf("bind(2) is sent to the supervisor: %t", notified)
			}
			for _, h := range p.Holdings {
				if said := strings.Contains(strings.Join(h.Notes, " "), "no socket can be"); said != (h.Bound == c.bound) {
					t.Errorf("%s: notes %q", h.Bound, h.Notes)
				}
			}
		})
	}
}

// TestListsTooLongForTheSupervisor: the error names the field, and what helps.
func TestListsTooLongForTheSupervisor(t *testing.T) {
	many := make([]string, supervisor.MaxEntries)
	for i := range many {
		many[i] = fmt.Sprint("/ws/many", i)
	}
	entries := func(in *Input, kind pathrule.Kind, dir bool) {
		for _, p := range many {
			in.Tree.Entries = append(in.Tree.Entries, resolve.Entry{Path: p, Kind: kind, Dir: dir})
		}
	}
	for _, c := range []struct {
		name, field, says string
		add               func(in *Input)
	}{
		{"directories to write", "Files.Write", "directory around them", func(in *Input) { entries(in, pathrule.Write, true) }},
		{"files to read in one", "Files.Read", "directory around them", func(in *Input) { entries(in, pathrule.Read, false) }},
		{"names", "Files.Protect.Add", "name fewer", func(in *Input) {
			for i := range many {
				in.Policy.Files.Protect.Add = append(in.Policy.Files.Protect.Add, fmt.Sprint("name", i))
			}
		}},
		{"what git obeys", "Files.Protect", "remove it", func(in *Input) { in.Obeyed.Paths = append(many, "/ws/one") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(resolve.Tree{Entries: []resolve.Entry{{Path: "/ws", Kind: pathrule.Write, Dir: true}, {Path: "/ws/0", Kind: pathrule.Read}}}, fixture.Host(), policy.Policy{})
			c.add(&in)
			var bad *policy.PolicyError
			if _, err := Plan(in); !errors.As(err, &bad) || bad.Field != c.field || !strings.Contains(bad.Remedy, c.says) || bad.Err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}
