package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Sandbox is what the runs of one sandbox have in common: the policy, what it was resolved and
// compiled to, and what is remembered between runs. Its fields are set before the first run.
type Sandbox struct {
	Policy    policy.Policy // without the secrets of Network.Credentials
	Tree      resolve.Tree  // the policy's paths
	Kept      []policy.File // of the policy, in Files.Home
	Plan      plan.Plan
	NetConfig compile.NetConfig
	Networks  *Networks
	Env       *FilteredEnv // behind a pointer, which no printer follows: it has all of the harness's environment
	Made      *Made        // what its tools have made, which its commands share; nil: they know nothing of each other's
	Engine                 // what the plan was made for this system

	// Complete adds to the end of a run what its account says, and returns what the supervisor has refused. It is called
	// if the policy has an Observe.
	Complete func(run interface{ Account() Account }, e *policy.Ended) (refused []policy.Violation)

	// Secret says why a path of the host's is not to be granted lightly; "": nothing is known.
	Secret func(path string, tree bool) string

	answers  callback.Memory           // of Files.Decide
	lastTool atomic.Pointer[shownTool] // see checkTool

	number atomic.Uint64 // in events; 0: none yet
	closed atomic.Bool
}

// A shownTool is a tool that the policy shows.
type shownTool struct {
	path     string
	dev, ino uint64
}

// close refuses further runs. It reports whether it is the first to do so.
func (s *Sandbox) close() bool { return s.closed.CompareAndSwap(false, true) }

// shows reports whether the policy shows p, a path of the host, to the tool, at
// the same path. A path that does not exist is shown where its parent is.
func (s *Sandbox) shows(p string) bool {
	shown, _ := s.look(p)
	return shown
}

// look is shows, and whether what is there is the host's, and not a directory that the policy makes.
func (s *Sandbox) look(p string) (shown, hosts bool) {
	if slices.Contains(s.Policy.Open, policy.BoundFiles) {
		return true, true
	}
	p, err := filepath.Abs(p)
	if err != nil {
		return false, false
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		real = p
		if dir, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			real = filepath.Join(dir, filepath.Base(p))
		}
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if e, ok := s.Tree.Find(dir); ok {
			switch e.Kind {
			case pathrule.Read, pathrule.Write, pathrule.CopyOnWrite:
				return e.Dir || dir == real, true
			case pathrule.Private, pathrule.Make:
				return dir == real, false
			}
			return false, false
		}
		if dir == "/" {
			return dir == real, true // the root itself is always there
		}
	}
}

// FilteredEnv is what an Env lets pass of the harness's environment, remembered
// until that environment changes: judging every name takes longer than starting
// to read the plan.
type FilteredEnv struct {
	mu       sync.Mutex
	host     []string
	passed   []string
	withheld int

	listed, distinct []string // what unique was given last, and what it returned
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

// unique returns list without duplicates, of which it keeps the last, as os/exec does. It remembers what it has returned last: to find
// duplicates takes as long as ten system calls.
func (f *FilteredEnv) unique(list []string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.distinct == nil || !slices.Equal(list, f.listed) {
		f.listed = append([]string{}, list...)
		f.distinct = (&exec.Cmd{Env: f.listed}).Environ()
	}
	return slices.Clone(f.distinct)
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
