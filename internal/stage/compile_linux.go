package stage

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// Compile lowers a plan for a stage that runs as id.
func Compile(p plan.Plan, id Identity) (*Template, error) {
	c := &compiler{id: id, strings: map[string]uint64{}, dirs: map[string]bool{}, mounted: map[string]bool{}, linked: map[string]bool{},
		rules: map[string]landlock.AccessFS{}, ruled: map[string]bool{}}
	c.t.header = wire.Header{Magic: wire.Magic, DeadlineMS: p.DeadlineMS}
	if err := c.applyHeader(p); err != nil {
		return nil, err
	}
	if p.Own {
		c.own()
	}
	c.cloneFlags(p.Namespaces)
	c.precomputeRuleset(p.Steps)
	if len(p.Steps) > wire.StepKilled {
		return nil, fmt.Errorf("%d steps, of which only %d can be told apart", len(p.Steps), wire.StepKilled)
	}
	for i, s := range p.Steps {
		c.step, c.process = uint16(i), processOf(s.In)
		name := s.Do.String()
		c.t.names = append(c.t.names, name)
		off := c.str(name).v
		c.t.steps = append(c.t.steps, wire.Span{Off: uint32(off), Len: uint32(len(name))})
		if err := c.lower(s.Do); err != nil {
			return nil, fmt.Errorf("step %d, %s: %w", i, name, err)
		}
	}
	c.endInit()
	return &c.t, nil
}

func (c *compiler) cloneFlags(n plan.Namespaces) {
	h := &c.t.header
	for _, f := range []struct {
		on   bool
		flag uint64
	}{
		{n.User, unix.CLONE_NEWUSER}, {n.Mount, unix.CLONE_NEWNS}, {n.PID, unix.CLONE_NEWPID}, {n.IPC, unix.CLONE_NEWIPC},
		{n.UTS, unix.CLONE_NEWUTS}, {n.Cgroup, unix.CLONE_NEWCGROUP}, {n.Net, unix.CLONE_NEWNET},
	} {
		if f.on {
			h.InitClone |= f.flag
		}
	}
	if n.PID && h.Flags&wire.FlagAsPID1 == 0 {
		h.Flags |= wire.FlagPIDNS
	}
}

// applyHeader notes what surrounds the steps: descriptors, namespaces to join.
func (c *compiler) applyHeader(p plan.Plan) error {
	h := &c.t.header
	if p.Given >= wire.MaxGiven {
		return fmt.Errorf("%d descriptors are given: %w", p.Given, unix.EMFILE)
	}
	h.JoinUser, h.JoinPID = int32(p.Join.User), int32(p.Join.PID)
	if p.AsPID1 {
		h.Flags |= wire.FlagAsPID1
	}
	return nil
}
