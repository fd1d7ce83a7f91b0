package runner

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An Account is what is known of a run so far.
type Account struct {
	Sandbox  *Sandbox // nil: there is none, and Status says why
	Tool     string
	Status   string // "promised", "running", "exit status 1", "ended at its deadline, 1m0s" ...
	Started  time.Time
	Deadline time.Time // the context's, at which os/exec ends the run; zero: there is none
	Ended    time.Time
	Evidence *Evidence // nil: the tool was not executed
	Stuck    int       // a process that was killed and has not ended; 0: there is none
	Secrets  []string  // names in the command's own Env that look like secrets
	Denials  []Denial  // of a system that keeps a log of them
	Network  *Summary  // nil: there is no network, or none yet
	Shared   bool      // the command is one of a session, and the network is the session's
	// Unprepared says why a command of a sandbox that is to be prepared started cold; "": it did not.
	Unprepared string
	Cold       string             // why no process that stood ready became the tool of a session's command; "": one did, or there is no session
	Refused    []policy.Violation // by the supervisor, so far
	Beyond     uint64             // refusals that Refused has no room for
	Allowed    []string           // what Files.Decide has allowed, in words
	Made       supervisor.Names   // protected names that the tool has made in directories of its own
	Discarded  supervisor.Names   // files that it has left directly in a private HOME or beside the workspace; once the run, or its session, is over
	Dots       supervisor.Names   // names that begin with a dot and that no list has, which it has made in other directories
}
