package verdict

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Answer is Allows for a person and for a harness: an access that the tool may try, but on something of
// the run's own and not on what the harness finds at that path, is not allowed, and its
// reason is Private.
func (m *Evaluator) Answer(a Access) (bool, Reason) {
	ok, r := m.Allows(a)
	if ok && r.Bound == policy.BoundFiles && m.private(a) {
		r.Private, ok = true, false
		r.Why = "private: the tool sees what is the run's own there: " + r.Why
	}
	return ok, r
}

// On returns the evaluator for a host that mounts nothing, if mounts is false: without what takes mounts. Such a path is closed to the tool, unless
// the tree around it is open, and then it is the host's.
func (m *Evaluator) On(mounts bool) *Evaluator {
	if mounts {
		return m
	}
	left := *m
	left.Entries = maps.Clone(m.Entries)
	maps.DeleteFunc(left.Entries, func(_ string, e resolve.Entry) bool {
		return e.Kind == pathrule.Private || e.Kind == pathrule.CopyOnWrite || e.Kind == pathrule.Make
	})
	return &left
}

// Answer is [Evaluator.Answer] for p. A policy with a fault allows nothing.
func Answer(p policy.Policy, a Access) (bool, Reason) {
	m, err := New(p)
	if err != nil {
		return false, badPolicy(err)
	}
	return m.Answer(a)
}

// private reports whether one of an access's paths has something of the run's own.
func (m *Evaluator) private(a Access) bool {
	paths := []string{a.Path}
	if a.Op == OpRename || a.Op == OpLink {
		paths = append(paths, a.To)
	}
	if slices.Contains(m.Policy.Open, policy.BoundFiles) {
		return m.inPrivateProc(paths)
	}
	return slices.ContainsFunc(paths, func(p string) bool {
		s, e := m.lookup(p)
		return ownState(s, e, a.Op)
	})
}

// ownState reports whether what is at a path is not the host's: an operation that only reads finds in a copy
// what the host has.
func ownState(s pathState, e resolve.Entry, op Op) bool {
	switch s {
	case stateProc, stateTerminal, statePassage, stateGenerated, stateMasked:
		return true
	}
	if e.Path == "" {
		return s == stateWritable
	}
	switch e.Kind {
	case pathrule.Private, pathrule.Make:
		return true
	case pathrule.CopyOnWrite:
		return !slices.Contains([]Op{OpRead, OpList, OpStat, OpExecute}, op)
	}
	return false
}
