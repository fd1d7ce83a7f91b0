package stage

import (
	"path"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/landlock"
)

// A path rule of Landlock is about a file or directory, not its path. What is put at a path of the new root adds the path's rule by the
// descriptor that it has: to open the path once more, in the new root, costs as much as the mount.

// precomputeRuleset notes the ruleset that the plan's files get in init. The rule of a path that a later step covers is left to
// the end, where the path is opened: it is for what is found there then.
func (c *compiler) precomputeRuleset(steps []plan.Step) {
	for _, s := range steps {
		if a, ok := s.Do.(plan.RestrictFiles); ok && s.In == plan.Init && !a.Follow && c.initRules == nil {
			c.initRules = &a.Ruleset
			for _, rule := range a.Ruleset.Paths {
				c.rules[rule.Path] |= rule.Access
			}
		}
	}
	last := map[string]int{}
	for i, s := range steps {
		last[placeOf(s.Do)] = i
	}
	for i, s := range steps {
		at := placeOf(s.Do)
		for p := at; p != "" && p != "/"; p = path.Dir(p) {
			if last[p] > i {
				delete(c.rules, at)
			}
		}
	}
}

// placeOf is the path of the new root where an action puts something, "" for none.
func placeOf(do plan.Action) string {
	switch a := do.(type) {
	case plan.Bind:
		return a.At
	case plan.Private:
		return a.At
	case plan.Overlay:
		return a.At
	case plan.MakeFile:
		return a.Path
	case plan.Hide:
		return a.Path
	case plan.Cover:
		return a.Path
	case plan.Proc:
		return "/proc"
	case plan.PTYs:
		return ptysAt
	case plan.Queues:
		return queuesAt
	}
	return ""
}

// ruleOf adds the rule for a path, if there is one, whose object is in register.
func (c *compiler) ruleOf(register int, p string) {
	access, ok := c.rules[p]
	if !ok || c.process != wire.InInit || c.ruled[p] {
		return
	}
	c.beginRuleset()
	c.rule(access, register)
	c.ruled[p] = true
}

// rule adds a rule for what register names to the ruleset in RegRuleset.
func (c *compiler) rule(access landlock.AccessFS, register int) {
	c.call(wire.OpRule, imm(uint64(access)), reg(register))
}

// beginRuleset makes the ruleset that rules are added to before its step, if the plan has one.
func (c *compiler) beginRuleset() {
	if c.initRules != nil && !c.begun {
		c.createRuleset(*c.initRules)
		c.begun = true
	}
}
