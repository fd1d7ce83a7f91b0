package compile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// landlockScopes adds the second domain. Init is outside of it, so the tool can
// neither signal nor trace init, as it cannot anything else outside. In a session each tool has one that scopes nothing
// (plan.ForSession).
func (c *compilation) landlockScopes() {
	if c.open(policy.BoundProcesses) || !c.Facts.Landlock.Yes() {
		return
	}
	c.plan.Apart = apart(c.Facts.Landlock.Value)
	scopes := landlock.ScopesOnly()
	if c.Policy.Nested { // a domain that handles renames, for the sake of domains around it, refuses mounts
		scopes.UnhandledFS, scopes.Paths = landlock.FSAll, nil
	}
	down, _, err := landlock.Downgrade(scopes, c.Facts.Landlock.Value)
	if err == nil && down.Scoped() != 0 {
		c.do(plan.RestrictFiles{Ruleset: down}, plan.LandlockScope, "signals and abstract sockets end at the sandbox's edge")
	}
}

// landlockTool adds the domain in which no TCP socket is bound or connected, and no terminal opened. Init is outside of it: the supervisor does
// these for the tool.
func (c *compilation) landlockTool() error {
	r, by, why := apart(c.Facts.Landlock.Value).Ruleset, plan.LandlockNet, "the tool itself binds and connects no TCP socket"
	ports, terminals := c.streams() && c.plan.Uses(plan.Landlock) && c.Facts.Landlock.Value >= portsSince, c.makesTerminals()
	switch {
	case !ports && !terminals:
		return nil
	case !ports:
		by, why = plan.Landlock, "the tool itself opens no terminal by a path"
	case terminals:
		why += ", and opens no terminal by a path"
	}
	if ports {
		r.UnhandledNet = 0
	}
	if terminals {
		r.UnhandledFS &^= accessOpen
		r.Paths = append(r.Paths, c.withoutTerminals()...)
	}
	down, _, err := landlock.Downgrade(r, c.Facts.Landlock.Value)
	if err != nil {
		return fmt.Errorf("sandbox: landlock: %w", err)
	}
	if c.plan.Apart != nil {
		c.plan.Apart = &plan.RestrictFiles{Ruleset: down}
	}
	c.do(plan.RestrictFiles{Ruleset: down}, by, why)
	return nil
}

// accessOpen is what opens a terminal.
const accessOpen = landlock.FSReadFile | landlock.FSWriteFile

// withoutTerminals grants init's files once more, by what is directly below the root, but for terminals: two layers, of which the first one has the
// policy's paths.
func (c *compilation) withoutTerminals() (rules []landlock.PathRule) {
	for _, r := range c.pathRules() {
		if slices.Contains(c.Terminals, r.Path) {
			continue
		}
		if top, _, below := strings.Cut(strings.TrimPrefix(r.Path, "/"), "/"); below && top != "dev" && r.Path != plan.OwnDirectory {
			r.Path = "/" + top
		}
		if !slices.ContainsFunc(rules, func(o landlock.PathRule) bool { return o.Path == r.Path }) {
			rules = append(rules, landlock.PathRule{Path: r.Path, Access: accessOpen})
		}
	}
	return rules
}

// apart is a ruleset that restricts nothing but tracing. It has to handle something: see landlock.ScopesOnly for why that is
// FSRefer, which ABI 1 refuses in any case and does not know by name.
func apart(abi int) *plan.RestrictFiles {
	r := landlock.ScopesOnly()
	r.Unscoped = landlock.ScopeAll
	if abi < 2 {
		r.UnhandledFS = landlock.FSAll &^ landlock.FSMakeFifo
		r.Paths = []landlock.PathRule{{Path: "/", Access: landlock.FSMakeFifo}}
	}
	return &plan.RestrictFiles{Ruleset: r}
}

// expanded returns the layout's entries as Landlock has to be told them. Landlock
// only grants: where no mount covers what is hidden, a readable directory that
// holds something hidden is granted as the list of everything else in it.
func (c *compilation) expanded() []resolve.Entry {
	if c.namespaced {
		return c.Tree.Entries
	}
	var out []resolve.Entry
	for _, e := range c.Tree.Entries {
		if e.Kind == pathrule.Read && e.Dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// without appends dir, or, if something below it is hidden, what else it holds.
func (c *compilation) without(out []resolve.Entry, dir resolve.Entry) []resolve.Entry {
	if !c.hides(dir.Path) {
		return append(out, dir)
	}
	for _, e := range c.List(dir.Path) {
		if own, ok := c.Tree.Find(e.Path); ok && own.Kind != pathrule.Read {
			continue // hidden, or it has an entry itself
		}
		if e.Dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// hides reports whether something below dir is hidden.
func (c *compilation) hides(dir string) bool {
	for _, e := range c.Tree.Entries {
		if e.Kind == pathrule.Hide && e.Path != dir && pathrule.Within(e.Path, dir) {
			return true
		}
	}
	return false
}

// hiddenInWritable reports whether e, which is hidden, lies in a directory that
// the tool can write, where a list of everything else would be out of date.
func (c *compilation) hiddenInWritable(e resolve.Entry) bool {
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if around, ok := c.Tree.Find(dir); ok && around.Kind != pathrule.Hide {
			return around.Kind != pathrule.Read
		}
		if dir == "/" {
			return false
		}
	}
}
