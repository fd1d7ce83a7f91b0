package plan

// Witness starts a process that CheckSignal, in init, tries to signal: it is outside of the domain that init enters in between.
type Witness struct{}

func (Witness) String() string { return "start a process that stays outside of the domain" }
func (Witness) action()        {}

// ForSession returns the plan of a session in which any number of commands run. The scopes that a single command's tool closes
// around itself are closed around init instead, and so around all commands together: they may signal each other and meet at
// abstract sockets. Init of a pid namespace loses nothing by it: no signal from inside stops or kills the first process
// (pid_namespaces(7)). Without one the end of init is the session's, and the keeper, outside of the domain, sees to it.
// What each tool closes around itself is its memory (Apart): a process of one command cannot trace one of another,
// nor a warden (ptrace restrictions, Documentation/userspace-api/landlock.rst). Nor does it set limits of theirs (Limits).
func (p Plan) ForSession() Plan {
	var inits, others []Step
	if p.Apart != nil {
		others = append(others, Step{In: Tool, Do: *p.Apart, By: Landlock, Why: "no command reads another's memory"})
	}
	scoped := p.Uses(LandlockScope)
	for _, s := range p.Steps {
		check, checks := s.Do.(CheckSignal)
		switch {
		case s.In == Tool && s.By == LandlockScope:
			inits = append(inits, Step{In: Init, Do: Witness{}, Why: "for the self-check"}, Step{In: Init, Do: s.Do, By: s.By, Why: s.Why})
		case checks && scoped:
			inits = append(inits, Step{In: Init, Do: check, Why: s.Why})
		case checks: // the parent, which it would signal, is a warden
		case s.In == Tool && s.By == LandlockNet && p.Apart != nil: // which has it
		case s.In == Tool:
			switch s.Do.(type) {
			case LoadFilter, LoadSupervisor: // which need not let it be loaded
				others, p.Limits = p.limitsOfOthers(others), nil
			}
			others = append(others, s)
		default:
			inits = append(inits, s)
		}
	}
	p.Steps = append(inits, p.limitsOfOthers(others)...)
	p.Limits = nil
	return p
}

// limitsOfOthers appends the step of Limits, if there is one.
func (p Plan) limitsOfOthers(steps []Step) []Step {
	if p.Limits == nil {
		return steps
	}
	return append(steps, Step{In: Tool, Do: *p.Limits, By: Seccomp, Why: "no command sets limits of another's processes"})
}
