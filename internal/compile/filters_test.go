package compile

import (
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// TestTheSupervisorsFilterIsTheLastThatTheOthersLetBe: a filter that refuses seccomp(2) comes after it.
func TestTheSupervisorsFilterIsTheLastThatTheOthersLetBe(t *testing.T) {
	refuses := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"seccomp"}, Action: seccomp.Errno(seccomp.EPERM)}}}
	lets := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"ptrace"}, Action: seccomp.Errno(seccomp.EPERM)}}}
	compiled := func(filters ...seccomp.Filter) (list []seccomp.Program) {
		for _, f := range filters {
			p, err := f.Compile(seccomp.AMD64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, p)
		}
		return list
	}
	for _, c := range []struct {
		name   string
		policy policy.Policy
		others int // filters after the supervisor's
	}{
		{"the default profile", policy.Policy{}, 0},
		{"one that lets it pass", policy.Policy{Syscalls: lets}, 0},
		{"one that refuses it", policy.Policy{Syscalls: refuses}, 1},
		{"the strict one, which refuses it", policy.Policy{Syscalls: seccomp.Strict()}, 1},
		{"none", policy.Policy{Syscalls: seccomp.Off()}, 0},
		{"programs that let it pass", policy.Policy{Programs: compiled(lets, lets)}, 0},
		{"a program that refuses it", policy.Policy{Programs: compiled(lets, refuses)}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(fixture.WorkspaceTree(), fixture.Host(), c.policy)
			in.Arch = seccomp.AMD64
			p, err := Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			at := position(p, is[plan.LoadSupervisor])
			if at < 0 || len(p.Steps)-1-at != c.others {
				t.Errorf("step %d of\n%s", at, p)
			}
		})
	}
}

// TestAProgramThatCannotBeLoadedIsRefused: a filter before it refuses the prctl(2) by which it would be.
func TestAProgramThatCannotBeLoadedIsRefused(t *testing.T) {
	refuses := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"prctl"}, Action: seccomp.Errno(seccomp.EPERM)}}}
	program, err := refuses.Compile(seccomp.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, field string
		policy      policy.Policy
	}{
		{"the profile refuses it", "Programs[0]", policy.Policy{Syscalls: refuses, Programs: []seccomp.Program{program}}},
		{"a program before it does", "Programs[1]", policy.Policy{Programs: []seccomp.Program{program, program}}},
		{"the last one may", "", policy.Policy{Programs: []seccomp.Program{program}}},
		{"and a profile without programs", "", policy.Policy{Syscalls: refuses}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := inputOf(fixture.WorkspaceTree(), fixture.Host(), c.policy)
			in.Arch = seccomp.AMD64
			_, err := Plan(in)
			var wrong *policy.PolicyError
			if errors.As(err, &wrong) != (c.field != "") || wrong != nil && wrong.Field != c.field {
				t.Errorf("%v", err)
			}
		})
	}
}
