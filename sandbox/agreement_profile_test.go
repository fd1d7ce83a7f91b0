package sandbox

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// emitted is a policy's profile, read back.
func emitted(p Policy) (h heldProfile, err error) {
	m, err := verdict.New(p)
	if err != nil {
		return h, err
	}
	e, err := emit.Emit(darwin.Profile{Evaluator: m}.Grants(darwin.Run{Tag: "agreement", Proxies: runPorts}))
	if err != nil {
		return h, err
	}
	params := map[string]string{}
	for _, p := range e.Params {
		params[p.Name] = p.Value
	}
	if h.carrier, err = carrierOf(p); err != nil {
		return h, err
	}
	h.Profile, err = seatbelt.Parse(seatbelt.Source{Name: "emitted", Text: e.Profile}, seatbelt.Options{Params: params})
	return h, err
}

// queries are the operations by which macOS asks whether an act is allowed: all
// of them have to be.
func queries(a Access) []seatbelt.Query {
	kind := "REGULAR-FILE"
	if a.Dir {
		kind = "DIRECTORY"
	}
	about := func(operation, path, kind string) seatbelt.Query {
		return seatbelt.Query{Operation: operation, Path: path, VnodeType: kind}
	}
	switch a.Op {
	case OpRead, OpList:
		return []seatbelt.Query{about("file-read-data", a.Path, kind)}
	case OpStat:
		return []seatbelt.Query{about("file-read-metadata", a.Path, kind)}
	case OpWrite:
		return []seatbelt.Query{about("file-write-data", a.Path, kind)}
	case OpCreate:
		return []seatbelt.Query{about("file-write-create", a.Path, kind)}
	case OpRemove:
		return []seatbelt.Query{about("file-write-unlink", a.Path, kind)}
	case OpRename:
		return []seatbelt.Query{about("file-write-unlink", a.Path, kind), about("file-write-create", a.To, kind)}
	case OpLink:
		return []seatbelt.Query{about("file-link", a.Path, kind), about("file-write-create", a.To, kind)}
	case OpSymlink:
		return []seatbelt.Query{about("file-write-create", a.Path, "SYMLINK")}
	case OpChmod:
		return []seatbelt.Query{about("file-write-mode", a.Path, kind)}
	case OpSetXattr:
		return []seatbelt.Query{about("file-write-xattr", a.Path, kind)}
	case OpExecute:
		return []seatbelt.Query{about("process-exec", a.Path, kind)}
	case OpConnect, OpBind:
		operation := map[Op]string{OpConnect: "network-outbound", OpBind: "network-bind"}[a.Op]
		if a.Network == "unix" {
			return []seatbelt.Query{{Operation: operation, Path: a.Path, Protocol: "unix"}}
		}
		return []seatbelt.Query{{Operation: operation, Address: net.JoinHostPort(a.Host, strconv.Itoa(a.Port)), Protocol: a.Network}}
	case OpSignal:
		return []seatbelt.Query{{Operation: "signal", Target: map[bool]string{true: "others", false: "same-sandbox"}[a.Outside]}}
	case OpFork:
		return []seatbelt.Query{{Operation: "process-fork"}}
	}
	return nil
}

// profileAllows asks the profile about every operation of the act, or for the way
// by the proxies.
func profileAllows(p heldProfile, a Access) (bool, seatbelt.Verdict) {
	if changesRoot(a) {
		return false, seatbelt.Verdict{}
	}
	last := seatbelt.Verdict{Allow: true}
	for _, q := range queries(a) {
		if last = p.Evaluate(q); !last.Allow {
			break
		}
	}
	if !last.Allow && a.Network == "tcp" && p.carries(a) && p.reaches() {
		return true, last
	}
	return last.Allow, last
}

// in reports whether a path of the act lies at or below a rule of the list.
func in(a Access, list []string) bool {
	return slices.ContainsFunc(list, func(at string) bool {
		return pathrule.Within(a.Path, at) || (a.Op == OpRename || a.Op == OpLink) && pathrule.Within(a.To, at)
	})
}

func madeFiles(p Policy) (out []string) {
	for _, m := range p.Files.Make {
		out = append(out, m.Path)
	}
	return out
}

// profileDifferences are where seatbelt answers otherwise than the policy means.
var profileDifferences = []difference{
	{"metadata", true, "realpath and every loader stat the directories above a file", func(p Policy, a Access) bool { return a.Op == OpStat }},
	{"the root directory is listed", true, "dyld reads it", func(p Policy, a Access) bool { return a.Path == "/" && a.Op == OpRead }},
	{"a directory named /proc", true, "macOS has none that would be special", func(p Policy, a Access) bool {
		return in(a, []string{"/proc"}) && (slices.Contains(p.Open, policy.BoundFiles) || slices.Contains(p.Files.Read, "/") || slices.Contains(p.Files.Write, "/"))
	}},
	{"listing is reading", true, "one operation stands for both, and no device is a directory", func(p Policy, a Access) bool {
		return a.Op == OpList && in(a, resolve.OwnDevices) || a.Path == "/dev/kvm"
	}},
	{"private directories", false, "nothing is mounted: TMPDIR and HOME name others", func(p Policy, a Access) bool { return in(a, p.Files.Private) }},
	{"copies on write", false, "nothing is mounted: they can be read alone", func(p Policy, a Access) bool { return in(a, p.Files.CopyOnWrite) }},
	{"made files", false, "nothing is mounted", func(p Policy, a Access) bool { return in(a, madeFiles(p)) }},
	{"a loopback of its own", false, "it would be the machine's", func(p Policy, a Access) bool {
		return a.Network != "unix" && !p.Network.Host && (a.Op == OpBind || verdict.IsLoopback(a.Host) && !(a.Network == "tcp" && slices.Contains(p.Network.Loopback, uint16(a.Port))))
	}},
	{"datagrams", false, "nothing could capture them: New refuses such a policy", func(p Policy, a Access) bool {
		return a.Network == "udp" && p.Network.Capture != nil && !p.Network.Host
	}},
	{"the loopback of IPv6", true, "localhost is both", func(p Policy, a Access) bool {
		return a.Op == OpConnect && a.Network == "tcp" && a.Host == "::1" && slices.Contains(p.Network.Loopback, uint16(a.Port))
	}},
	{"/proc and /dev", false, "macOS has no /proc, and other devices", func(p Policy, a Access) bool { return in(a, []string{"/proc", "/dev"}) }},
	{"directories on the way", false, "they are the machine's, with all their names", func(p Policy, a Access) bool { return a.Op == OpList }},
	{"what is hidden has no metadata", false, "a deny names every operation", func(p Policy, a Access) bool { return a.Op == OpStat && in(a, p.Files.Hide) }},
	{"on the way to a protected name", false, "a rename onto it cannot be told from mkdir", func(p Policy, a Access) bool {
		return !p.Files.Protect.Off && slices.Contains([]Op{OpCreate, OpRemove, OpRename, OpSymlink}, a.Op)
	}},
	{"what a git directory may hold", true, "only the names that git is known to obey are closed: the report says so", func(p Policy, a Access) bool {
		return slices.Contains(p.Files.ProtectedPatterns(), ".git") && (strings.Contains(a.Path+"/", "/.git/") || strings.Contains(a.To+"/", "/.git/"))
	}},
	{"hidden names can be removed", false, "an unlink may be a rename", func(p Policy, a Access) bool {
		return len(p.Files.HideNames) > 0 && slices.Contains([]Op{OpCreate, OpRemove, OpExecute}, a.Op)
	}},
}

// TestAProfileDoesWhatThePolicyMeans: generated policies are emitted as profiles
// for macOS, and the evaluator of such profiles is asked.
func TestAProfileDoesWhatThePolicyMeans(t *testing.T) {
	kerneltest.Long(t)
	t.Parallel()
	used := map[string]int{}
	eachPair(t, 11, kerneltest.Amount(t, 20, 40, 300), func(p Policy, l resolve.Tree) (any, error) { return emitted(p) }, func(p Policy, a Access, ok bool, why Reason, made any) {
		if a.Op == OpRunFor || a.Op == OpElevate {
			return // no operation stands for them
		}
		if got, v := profileAllows(made.(heldProfile), a); got != ok {
			differ(t, profileDifferences, used, p, a, ok, why, got, text(v.Why))
		}
	})
	allUsed(t, profileDifferences, used)
}
