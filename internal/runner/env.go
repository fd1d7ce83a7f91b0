package runner

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// FilteredEnv is what an Env lets pass of the harness's environment, remembered
// until that environment changes: judging every name takes longer than starting
// to read the plan.
type FilteredEnv struct {
	mu       sync.Mutex
	host     []string
	passed   []string
	withheld int
}

// Of returns the variables that pass, for the caller to keep, and how many of
// the harness's do not.
func (f *FilteredEnv) Of(e policy.Env) ([]string, int) {
	host := os.Environ()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.host == nil || !slices.Equal(host, f.host) {
		f.host, f.passed = host, e.Environ(host)
		f.withheld = withheldBy(host, f.passed)
	}
	return slices.Clone(f.passed), f.withheld
}

// withheldBy counts the variables of host that are not among those passed.
func withheldBy(host, passed []string) int {
	names := map[string]bool{}
	for _, v := range passed {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
	}
	n := 0
	for _, v := range host {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" && !names[name] {
			n++
		}
	}
	return n
}
