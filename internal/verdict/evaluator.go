package verdict

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Of returns the evaluator of a policy whose paths have been resolved on this host. Obeyed is what git obeys by a
// configuration.
func Of(p policy.Policy, tree resolve.Tree, obeyed resolve.Obeyed) *Evaluator {
	m := &Evaluator{Policy: p, Entries: map[string]resolve.Entry{}, Fields: map[string]string{}}
	for _, e := range tree.Entries {
		if !e.Shown {
			m.Entries[e.Path], m.Fields[e.Path] = e, fieldOfKind[e.Kind]
			switch e.Path {
			case p.Files.Tmp:
				m.Fields[e.Path] = "Files.Tmp"
			case p.Files.Home:
				m.Fields[e.Path] = "Files.Home"
			}
		}
	}
	m.prepare()
	m.Names.obey(obeyed)
	return m
}

// Allows reports whether p allows an access, and why. A policy with a fault allows nothing.
func Allows(p policy.Policy, a Access) (bool, Reason) {
	m, err := New(p)
	if err != nil {
		return false, badPolicy(err)
	}
	return m.Allows(a)
}

var fieldOfKind = [...]string{
	pathrule.Read: "Files.Read", pathrule.Write: "Files.Write", pathrule.CopyOnWrite: "Files.CopyOnWrite", pathrule.Private: "Files.Private", pathrule.Make: "Files.Make", pathrule.Hide: "Files.Hide",
	pathrule.Socket: "Network.Unix",
}

func badPolicy(err error) Reason {
	r := Reason{Why: "New refuses this policy: " + err.Error()}
	if e := (*policy.PolicyError)(nil); errors.As(err, &e) {
		r.Field, r.Remedy = e.Field, e.Remedy
	}
	return r
}

// operations lists the known operations for the error message.
const operations = "read, list, stat, write, create, remove, rename, link, symlink, chmod, xattr, execute, connect, bind, signal, fork, gain, run"

// Allows reports whether the policy allows an access, and why.
func (m *Evaluator) Allows(a Access) (bool, Reason) {
	switch a.Op {
	case OpRead, OpList, OpStat, OpWrite, OpCreate, OpRemove, OpRename, OpLink, OpSymlink, OpChmod, OpSetXattr, OpExecute:
		return m.allowsFile(a)
	case OpConnect, OpBind:
		if ok, r := AllowsAddress(m.Policy, a); !ok || a.Network != "unix" {
			return ok, r
		}
		return m.allowsFile(a)
	case OpSignal:
		return unless(m.Policy, policy.BoundProcesses, !a.Outside, "the sandbox's processes can signal each other", "no process outside of the sandbox can be signalled")
	case OpFork:
		return true, Reason{Bound: policy.BoundProcesses, Why: "processes can be started, as many as Limits.Rlimits.NProc lets"}
	case OpElevate:
		return false, Reason{Bound: policy.BoundPrivileges, Why: "no right is gained by execve, whatever the policy"}
	case OpRunFor:
		return allowsTime(m.Policy, a)
	}
	return false, Reason{Why: "unknown operation " + strconv.Quote(string(a.Op)), Remedy: "use one of " + operations}
}

// unless answers for a bound that only Open decides: allowed says what
// holds while the bound is not open.
func unless(p policy.Policy, b policy.Bound, allowed bool, why, whyNot string) (bool, Reason) {
	if i := slices.Index(p.Open, b); i >= 0 {
		return true, Reason{Bound: b, Field: errtext.Indexed("Open", i), Why: "the policy does not bound " + string(b)}
	}
	if allowed {
		return true, Reason{Bound: b, Why: why}
	}
	return false, Reason{Bound: b, Why: whyNot, Remedy: "open the bound " + string(b)}
}

// AllowsAddress says which addresses can be reached.
func AllowsAddress(p policy.Policy, a Access) (bool, Reason) {
	r := Reason{Bound: policy.BoundNetwork}
	switch {
	case !slices.Contains([]string{"tcp", "udp", "unix"}, a.Network):
		r.Why, r.Remedy = "there is no network "+strconv.Quote(a.Network), `name "tcp", "udp" or "unix"`
		return false, r
	case slices.Contains(p.Open, policy.BoundNetwork):
		r.Field, r.Why = errtext.Indexed("Open", slices.Index(p.Open, policy.BoundNetwork)), "the policy does not bound the network"
		return true, r
	case p.Network.Host:
		r.Field, r.Why = "Network.Host", "the harness's network is shared"
		return true, r
	case slices.Contains(p.Open, policy.BoundFiles) && slices.Contains(p.Open, policy.BoundProcesses):
		return allowsBare(p.Network, a)
	case a.Network == "unix":
		return true, r
	case a.Op == OpBind:
		r.Why = "servers inside are reached from inside alone"
		return true, r
	case IsLoopback(a.Host):
		return allowsLoopback(p.Network, a)
	}
	return allowsHost(p.Network, a)
}

// IsLoopback reports whether host names the loopback, by number or by the name
// that every resolver knows (RFC 6761, 6.3).
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func allowsTime(p policy.Policy, a Access) (bool, Reason) {
	r := Reason{Bound: policy.BoundTime, Field: "Limits.WallClock"}
	switch limit := p.Limits.WallClock; {
	case limit == 0:
		r.Why = "there is no deadline"
	case a.For > limit:
		r.Why, r.Remedy = "everything inside is killed after "+limit.String(), "raise it"
		return false, r
	default:
		r.Why = "the deadline comes after " + limit.String()
	}
	return true, r
}
