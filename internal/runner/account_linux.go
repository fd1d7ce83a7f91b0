package runner

import (
	"cmp"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Account returns what has been said of the run so far. It may be called while another goroutine is in one
// of the run's methods.
func (r *Run) Account() Account {
	a := r.account()
	if r.isWatching() {
		<-r.decided
		<-r.told // init sends the rest right after it has said that the tool was held
		r.follow(&a)
		a.Refused, a.Beyond = r.judged()
		a.Allowed = r.refusals.allowed()
		over, discarded := r.empty, &r.discarded
		if r.session != nil {
			over, discarded = r.session.ended, &r.session.discarded
		}
		select {
		case <-over:
			a.Discarded = *discarded
		default:
		}
		if a.Made, a.Dots = r.refusals.made(); a.Sandbox.Policy.Root != nil {
			a.Dots = supervisor.Names{} // their paths are others outside
		}
	}
	if n := r.made(); n != nil {
		s := n.Summary()
		if a.Network, a.Shared = &s, r.session != nil && !r.borrowed; a.Shared {
			s.Notes = append(s.Notes, r.session.hosts.notes(a.Started, a.Ended)...)
		}
	}
	return a
}

// judged says in words what the supervisor has refused so far.
func (r *Run) judged() (list []policy.Violation, beyond uint64) {
	denials, beyond := r.refusals.get()
	rules := []byte(r.sandbox.Plan.SupervisorRules())
	for _, d := range denials {
		list = append(list, JudgeDenial(d, rules, r.sandbox.Policy.Files))
	}
	watched, more := r.refusals.watched()
	return append(list, watched...), beyond + more
}

// follow fills in what is known of a run whose stage has been started.
func (r *Run) follow(a *Account) {
	a.Started, a.Secrets = r.began, r.secrets
	select {
	case <-r.empty:
		a.Ended, a.Stuck = r.ended, r.stuck
		a.Status = "ended"
		if s := r.processState(); s != nil {
			a.Status = s.String()
		}
		if r.control.Deadline {
			a.Status = "ended at its deadline, " + (time.Duration(r.sandbox.Plan.DeadlineMS) * time.Millisecond).String()
		}
		if err := r.processError(nil); err != nil {
			a.Status = "ended before its time: " + err.what()
		}
	default:
		a.Status = "running"
	}
	switch {
	case r.cutShort():
		a.Status += ", before its evidence was read"
		a.Evidence = &Evidence{Unread: true}
	case !r.control.Started:
		a.Status = "not started"
	default:
		p := r.sandbox.Plan
		if r.session != nil {
			p = p.ForSession()
		}
		a.Evidence = readEvidence(p, r.control, r.withheld, r.made())
		a.Evidence.inSession = r.session != nil
		if a.Cold = r.cold(); r.borrowed || r.unprepared != "" {
			a.Unprepared = cmp.Or(r.unprepared, a.Cold)
		}
	}
}

// cold says why no process that stood ready became the tool; "": one did, or the run is not one of a session.
func (r *Run) cold() string {
	switch {
	case r.session == nil || r.control.Warmth == wire.Warm:
		return ""
	case r.control.Warmth == wire.ColdKilled:
		return "what stood ready was killed or stopped from inside"
	case r.session.ready == nil:
		return "none can stand ready under this policy, whose filter has to be loaded last or whose limit on processes would count it"
	case r.session.ready != r.template:
		return "it runs as another user than its session"
	}
	return "none stood ready at that moment"
}

// cutShort reports whether the run was over before its evidence was read, as
// that of a command which is cancelled at once may be. The tool may have been
// executed even if no message says so: init is killed with the stage. A stage
// that exits by itself without a message has not come so far.
func (r *Run) cutShort() bool {
	if r.control.Started {
		return r.control.Evidence == nil
	}
	s := r.processState()
	return r.control.Failed == nil && !(s != nil && s.Exited())
}
