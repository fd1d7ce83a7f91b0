package plan

import (
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/landlock"
)

// TestASessionsScopesAreAroundAllItsCommands, and a layer that closes memory alone is around each. Where there are no scopes,
// init is not signalled for a check: the tool's parent is a warden.
func TestASessionsScopesAreAroundAllItsCommands(t *testing.T) {
	apart := landlock.ScopesOnly()
	apart.Unscoped = landlock.ScopeAll
	p := Plan{Apart: &RestrictFiles{Ruleset: apart}, Steps: []Step{
		{In: Init, Do: Undumpable{}},
		{In: Tool, Do: RestrictFiles{Ruleset: landlock.ScopesOnly()}, By: LandlockScope},
		{In: Tool, Do: RestrictFiles{Ruleset: landlock.ScopesOnly()}, By: LandlockNet}, // which Apart has
		{In: Tool, Do: CheckRoot{}},
		{In: Tool, Do: CheckSignal{}},
		{In: Tool, Do: Chdir{}},
	}}
	before := slices.Clone(p.Steps)
	scopes := []string{"init start a process that stays outside of the domain", "init landlock: " + landlock.ScopeAll.String(), "init check that init cannot be signalled"}
	memory := []string{"tool landlock: " + landlock.Scope(0).String()}
	others := []string{"tool check that a directory outside cannot be listed", "tool enter the working directory"}
	undumpable := []string{"init make init undumpable"}
	unapart := p
	unapart.Apart = nil
	for name, test := range map[string]struct {
		plan Plan
		want []string
	}{
		"with Landlock's scopes": {p, slices.Concat(undumpable, scopes, memory, others)},
		"below ABI 6":            {p.Without(LandlockScope), slices.Concat(undumpable, memory, others)},
		"without Landlock":       {unapart.Without(LandlockScope).Without(LandlockNet), slices.Concat(undumpable, others)},
	} {
		var got []string
		for _, s := range test.plan.ForSession().Steps {
			got = append(got, s.In.String()+" "+s.Do.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q\nnot %q", name, got, test.want)
		}
	}
	for i := range before {
		if before[i].Do.String() != p.Steps[i].Do.String() {
			t.Errorf("step %d of the plan itself has changed", i)
		}
	}
}
