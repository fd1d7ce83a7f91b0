package sandbox

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

// Allows reports whether p allows an act, and why. It is the one definition of
// what a policy means: tests hold the plans and profiles that are made of
// policies against it.
//
// It explains a policy, and is no check for what the harness itself is about to do: it looks
// at no file, so a symbolic link in the workspace can lead a path that it allows to
// anywhere. Read and write there by [os.OpenRoot].
//
// The paths of the policy and of the act are taken to exist
// as they are meant to, and to be free of symbolic links. What a host cannot hold
// is not its matter either; see [Sandbox.Explain] and [Report]. An act that the
// policy allows may fail for other reasons: a file's mode, or a rename between two
// file systems, which programs then do by copying.
//
// A protected name that takes some contents, such as ".git/config" (see
// [ProtectedNames]), counts as one that takes none, and a FIFO as a regular file
// (see the package's Limits). A policy that [New] would
// refuse allows nothing, and the reason names the field. Nor does it say anything
// of a Layout's files: an act on them is not allowed.
func Allows(p Policy, a Act) (bool, Reason) {
	m, err := newMeaning(p)
	if err != nil {
		return false, badPolicy(err)
	}
	return m.allows(a)
}

// Allows is [Allows] for the sandbox's policy, whose paths have been
// resolved on this host.
func (s *Sandbox) Allows(a Act) (bool, Reason) { return s.means().allows(a) }

// means is the policy with its resolved paths.
func (s *Sandbox) means() *meaning {
	m := &meaning{policy: s.policy, entries: map[string]resolve.Entry{}, fields: map[string]string{}}
	for _, e := range s.layout.Entries {
		if !e.Shown {
			m.entries[e.Path], m.fields[e.Path] = e, fieldOfKind[e.Kind]
		}
	}
	m.prepare()
	m.names.obey(s.obeyed)
	return m
}

var fieldOfKind = [...]string{
	pathrule.Read: "Files.Read", pathrule.Write: "Files.Write", pathrule.CopyOnWrite: "Files.CopyOnWrite", pathrule.Private: "Files.Private", pathrule.Make: "Files.Make", pathrule.Hide: "Files.Hide",
	pathrule.Socket: "Network.Unix",
}

func badPolicy(err error) Reason {
	r := Reason{Why: "New refuses this policy: " + err.Error()}
	if e := (*PolicyError)(nil); errors.As(err, &e) {
		r.Field, r.Remedy = e.Field, e.Remedy
	}
	return r
}

// deeds are those that there are, to name to who asks about another.
const deeds = "read, list, stat, write, create, remove, rename, link, symlink, chmod, xattr, execute, connect, bind, signal, fork, gain, run"

// allows sends the act to its bound.
func (m *meaning) allows(a Act) (bool, Reason) {
	switch a.Do {
	case ToRead, ToList, ToStat, ToWrite, ToCreate, ToRemove, ToRename, ToLink, ToSymlink, ToChmod, ToSetXattr, ToExecute:
		return m.allowsFile(a)
	case ToConnect, ToBind:
		if ok, r := allowsAddress(m.policy, a); !ok || a.Network != "unix" {
			return ok, r
		}
		return m.allowsFile(a)
	case ToSignal:
		return unless(m.policy, policy.BoundProcesses, !a.Outside, "the sandbox's processes can signal each other", "no process outside of the sandbox can be signalled")
	case ToFork:
		return true, Reason{Bound: policy.BoundProcesses, Why: "processes can be started, as many as Limits.Rlimits.NProc lets"}
	case ToGain:
		return false, Reason{Bound: policy.BoundPrivileges, Why: "no right is gained by execve, whatever the policy"}
	case ToRun:
		return allowsTime(m.policy, a)
	}
	return false, Reason{Why: "there is no operation " + strconv.Quote(string(a.Do)), Remedy: "ask about one of " + deeds}
}

// unless answers for a bound that no other field speaks of: allowed says what
// holds while the bound is not open.
func unless(p Policy, b Bound, allowed bool, why, whyNot string) (bool, Reason) {
	if i := slices.Index(p.Open, b); i >= 0 {
		return true, Reason{Bound: b, Field: errtext.Indexed("Open", i), Why: "the policy does not bound " + string(b)}
	}
	if allowed {
		return true, Reason{Bound: b, Why: why}
	}
	return false, Reason{Bound: b, Why: whyNot, Remedy: "open the bound " + string(b)}
}

// allowsAddress is the one place that says which addresses can be reached.
func allowsAddress(p Policy, a Act) (bool, Reason) {
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
	case a.Do == ToBind:
		r.Why = "servers inside are reached from inside alone"
		return true, r
	case isLoopback(a.Host):
		return allowsLoopback(p.Network, a)
	}
	return allowsHost(p.Network, a)
}

// isLoopback reports whether host names the loopback, by number or by the name
// that every resolver knows (RFC 6761, 6.3).
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func allowsTime(p Policy, a Act) (bool, Reason) {
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
