package runner

import (
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An Account is what is known of a run so far.
type Account struct {
	Sandbox  *Sandbox // nil: there is none, and Status says why
	Tool     string
	Status   string // "promised", "running", "exit status 1", "ended at its deadline, 1m0s" ...
	Started  time.Time
	Deadline time.Time // the context's, at which os/exec calls Cancel; zero: there is none
	Ended    time.Time
	Evidence *Evidence          // nil: the tool was not executed
	Stuck    int                // a process that was killed and has not ended; 0: there is none
	Secrets  []string           // names in the command's own Env that look like secrets
	Denials  []Denial           // of a system that keeps a log of them
	Network  *Summary           // nil: there is no network, or none yet
	Refused  []policy.Violation // by the supervisor, so far
	Beyond   uint64             // refusals that Refused has no room for
}

// account begins a run's Account.
func (r *Run) account() Account {
	a := Account{Sandbox: r.sandbox, Tool: r.tool().Path, Status: "promised"}
	if at, ok := r.caller.Deadline(); ok && r.cmd.Cancel != nil {
		a.Deadline = at
	}
	if r.sandbox == nil {
		a.Status = "no sandbox"
		if r.broken != nil {
			a.Status += ": " + r.broken.Error()
		}
	}
	return a
}
