package runner

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// Evidence is what was read back for one run, in a form to judge by. Parsing
// and judging are pure.
type Evidence struct {
	Unread bool // there is none: the run was over before

	profile    bool              // of a run on macOS: only settings and what follows them is known, but keepsBounding
	status     map[string]string // of the tool: /proc/PID/status
	limits     string            // of the tool: /proc/PID/limits
	namespaces map[plan.Mechanism]string
	own        ownFacts
	rootErrno  int  // the errno of listing the harness's root; -1: not tried
	killErrno  int  // the errno of signalling init; -1: not tried
	inSession  bool // init has tried to signal a process outside, in the place of that
	PrivsErrno int  // the errno of asking whether no_new_privs is set; -1: not asked
	keyring    int64
	initPID    int64

	filters       int // how many filters the plan loads
	settings      []rlimit.Setting
	keepsBounding bool // the stage had no right to empty the bounding set
	withheld      int  // variables that were not passed; -1: Env.AsGiven
	deadline      int64
	proxied       string // what the harness serves of the network, and what has passed; "": nothing
	captured      string
}

// ownFacts are the harness's own, to compare with.
type ownFacts struct {
	namespaces map[plan.Mechanism]string
	filters    int
	keyring    int64
}

// evidenceNamespaces are the mechanisms in the order in which init reads the
// links; see wire.EvidenceNames.
var evidenceNamespaces = []struct {
	mechanism plan.Mechanism
	file      string
}{
	{plan.UserNamespace, "user"}, {plan.MountNamespace, "mnt"}, {plan.PIDNamespace, "pid"}, {plan.IPCNamespace, "ipc"},
	{plan.UTSNamespace, "uts"}, {plan.CgroupNamespace, "cgroup"}, {plan.NetworkNamespace, "net"},
}

// parseEvidence takes init's records apart: a byte that says what, two that say
// how long, and the text. What is cut off or unknown is left out, so that the
// mechanism it would have shown counts as absent.
func parseEvidence(b []byte) (status map[string]string, limits string, namespaces map[plan.Mechanism]string) {
	status, namespaces = map[string]string{}, map[plan.Mechanism]string{}
	for len(b) >= 3 {
		what, n := int(b[0]), int(b[1])|int(b[2])<<8
		if b = b[3:]; n > len(b) {
			return
		}
		text := b[:n]
		b = b[n:]
		switch {
		case what == 0:
			for line := range bytes.Lines(text) {
				if name, value, ok := bytes.Cut(line, []byte(":")); ok {
					status[string(name)] = string(bytes.TrimSpace(value))
				}
			}
		case what == 1:
			limits = string(text)
		case what-2 < len(evidenceNamespaces):
			namespaces[evidenceNamespaces[what-2].mechanism] = string(text)
		}
	}
	return
}

// promise notes what the plan says should be found. It reads the plan that was
// promised, not the one carried out, which a test can make differ.
func (e *Evidence) promise(p plan.Plan) {
	for _, s := range p.Steps {
		switch a := s.Do.(type) {
		case plan.LoadFilter, plan.LoadKeeperFilter, plan.LoadSupervisor:
			e.filters++
		case plan.SetLimits:
			e.settings = append(e.settings, a.Settings...)
		}
	}
	// Dropping from it takes a capability, which an ordinary user has not, nor a root
	// without CAP_SETPCAP.
	e.keepsBounding = !p.Namespaces.User
	e.deadline = p.DeadlineMS
}

// Holds says whether one mechanism is shown to be in force, and by what.
func (e *Evidence) Holds(m plan.Mechanism) (bool, string) {
	if e.profile {
		shown := e.inferred(m)
		return shown != "", shown
	}
	switch m {
	case plan.UserNamespace, plan.MountNamespace, plan.PIDNamespace, plan.IPCNamespace, plan.UTSNamespace, plan.CgroupNamespace, plan.NetworkNamespace:
		return e.otherNamespace(m)
	case plan.Landlock:
		return e.refused(e.rootErrno, "listing a directory outside")
	case plan.LandlockNet: // the same ruleset, or the next
		ok, shown := e.refused(e.rootErrno, "listing a directory outside")
		return ok, shown + "; connecting was not tried"
	case plan.LandlockScope:
		if e.inSession {
			return e.refused(e.killErrno, "signalling a process outside of the session")
		}
		return e.refused(e.killErrno, "signalling init")
	case plan.Seccomp, plan.Supervisor:
		return e.filtered()
	case plan.NoNewPrivs:
		return e.noNewPrivs()
	case plan.Capabilities:
		return e.capless()
	case plan.Keyring:
		return e.keyring > 0 && e.keyring != e.own.keyring, fmt.Sprintf("session keyring %d", e.keyring)
	case plan.Rlimits:
		return e.limited()
	case plan.Subreaper:
		ok := e.status["PPid"] == strconv.FormatInt(e.initPID, 10)
		return ok, "parent " + e.status["PPid"]
	case plan.EnvFilter:
		if e.withheld < 0 {
			return true, "the command's own Env as it was given (Env.AsGiven)"
		}
		return true, fmt.Sprintf("%d variables withheld", e.withheld)
	case plan.EgressProxy:
		return e.proxied != "", e.proxied
	case plan.Capture:
		return e.captured != "", e.captured
	case plan.Deadline:
		return e.deadline > 0, fmt.Sprintf("%d ms", e.deadline)
	}
	return false, "nothing shows it"
}

func (e *Evidence) otherNamespace(m plan.Mechanism) (bool, string) {
	inside, outside := e.namespaces[m], e.own.namespaces[m]
	return inside != "" && outside != "" && inside != outside, inside
}

// refused judges a self-check that must have failed with a refusal.
func (e *Evidence) refused(errno int, act string) (bool, string) {
	switch errno {
	case -1:
		return false, act + " was not tried"
	case 0:
		return false, act + " succeeded"
	case 1, 13: // EPERM, EACCES
		return true, act + " was refused"
	}
	return false, fmt.Sprintf("%s failed with errno %d, which proves nothing", act, errno)
}

func (e *Evidence) filtered() (bool, string) {
	n, err := strconv.Atoi(e.status["Seccomp_filters"])
	if err != nil {
		// Before Linux 5.9 the number is not shown.
		return e.status["Seccomp"] == "2" && e.own.filters == 0, "Seccomp " + e.status["Seccomp"]
	}
	added := n - e.own.filters
	return e.status["Seccomp"] == "2" && e.filters > 0 && added >= e.filters, fmt.Sprintf("Seccomp %s, %d of %d filters", e.status["Seccomp"], max(added, 0), e.filters)
}

// noNewPrivs judges by /proc, or, where that does not show it (gVisor's does not), by what
// init was answered: the tool has inherited it, and nothing takes it back (prctl(2)).
func (e *Evidence) noNewPrivs() (bool, string) {
	if shown, ok := e.status["NoNewPrivs"]; ok || len(e.status) == 0 {
		return shown == "1", "NoNewPrivs " + shown
	}
	if e.PrivsErrno != 0 {
		return false, "neither /proc nor prctl(PR_GET_NO_NEW_PRIVS) shows it"
	}
	return true, "prctl(PR_GET_NO_NEW_PRIVS) is 1"
}

// capless judges the capability sets. The ambient set, which gVisor does not show, holds
// nothing that is not permitted as well (capabilities(7)).
func (e *Evidence) capless() (bool, string) {
	ok := true
	var shown []string
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		set, there := e.status[name]
		if name == "CapAmb" && !there {
			set = e.status["CapPrm"]
		}
		ok = ok && set != "" && strings.Trim(set, "0") == ""
		if set == "" {
			shown = append(shown, name+" unknown")
		} else if strings.Trim(set, "0") != "" {
			shown = append(shown, name+" "+set)
		}
	}
	unprivileged, _ := e.noNewPrivs()
	switch {
	case ok:
		return true, "all five sets empty"
	case e.keepsBounding && len(shown) == 1 && strings.HasPrefix(shown[0], "CapBnd") && unprivileged:
		return true, "all sets empty but the bounding set, of which nothing is gained under no_new_privs"
	}
	return false, strings.Join(shown, ", ")
}

// limited compares the limits that were to be set with those in force. The hard
// side is what bounds the tool: its soft limits are its own to move below that,
// and a Go program moves that of descriptors as it starts (os/rlimit.go).
func (e *Evidence) limited() (bool, string) {
	inForce := parseLimits(e.limits)
	var each, sum []string // by what the kernel counts: a process, or all of the user's
	for _, s := range e.settings {
		switch s.Resource {
		case rlimit.NProc, rlimit.SigPending, rlimit.MemLock, rlimit.MsgQueue:
			sum = append(sum, s.Resource.String())
		default:
			each = append(each, s.Resource.String()+" of each process")
		}
		got, ok := inForce[s.Resource]
		if hard := got[1]; !ok || hard > s.Hard {
			return false, fmt.Sprintf("%s is not in force", s)
		}
	}
	return len(e.settings) > 0, fmt.Sprintf("%d limits in force: %s", len(e.settings), strings.Join(append(sum, each...), ", "))
}

// limitNames are the names of /proc/PID/limits, by resource (fs/proc/base.c).
var limitNames = map[string]rlimit.Resource{
	"Max cpu time": rlimit.CPU, "Max file size": rlimit.FSize, "Max data size": rlimit.Data, "Max stack size": rlimit.Stack,
	"Max core file size": rlimit.Core, "Max resident set": rlimit.RSS, "Max processes": rlimit.NProc, "Max open files": rlimit.NoFile,
	"Max locked memory": rlimit.MemLock, "Max address space": rlimit.AS, "Max file locks": rlimit.Locks, "Max pending signals": rlimit.SigPending,
	"Max msgqueue size": rlimit.MsgQueue, "Max nice priority": rlimit.Nice, "Max realtime priority": rlimit.RTPrio, "Max realtime timeout": rlimit.RTTime,
}

func parseLimits(text string) map[rlimit.Resource][2]uint64 {
	limits := map[rlimit.Resource][2]uint64{}
	for line := range strings.Lines(text) {
		if len(line) < 26 {
			continue
		}
		r, ok := limitNames[strings.TrimSpace(line[:26])]
		words := strings.Fields(line[26:])
		if !ok || len(words) < 2 {
			continue
		}
		soft, err1 := parseLimit(words[0])
		hard, err2 := parseLimit(words[1])
		if err1 == nil && err2 == nil {
			limits[r] = [2]uint64{soft, hard}
		}
	}
	return limits
}

func parseLimit(s string) (uint64, error) {
	if s == "unlimited" {
		return rlimit.Unlimited, nil
	}
	return strconv.ParseUint(s, 10, 64)
}
