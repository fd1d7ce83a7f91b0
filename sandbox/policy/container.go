package policy

import "slices"

// InContainer returns the policy with a May that accepts what is weaker where no namespaces can be made, as in most containers:
//
//	s, err := sandbox.New(sandbox.Workspace(dir).InContainer())
//
// It names the bounds on files and processes, of which a run without namespaces loses this: the names of all files can be seen, /proc is
// the container's, /tmp and HOME are not private (the tool has others; its /tmp by [Files.MayShare]), and other processes' command lines can be seen. The contents
// of files are held by Landlock; on a host without Landlock (gVisor, kernels before 5.13) files are then not bounded at all, and below its ABI 6 (Linux 6.12) the
// user's other processes can be signalled. Where namespaces can be made nothing is lost. A bound that is open stays so. Each run's report says what was.
func (p Policy) InContainer() Policy {
	p.May = slices.Clone(p.May)
	for _, b := range []Bound{BoundFiles, BoundProcesses} {
		if !slices.Contains(p.May, b) && !p.isOpen(b) {
			p.May = append(p.May, b)
		}
	}
	return p
}
