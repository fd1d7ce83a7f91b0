package sandbox

import "github.com/holdfast-dev/holdfast/internal/verdict"

// What [Allows] is asked, and what it answers.
type (
	// An Access is one operation (Op) that a tool could try: on Path, and To for a rename or link (absolute, clean, without links; Dir: Path
	// is a directory); on an address (Network "tcp", "udp" or "unix", which takes Path; Host and Port); on a process (Outside: of
	// no sandbox); or running for the time For.
	Access = verdict.Access
	// An Op is an operation, such as [OpRead].
	Op = verdict.Op
	// A Reason is why an access is allowed, or not: the policy's Bound and Field, a sentence (Why), the Remedy that would allow it.
	Reason = verdict.Reason
)

// The operations. Those up to OpExecute take an Access's Path.
const (
	OpRead     = verdict.OpRead     // open a file for reading
	OpList     = verdict.OpList     // list a directory
	OpStat     = verdict.OpStat     // learn that something exists, and its metadata
	OpWrite    = verdict.OpWrite    // change the content of a file that exists
	OpCreate   = verdict.OpCreate   // make a file, or with Access.Dir a directory
	OpRemove   = verdict.OpRemove   // remove a name
	OpRename   = verdict.OpRename   // move Path to To; where a rename cannot be had, by copying and removing
	OpLink     = verdict.OpLink     // give the file at Path the second name To
	OpSymlink  = verdict.OpSymlink  // make a symbolic link at Path, whose text is To
	OpChmod    = verdict.OpChmod    // change mode, owner or times
	OpSetXattr = verdict.OpSetXattr // set or remove an extended attribute user.*
	OpExecute  = verdict.OpExecute  // execute a file
	OpConnect  = verdict.OpConnect  // connect, or send, to an address or the socket at Path
	OpBind     = verdict.OpBind     // listen at an address, or make a socket at Path
	OpSignal   = verdict.OpSignal   // signal a process
	OpFork     = verdict.OpFork     // start a process
	OpElevate  = verdict.OpElevate  // gain rights, as by a setuid program
	OpRunFor   = verdict.OpRunFor   // run for as long as Access.For
)

// Allows reports whether p allows an access, and why. It is the one definition of what a policy means: tests compare plans and profiles with it.
// It explains, and is no gate for what the harness itself does: it looks at no file, and so at no link (see [os.OpenRoot]). Where the
// tool would find something of the run's own, such as a private /tmp, the answer is false and the reason Private. Directories are those
// that the tool has not made: in its own, protected names are free. A policy
// that [New] would refuse allows nothing. docs/getting-started.md has what it takes for granted.
func Allows(p Policy, a Access) (bool, Reason) {
	return verdict.Answer(p, a)
}

// Allows is [Allows] for the sandbox's policy, with this host's paths.
func (s *Sandbox) Allows(a Access) (bool, Reason) {
	return s.evaluator().On(s.facts.Namespaces.Yes()).Answer(a)
}

// evaluator answers for the policy with its resolved paths.
func (s *Sandbox) evaluator() *verdict.Evaluator {
	return verdict.Of(s.ready.Policy, s.ready.Tree, s.obeyed)
}
