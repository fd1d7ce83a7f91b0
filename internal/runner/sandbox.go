package runner

import (
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Sandbox is what the runs of one sandbox have in common: the policy, what it was resolved and
// compiled to, and what is remembered between runs. Its fields are set before the first run.
type Sandbox struct {
	Policy    policy.Policy // without the secrets of Network.Credentials
	Tree      resolve.Tree  // the policy's paths
	Plan      plan.Plan
	NetConfig compile.NetConfig
	Networks  *Networks
	Env       *FilteredEnv // behind a pointer, which no printer follows: it has all of the harness's environment
	Engine                 // what the plan was made for this system

	closed atomic.Bool
}

// Close refuses further runs. It reports whether it is the first to do so.
func (s *Sandbox) Close() bool { return s.closed.CompareAndSwap(false, true) }
