package sandbox

import "time"

// A Deed is a kind of act: what a tool could try.
type Deed string

// The deeds. Those up to ToExecute are about files and take an Act's Path.
const (
	ToRead     Deed = "read"    // open a file for reading
	ToList     Deed = "list"    // list a directory
	ToStat     Deed = "stat"    // learn that something exists, and its metadata
	ToWrite    Deed = "write"   // change the content of a file that exists
	ToCreate   Deed = "create"  // make a file, or with Act.Dir a directory
	ToRemove   Deed = "remove"  // remove a name
	ToRename   Deed = "rename"  // move Path to To; where a rename cannot be had, by copying and removing
	ToLink     Deed = "link"    // give the file at Path the second name To
	ToSymlink  Deed = "symlink" // make a symbolic link at Path, whose text is To
	ToChmod    Deed = "chmod"   // change mode, owner or times
	ToSetXattr Deed = "xattr"   // set an extended attribute
	ToExecute  Deed = "execute" // execute a file
	ToConnect  Deed = "connect" // connect, or send, to an address or the socket at Path
	ToBind     Deed = "bind"    // listen at an address, or make a socket at Path
	ToSignal   Deed = "signal"  // signal a process
	ToFork     Deed = "fork"    // start a process
	ToGain     Deed = "gain"    // gain rights, as by a setuid program
	ToRun      Deed = "run"     // run for as long as Act.For
)

// An Act is something that a tool could try. It is plain data for
// [Allows].
type Act struct {
	Do Deed
	// Path and To are absolute, clean and free of symbolic links, but for the To of
	// a symbolic link, which is its text.
	Path, To string
	// Dir says that what the act is about is, or will be, a directory.
	Dir bool

	// Network is "tcp", "udp" or "unix", of which the last takes Path. Host is a
	// name or an address.
	Network, Host string
	Port          int

	// Outside says that the process which is signalled is none of the sandbox's.
	Outside bool
	// For is how long the tool would run.
	For time.Duration
}

// A Reason is why a policy allows an act, or does not.
type Reason struct {
	Bound  Bound  // of which bound the act is
	Field  string // the field that decides, such as "Files.Hide[0]"; "" where nothing in the policy speaks of the act
	Why    string // a sentence
	Remedy string // what would allow the act; "" where it is allowed, or nothing would
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
