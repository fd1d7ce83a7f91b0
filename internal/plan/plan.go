// Package plan is what a sandbox will do, as plain data: an ordered list of
// steps, each with the mechanism it belongs to and the reason for it.
//
//	p := plan.Plan{Steps: []plan.Step{
//		{In: plan.Init, Do: plan.Bind{Source: "/usr", At: "/usr", Dir: true}, By: plan.MountNamespace, Why: "the system's programs"},
//	}}
//	fmt.Print(p)
//
// A Plan is made by internal/compile from a policy and the host's facts, and
// lowered to system calls by internal/stage. This package
// does neither: it imports no os and no syscall, so that a plan can be read,
// compared and tested on any machine, without privileges.
//
// # Limits
//
// A Plan speaks of one host: paths are canonical there, and rights that its
// kernel lacks are gone from the rulesets already (they stand in Lost).
package plan

import (
	"fmt"
	"strings"
)

// A Bound is what a user cares about.
type Bound string

// The bounds.
const (
	Files       Bound = "files"
	Network     Bound = "network"
	Processes   Bound = "processes"
	Syscalls    Bound = "syscalls"
	Privileges  Bound = "privileges"
	Resources   Bound = "resources"
	Environment Bound = "environment"
	Time        Bound = "time"
)

// Bounds returns every bound, in the order in which reports list them.
func Bounds() []Bound {
	return []Bound{Files, Network, Processes, Syscalls, Privileges, Resources, Environment, Time}
}

// A Mechanism is how a bound is held.
type Mechanism string

// The mechanisms.
const (
	UserNamespace    Mechanism = "user namespace"
	MountNamespace   Mechanism = "mount namespace"
	PIDNamespace     Mechanism = "pid namespace"
	IPCNamespace     Mechanism = "ipc namespace"
	UTSNamespace     Mechanism = "uts namespace"
	CgroupNamespace  Mechanism = "cgroup namespace"
	NetworkNamespace Mechanism = "network namespace"
	Landlock         Mechanism = "landlock"
	LandlockScope    Mechanism = "landlock scope"
	LandlockNet      Mechanism = "landlock tcp"
	Seccomp          Mechanism = "seccomp"
	Supervisor       Mechanism = "supervisor"
	NoNewPrivs       Mechanism = "no_new_privs"
	Capabilities     Mechanism = "no capabilities"
	Rlimits          Mechanism = "rlimits"
	Keyring          Mechanism = "session keyring"
	Subreaper        Mechanism = "subreaper"
	EnvFilter        Mechanism = "environment filter"
	EgressProxy      Mechanism = "egress proxy"
	Capture          Mechanism = "traffic capture"
	Deadline         Mechanism = "deadline"
	Seatbelt         Mechanism = "seatbelt" // macOS
	ProcessGroup     Mechanism = "process group"
	Setup            Mechanism = "" // a step that serves the others
)

// OwnDirectory stands, in a ruleset, for the directory that a run gets of its
// own where no mounts can be private. Its path is known when the run starts.
const OwnDirectory = "/the run's own directory"

// InitsProc stands, in a ruleset, for the procfs in which init reads the evidence.
const InitsProc = "/init's own procfs"

// A Place is the process in which a step runs.
type Place uint8

// The places, in the order in which they come to life.
const (
	Stage Place = iota // the re-executed harness, outside
	Init               // the sandbox's first process
	Tool               // the process that becomes the tool
)

// String returns the place's name.
func (p Place) String() string { return [...]string{"stage", "init", "tool"}[p%3] }

// A Step is one thing to do, in one place, for a reason.
type Step struct {
	In    Place
	Do    Action
	By    Mechanism
	Why   string
	Field string // the policy's field that it comes from, such as "Root.Entries[3]"; may be empty
}

// String prints the step as one line.
func (s Step) String() string {
	line := fmt.Sprintf("%-5s  %s", s.In, s.Do)
	if s.Why != "" {
		line += "  # " + s.Why
	}
	return line
}

// A Holding is what the plan promises of one bound: which mechanisms hold it,
// and what of it this host cannot hold.
type Holding struct {
	Bound Bound
	By    []Mechanism
	Lost  []Loss
	Notes []string // what else should be known of it
}

// A Loss is a part of a bound that the host cannot hold.
type Loss struct {
	What   string // what is not held
	Why    string // which fact of the host is missing
	Remedy string // what would bring it back
	Cause  string // the name of the fact that is missing; empty: none is
	Absent bool   // nothing of the bound is held
}

// String says all but the bound.
func (l Loss) String() string { return l.What + " (" + l.Why + "; remedy: " + l.Remedy + ")" }

// A Plan is everything that will be done for one command, in order.
type Plan struct {
	Namespaces Namespaces
	Steps      []Step
	Holdings   []Holding
	DeadlineMS int64 // wall clock; 0: none

	// Given is how many descriptors of the policy each run hands to the stage. Those
	// that Join names are counted from 1; 0 joins nothing.
	Given  int
	Own    bool // each run has a directory of its own, which the stage removes
	Join   Join
	Apart  *RestrictFiles // the layer around each tool of a session that closes its memory to the others; nil: there is none
	Limits *LoadFilter    // the filter of each tool of a session that keeps it from limits of other commands' processes; nil: there is none
	Batch  bool           // no filter kills for sched_getscheduler(2) or sched_setscheduler(2)
	Ready  bool           // in a session the tool's process can stand ready, its filters loaded: they let pass what is left to do
	AsPID1 bool           // the tool is the new pid namespace's first process; init stays outside
}

// Join names descriptors of namespaces that exist already.
type Join struct{ User, PID int }

// String prints the plan as a person would read it: the namespaces, then the
// steps in order.
func (p Plan) String() string {
	var b strings.Builder
	if n := p.Namespaces.String(); n != "" {
		fmt.Fprintf(&b, "stage  clone init into new namespaces: %s\n", n)
	} else {
		b.WriteString("stage  fork init, a subreaper, without namespaces\n")
	}
	toolNamed := false
	for _, s := range p.Steps {
		if s.In == Tool && !toolNamed {
			b.WriteString("init   start the tool's process and wait for its execve\n")
			toolNamed = true
		}
		b.WriteString(s.String())
		b.WriteByte('\n')
	}
	b.WriteString("tool   execve\n")
	if p.DeadlineMS > 0 {
		fmt.Fprintf(&b, "stage  kill everything after %d ms\n", p.DeadlineMS)
	}
	return b.String()
}

// Without returns a copy of the plan that lacks the steps of one mechanism,
// and its namespace. It is for tests of the report, which must notice.
func (p Plan) Without(m Mechanism) Plan {
	q := p
	q.Namespaces = p.Namespaces.without(m)
	q.Steps = nil
	for _, s := range p.Steps {
		if s.By != m {
			q.Steps = append(q.Steps, s)
		}
	}
	return q
}

// Uses reports whether any step or namespace belongs to m.
func (p Plan) Uses(m Mechanism) bool {
	for _, s := range p.Steps {
		if s.By == m {
			return true
		}
	}
	for _, n := range p.Namespaces.Mechanisms() {
		if n == m {
			return true
		}
	}
	return false
}

// SupervisorRules returns the rules of the plan's supervisor, encoded; "": it has none.
func (p Plan) SupervisorRules() string {
	for _, s := range p.Steps {
		if a, ok := s.Do.(LoadSupervisor); ok {
			return a.Rules
		}
	}
	return ""
}
