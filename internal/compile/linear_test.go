package compile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestManyRulesTakeLinearTime: sixteen times the rules take some sixteen times as long to compile. While each was held against all others it was two hundred.
func TestManyRulesTakeLinearTime(t *testing.T) {
	const few, times = 4000, 16
	a, b := timePlan(t, few), timePlan(t, times*few)
	t.Logf("%d rules: %v; %d: %v", few, a, times*few, b)
	if b > 6*times*a {
		t.Errorf("%d rules took %v, %d %v", few, a, times*few, b)
	}
}

// timePlan is the least time of three in which a plan of n path rules was made.
func timePlan(t *testing.T, n int) time.Duration {
	t.Helper()
	in := inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{})
	for i := range n {
		in.Tree.Entries = append(in.Tree.Entries, resolve.Entry{Path: fmt.Sprint("/shown/file", i), Kind: pathrule.Read})
	}
	slices.SortFunc(in.Tree.Entries, func(a, b resolve.Entry) int { return pathrule.TreeOrder(a.Path, b.Path) })
	least := time.Hour
	for range 3 {
		began := time.Now()
		if _, err := Plan(in); err != nil {
			t.Fatal(err)
		}
		least = min(least, time.Since(began))
	}
	return least
}
