package sbpl

import (
	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// processes decides about forks and signals.
func (c *compiler) processes() {
	if v := c.query(seatbelt.Query{Operation: "process-fork"}); !v.allow {
		c.noForks()
	}
	if v := c.ask("process-exec", join("/", c.any), regular); !v.allow {
		c.noMemory()
	}
	const apart = "the sandbox's processes see and reach no others"
	for _, o := range []string{"signal", "process-info-pidinfo"} {
		if v := c.query(seatbelt.Query{Operation: o, Target: "others"}); v.allow {
			c.differ(v, Narrower, apart, o)
		}
		for _, target := range []string{"self", "same-sandbox"} {
			if v := c.query(seatbelt.Query{Operation: o, Target: target}); !v.allow {
				c.differ(v, Own, "the sandbox's own processes can reach each other", o)
			}
		}
	}
}

// noMemory refuses files without a place that could be executed: Landlock does not know
// them (memfd_create(2), mm/memfd.c), and no rule can mean them. Programs fall back to files.
func (c *compiler) noMemory() {
	c.calls = append(c.calls, seccomp.Rule{
		Names: []string{"memfd_create"}, Action: seccomp.Errno(errNoSys), Reason: "the profile denies process-exec, and a file in memory could be executed",
		Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: memoryNoExec, Value: 0}},
	})
}

// noForks refuses new processes and leaves threads. The flags of clone3(2) lie in
// memory: it is answered as by an old kernel, and C libraries fall back to clone.
func (c *compiler) noForks() {
	const why = "the profile denies process-fork"
	c.refuse(why, "fork", "vfork")
	c.calls = append(c.calls,
		seccomp.Rule{Names: []string{"clone"}, Action: seccomp.Errno(errPerm), Reason: why,
			Args: []seccomp.Arg{{Index: 0, Op: seccomp.MaskedEqual, Mask: cloneThread, Value: 0}}},
		seccomp.Rule{Names: []string{"clone3"}, Action: seccomp.Errno(errNoSys), Reason: "its flags lie in memory, out of a filter's sight"},
	)
}
