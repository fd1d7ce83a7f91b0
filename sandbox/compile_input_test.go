package sandbox

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
	inherited := func(in *input) { in.rlimits[rlimit.NoFile] = rlimit.Limit{Soft: 100, Hard: 100} }
	writes := func(n int) resolve.Tree {
		var l resolve.Tree
		for _, name := range numbered("/w/", n) {
			l.Entries = append(l.Entries, resolve.Entry{Path: name, Kind: pathrule.Write, Dir: true})
		}
		return l
	}
	links := func(in *input) {
		for _, name := range numbered("/l/", maxSteps) {
			in.layout.Links = append(in.layout.Links, resolve.Link{Path: name, Target: "/usr"})
		}
	}
	filter := func(rules ...seccomp.Rule) Policy {
		return Policy{Syscalls: seccomp.Filter{Default: seccomp.Allow, Rules: rules}}
	}
	tests := []struct {
		name   string
		policy Policy
		layout resolve.Tree
		change func(*input)
		field  string
	}{
		{"a limit above the harness's own", Policy{Limits: Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(1000)}}}, workspaceLike(), inherited, "Limits.Rlimits.NoFile"},
		{"a filter that refuses everything", Policy{Syscalls: seccomp.Filter{Default: seccomp.KillProcess}}, workspaceLike(), nil, "Syscalls"},
		{"a filter that refuses execve", filter(seccomp.Rule{Names: []string{"execve"}, Action: seccomp.Errno(seccomp.EPERM)}), workspaceLike(), nil, "Syscalls"},
		{"a filter that traps execve", filter(seccomp.Rule{Names: []string{"execve"}, Action: seccomp.Trap}), workspaceLike(), nil, "Syscalls"},
		{"more writable directories than the supervisor takes", Policy{}, writes(supervisor.MaxEntries + 1), nil, "Files.Write"},
		{"more steps than can be told apart", Policy{}, workspaceLike(), links, "Files"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := inputOf(test.layout, newHost(), test.policy)
			if test.change != nil {
				test.change(&in)
			}
			_, err := compile(in)
			fixture.SaysWhatToDo(t, err, test.field)
		})
	}
}

func TestCompileTakesWhatIsJustEnough(t *testing.T) {
	kerneltest.Long(t)
	for name, p := range map[string]Policy{
		"a filter that logs execve":                  {Syscalls: seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"execve"}, Action: seccomp.Log}}}},
		"many writable directories and no names":     {Files: Files{Protect: policy.Protect{Off: true}}},
		"the limit that is inherited, by its number": {Limits: Limits{Rlimits: rlimit.Limits{NoFile: rlimit.At(100)}}},
	} {
		l := workspaceLike()
		if strings.HasPrefix(name, "many") {
			for _, name := range numbered("/w/", supervisor.MaxEntries+1) {
				l.Entries = append(l.Entries, resolve.Entry{Path: name, Kind: pathrule.Write, Dir: true})
			}
		}
		in := inputOf(l, newHost(), p)
		in.rlimits[rlimit.NoFile] = rlimit.Limit{Soft: 100, Hard: 100}
		if _, err := compile(in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoDeadlineIsRoundedAway: neither the shortest nor the longest one.
func TestNoDeadlineIsRoundedAway(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Second: 1000, math.MaxInt64: 9223372036855, math.MaxInt64 - 1e6: 9223372036854,
	} {
		p, err := compile(inputOf(workspaceLike(), newHost(), Policy{Limits: Limits{WallClock: d}}))
		if err != nil || p.DeadlineMS != want {
			t.Errorf("%d ns: %d ms, want %d, %v", d, p.DeadlineMS, want, err)
		}
	}
}
