package verdict

import (
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An Op is an operation that a tool could try.
type Op string

// The operations. Those up to OpExecute are about files and take an Access's Path.
const (
	OpRead     Op = "read"    // open a file for reading
	OpList     Op = "list"    // list a directory
	OpStat     Op = "stat"    // learn that something exists, and its metadata
	OpWrite    Op = "write"   // change the content of a file that exists
	OpCreate   Op = "create"  // make a file, or with Access.Dir a directory
	OpRemove   Op = "remove"  // remove a name
	OpRename   Op = "rename"  // move Path to To; where a rename cannot be had, by copying and removing
	OpLink     Op = "link"    // give the file at Path the second name To
	OpSymlink  Op = "symlink" // make a symbolic link at Path, whose text is To
	OpChmod    Op = "chmod"   // change mode, owner or times
	OpSetXattr Op = "xattr"   // set or remove an extended attribute user.*
	OpExecute  Op = "execute" // execute a file
	OpConnect  Op = "connect" // connect, or send, to an address or the socket at Path
	OpBind     Op = "bind"    // listen at an address, or make a socket at Path
	OpSignal   Op = "signal"  // signal a process
	OpFork     Op = "fork"    // start a process
	OpElevate  Op = "gain"    // gain rights, as by a setuid program
	OpRunFor   Op = "run"     // run for as long as Access.For
)

// An Access is one operation on a path, an address or a process. It is plain data for
// [Allows].
type Access struct {
	Op Op
	// Path and To are absolute, clean and free of symbolic links, but for the To of
	// a symbolic link, which is its text.
	Path, To string
	// Dir: Path is, or will be, a directory.
	Dir bool

	// Network is "tcp", "udp" or "unix", of which the last takes Path. Host is a
	// name or an address.
	Network, Host string
	Port          int

	// Outside: the process that is signalled is not in the sandbox.
	Outside bool
	// For is how long the tool would run.
	For time.Duration
}

// A Reason is why a policy allows an access, or does not.
type Reason struct {
	Bound  policy.Bound // the bound that decides
	Field  string       // the field that decides, such as "Files.Hide[0]"; "" where no field does
	Why    string       // a sentence
	Remedy string       // what would allow it; "" where it is allowed, or nothing would
	// Private says that the tool finds something of the run's own at the path, such as its /tmp, and not
	// what the harness finds there.
	Private bool
}

// String returns the field and the sentences.
func (r Reason) String() string {
	s := r.Why
	if r.Field != "" {
		s = r.Field + ": " + s
	}
	if r.Remedy != "" {
		s += " (to allow it: " + r.Remedy + ")"
	}
	return s
}
