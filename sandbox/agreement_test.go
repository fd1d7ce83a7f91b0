package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// agreedActs is how many acts are asked of each policy.
const agreedActs = 120

// canonicalLayout is the layout of a policy whose paths all exist and are
// canonical.
func canonicalLayout(p Policy) (resolve.Tree, error) {
	r := resolve.New()
	for _, u := range verdict.RulesOf(p.Files, p.Network.Unix...) {
		if err := r.Put(u); err != nil {
			return resolve.Tree{}, err
		}
	}
	return r.Tree(nil)
}

// eachPair calls f with generated policies and acts, and returns how many pairs
// there were, and how many of them the policy allows.
func eachPair(t *testing.T, seed uint64, policies int, make func(Policy, resolve.Tree) (any, error), f func(p Policy, a Access, ok bool, why Reason, made any)) {
	t.Helper()
	g := newGenerator(seed)
	pairs, allowed, refused := 0, 0, 0
	for n := 0; n < policies; {
		p := g.policy()
		g.network(&p)
		m, err := verdict.New(p)
		if err != nil {
			refused++
			if ok, why := Allows(p, Access{Op: OpFork}); ok || why.Field == "" {
				t.Fatalf("%+v: New refuses it (%v), and it allows %v %v", p, err, ok, why)
			}
			continue
		}
		l, err := canonicalLayout(p)
		if err != nil {
			t.Fatal(err)
		}
		made, err := make(p, l)
		if errors.Is(err, errors.ErrUnsupported) && len(p.Network.Unix) > 0 && !p.Network.Host && slices.Contains(p.Open, policy.BoundFiles) && slices.Contains(p.Open, policy.BoundProcesses) {
			refused++ // there is no namespace for such a policy, and without one no local socket
			continue
		}
		if errors.Is(err, errors.ErrUnsupported) && p.Network.Capture != nil {
			refused++ // nor is there anything to capture
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		n++
		rules := rulePaths(p)
		for range agreedActs {
			a := g.act(rules)
			if noSuchAct(l, a) {
				continue
			}
			ok, why := m.Allows(a)
			if why.Why == "" || why.Bound == "" {
				t.Fatalf("%+v: the reason says nothing: %+v", a, why)
			}
			if pairs++; ok {
				allowed++
			}
			f(p, a, ok, why, made)
			if t.Failed() {
				return
			}
		}
	}
	t.Logf("%d pairs of %d policies; %d allowed; %d policies more were refused", pairs, policies, allowed, refused)
}

// noSuchAct reports whether the act is one that no socket knows: to the policy a
// socket in a shown tree is a place like others, where more could be.
func noSuchAct(l resolve.Tree, a Access) bool {
	return slices.ContainsFunc(l.Entries, func(e resolve.Entry) bool {
		if e.Kind != pathrule.Socket || !e.Shown {
			return false
		}
		if a.Path == e.Path {
			return a.Dir || slices.Contains([]Op{OpRead, OpList, OpWrite, OpExecute}, a.Op)
		}
		return pathrule.Within(a.Path, e.Path) || pathrule.Within(a.To, e.Path)
	})
}

// A difference is an act for which a mechanism answers otherwise than the
// policy, and why.
type difference struct {
	name  string
	wider bool // it allows what the policy does not
	why   string
	is    func(p Policy, a Access) bool
}

// differ finds the difference that explains a disagreement.
func differ(t *testing.T, list []difference, used map[string]int, p Policy, a Access, ok bool, why Reason, got bool, by fmt.Stringer) {
	for _, d := range list {
		if d.wider == got && d.is(p, a) {
			used[d.name]++
			return
		}
	}
	t.Errorf("%+v\nof %s\nthe policy says %v (%v), the other says %v\n%v", a, describe(p), ok, why, got, by)
}

func describe(p Policy) string {
	return fmt.Sprintf("Files %+v Network %+v Open %v", p.Files, p.Network, p.Open)
}

func allUsed(t *testing.T, list []difference, used map[string]int) {
	t.Helper()
	for _, d := range list {
		t.Logf("%s: %d times", d.name, used[d.name])
		if used[d.name] == 0 && !t.Failed() && kerneltest.All(t) {
			t.Errorf("the difference %q does not occur: take it out", d.name)
		}
	}
}

// TestAPlanWithNamespacesDoesWhatThePolicyMeans: generated policies are compiled
// for a host that has everything, and the steps are read by a model of the kernel
// that knows no policy.
func TestAPlanWithNamespacesDoesWhatThePolicyMeans(t *testing.T) {
	kerneltest.Long(t)
	t.Parallel()
	eachPair(t, 1, kerneltest.Amount(t, 50, 80, 500), func(p Policy, l resolve.Tree) (any, error) {
		return planned(p, l, fixture.Host(), nil)
	}, func(p Policy, a Access, ok bool, why Reason, made any) {
		m := made.(heldPlan).model()
		if got, by := m.allows(a); got != ok {
			differ(t, nil, nil, p, a, ok, why, got, text("by "+string(by)))
		}
	})
}

type text string

func (s text) String() string { return string(s) }

// listTree is what a directory of the made-up host holds.
func listTree(dir string) []resolve.Entry {
	if strings.Count(dir, "/") > 6 {
		return nil
	}
	var out []resolve.Entry
	names := slices.Clone(treeNames)
	names = append(names, ruleNames...)
	if dir == "/" {
		names = append(names, "srv", "proc", "dev")
	}
	slices.Sort(names)
	for _, n := range slices.Compact(names) {
		out = append(out, resolve.Entry{Path: pathrule.Join(dir, n), Kind: pathrule.Read, Dir: true})
	}
	return out
}
