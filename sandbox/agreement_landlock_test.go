package sandbox

import (
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// losses are what a plan says that it does not hold of files and processes.
func losses(p plan.Plan) []string {
	var out []string
	for _, h := range p.Holdings {
		for _, l := range h.Lost {
			if h.Bound == policy.BoundFiles || h.Bound == policy.BoundProcesses {
				out = append(out, l.What)
			}
		}
	}
	return out
}

// touches reports whether one of the act's paths lies at, below or above at.
func touches(a Access, at string) bool {
	paths := []string{a.Path}
	if a.Op == OpRename || a.Op == OpLink {
		paths = append(paths, a.To)
	}
	return slices.ContainsFunc(paths, func(p string) bool { return pathrule.Within(p, at) || pathrule.Within(at, p) })
}

// lossAbout returns whether a loss of the plan, which begins with a path and goes
// on with this text, is about the act.
func lossAbout(a Access, lost []string, goesOn string) bool {
	return slices.ContainsFunc(lost, func(l string) bool {
		at, isIt := cutLoss(l, goesOn)
		return isIt && touches(a, at)
	})
}

func cutLoss(l, goesOn string) (string, bool) {
	i := strings.Index(l, goesOn)
	if i < 0 {
		return "", false
	}
	return l[:i], true
}

// lostDifference is one that the plan has to announce, unless it is narrower.
type lostDifference struct {
	name  string
	wider bool
	is    func(p Policy, a Access, lost []string) bool
}

// landlockDifferences are where Landlock and the supervisor alone answer otherwise
// than the policy. Each that is wider asks for the plan's own words for it.
var landlockDifferences = []lostDifference{
	{"metadata of files outside", true, func(p Policy, a Access, lost []string) bool {
		return a.Op == OpStat && slices.Contains(lost, "all names can be seen, and all files watched (inotify)")
	}},
	{"modes of files outside", true, func(p Policy, a Access, lost []string) bool {
		return (a.Op == OpChmod || a.Op == OpSetXattr) && slices.Contains(lost, "modes, owners, times and extended attributes of files outside can be changed")
	}},
	{"a directory with something in it is neither removed, replaced, linked nor made anew by any kernel", true, func(p Policy, a Access, lost []string) bool {
		return slices.Contains([]Op{OpRemove, OpRename, OpLink, OpCreate, OpSymlink, OpBind, OpWrite}, a.Op) && slices.ContainsFunc(rulePaths(p), func(r string) bool {
			makes := slices.Contains([]Op{OpCreate, OpSymlink, OpBind}, a.Op) // it is there
			return pathrule.Within(r, a.Path) && (r != a.Path || makes) || (a.Op == OpRename || a.Op == OpLink) && pathrule.Within(r, a.To) && r != a.To
		})
	}},
	{"what is hidden in a writable directory can be executed", true, func(p Policy, a Access, lost []string) bool {
		return a.Op == OpExecute && lossAbout(a, lost, " can be executed: in a writable")
	}},
	{"nothing lies below a device", true, func(p Policy, a Access, lost []string) bool {
		return slices.ContainsFunc(p.Files.Write, func(w string) bool { return pathrule.Within(w, "/dev") && pathrule.Within(a.Path, w) && a.Path != w })
	}},
	{"the host's /dev and /proc, with the root", true, func(p Policy, a Access, lost []string) bool {
		return (touches(a, "/dev") || touches(a, "/proc")) && slices.Contains(lost, "/dev and /proc are the host's, and granted with the root")
	}},
	{"the host's /proc", true, func(p Policy, a Access, lost []string) bool {
		return touches(a, "/proc") && slices.Contains(lost, "other processes' names and command lines can be seen")
	}},
	{"sockets of the host", true, func(p Policy, a Access, lost []string) bool {
		return a.Op == OpConnect && slices.Contains(lost, "UNIX sockets outside can be connected to")
	}},
	{"private directories are the host's", true, func(p Policy, a Access, lost []string) bool { return lossAbout(a, lost, " cannot be private") }},
	{"private directories cannot be used", false, func(p Policy, a Access, lost []string) bool { return lossAbout(a, lost, " cannot be private") }},
	{"what would be a copy is the host's", true, func(p Policy, a Access, lost []string) bool {
		return a.Op != OpWrite && lossAbout(a, lost, " cannot be written")
	}},
	{"copies are not written", false, func(p Policy, a Access, lost []string) bool { return lossAbout(a, lost, " cannot be written") }},
	{"no file is made", false, func(p Policy, a Access, lost []string) bool { return lossAbout(a, lost, " cannot be made") }},
	{"no socket but for the proxies and ports of Loopback", false, func(p Policy, a Access, lost []string) bool {
		granted := a.Network == "tcp" && (!verdict.IsLoopback(a.Host) || a.Host != "::1" && slices.Contains(p.Network.Loopback, uint16(a.Port)))
		return a.Op == OpBind || a.Op == OpConnect && !granted
	}},
	{"a directory in which something is hidden is granted as what else it holds", false, func(p Policy, a Access, lost []string) bool {
		return slices.ContainsFunc(p.Files.Hide, func(h string) bool { return pathrule.Within(h, a.Path) && h != a.Path })
	}},
	{"directories on the way cannot be listed", false, func(p Policy, a Access, lost []string) bool { return a.Op == OpList }},
	{"no /dev of its own", false, func(p Policy, a Access, lost []string) bool { return touches(a, "/dev") && a.Path != "/" }},
}

// TestAPlanWithoutNamespacesDiffersByItsLosses: on a host without them the plan
// names each place where it allows more than the policy means.
func TestAPlanWithoutNamespacesDiffersByItsLosses(t *testing.T) {
	kerneltest.Long(t)
	t.Parallel()
	used := map[string]int{}
	eachPair(t, 2, kerneltest.Amount(t, 100, 500, 700), func(p Policy, l resolve.Tree) (any, error) {
		facts := fixture.Host()
		fixture.WithoutNamespaces(&facts)
		p.May = slices.DeleteFunc(plan.Bounds(), func(b Bound) bool { return slices.Contains(p.Open, b) })
		return planned(p, l, facts, func(in *compile.Input) { in.List = listTree })
	}, func(p Policy, a Access, ok bool, why Reason, made any) {
		m := made.(heldPlan).model()
		got, by := m.allows(a)
		if got == ok {
			return
		}
		lost := losses(made.(heldPlan).Plan)
		for _, d := range landlockDifferences {
			if d.wider == got && d.is(p, a, lost) {
				used[d.name]++
				return
			}
		}
		t.Errorf("%+v\nof %s\nthe policy says %v (%v), the plan says %v by %s\nlosses: %q", a, describe(p), ok, why, got, by, lost)
	})
	for _, d := range landlockDifferences {
		t.Logf("%s: %d times", d.name, used[d.name])
		if used[d.name] == 0 && !t.Failed() {
			t.Errorf("the difference %q does not occur: take it out", d.name)
		}
	}
}
