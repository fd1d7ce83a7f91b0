package compile

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestCompileNamesTheField: what can only be said of a policy together with the
// host is a *PolicyError as well.
func TestCompileNamesTheField(t *testing.T) {
	kerneltest.Long(t)
	inherited := func(in *Input) { in.Rlimits[rlimit.NoFile] = rlimit.Limit{Soft: 100, Hard: 100} }
	writes := func(n int) resolve.Tree {
		var l resolve.Tree
		for _, name := range fixture.Numbered("/w/", n) {
			l.Entries = append(l.Entries, resolve.Entry{Path: name, Kind: pathrule.Write, Dir: true})
		}
		return l
	}
	links := func(in *Input) {
		for _, name := range fixture.Numbered("/l/", maxSteps) {
			in.Tree.Links = append(in.Tree.Links, resolve.Link{Path: name, Target: "/usr"})
		}
	}
	filter := func(rules ...seccomp.Rule) policy.Policy {
		return policy.Policy{Syscalls: seccomp.Filter{Default: seccomp.Allow, Rules: rules}}
	}
	tests := []struct {
		name   string
		policy policy.Policy
		layout resolve.Tree
		change func(*Input)
		field  string
	}{
		{"a limit above the harness's own", policy.Policy{Limits: policy.Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(1000)}}}, fixture.WorkspaceTree(), inherited, "Limits.Rlimits.NoFile"},
		{"a filter that refuses everything", policy.Policy{Syscalls: seccomp.Filter{Default: seccomp.KillProcess}}, fixture.WorkspaceTree(), nil, "Syscalls"},
		{"a filter that refuses execve", filter(seccomp.Rule{Names: []string{"execve"}, Action: seccomp.Errno(seccomp.EPERM)}), fixture.WorkspaceTree(), nil, "Syscalls"},
		{"a filter that traps execve", filter(seccomp.Rule{Names: []string{"execve"}, Action: seccomp.Trap}), fixture.WorkspaceTree(), nil, "Syscalls"},
		{"more writable directories than the supervisor takes", policy.Policy{}, writes(supervisor.MaxEntries + 1), nil, "Files.Write"},
		{"more steps than can be told apart", policy.Policy{}, fixture.WorkspaceTree(), links, "Files"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := inputOf(test.layout, fixture.Host(), test.policy)
			if test.change != nil {
				test.change(&in)
			}
			_, err := Plan(in)
			fixture.SaysWhatToDo(t, err, test.field)
		})
	}
}

func TestCompileTakesWhatIsJustEnough(t *testing.T) {
	kerneltest.Long(t)
	for name, p := range map[string]policy.Policy{
		"a filter that logs execve":                  {Syscalls: seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"execve"}, Action: seccomp.Log}}}},
		"many writable directories and no names":     {Files: policy.Files{Protect: policy.Protect{Off: true}}},
		"the limit that is inherited, by its number": {Limits: policy.Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(100)}}},
	} {
		l := fixture.WorkspaceTree()
		if strings.HasPrefix(name, "many") {
			for _, name := range fixture.Numbered("/w/", supervisor.MaxEntries+1) {
				l.Entries = append(l.Entries, resolve.Entry{Path: name, Kind: pathrule.Write, Dir: true})
			}
		}
		in := inputOf(l, fixture.Host(), p)
		in.Rlimits[rlimit.NoFile] = rlimit.Limit{Soft: 100, Hard: 100}
		if _, err := Plan(in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoDeadlineIsRoundedAway: neither the shortest nor the longest one.
func TestNoDeadlineIsRoundedAway(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, math.MaxInt64: 9223372036855, math.MaxInt64 - 1e6: 9223372036854,
	} {
		p, err := Plan(inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{Limits: policy.Limits{WallClock: d}}))
		if err != nil || p.DeadlineMS != want {
			t.Errorf("%d ns: %d ms, want %d, %v", d, p.DeadlineMS, want, err)
		}
	}
}
