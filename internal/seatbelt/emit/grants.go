package emit

import "fmt"

// Grants says what a profile allows. The zero value allows a process to run that
// touches nothing but the system's own libraries.
type Grants struct {
	// Rules are about places. Where they nest, the deepest decides.
	Rules []Rule
	// AllFiles allows everything about files; Rules and Names are then refused.
	AllFiles bool

	// Roots are the writable directories in which Names hold.
	Roots []string
	Names []Name

	Network Network

	// PTY allows terminals to be made. Others are never opened.
	PTY bool
	// AllProcesses allows processes outside to be signalled and looked at.
	AllProcesses bool

	Tools Tools

	// Tag is the message of each deny, by which the system's log is searched. It is
	// made of letters, digits, '-', '_' and '.'; it may be empty.
	Tag string
}

// A Kind is what a Rule does.
type Kind uint8

// The kinds of rules. The zero value is no kind.
const (
	Read   Kind = iota + 1 // read and execute
	Write                  // read, execute and change
	Hide                   // nothing, not even to learn that it is there
	Device                 // a device file: read, write and ioctl
	Socket                 // a unix socket: to be connected to, and nothing else
)

// A Rule is about a file, or a directory and everything in it.
type Rule struct {
	Path  string // absolute, clean and resolved
	Kind  Kind
	Field string // where it comes from, for errors
}

// A NameKind is what a Name protects.
type NameKind uint8

// The kinds of names.
const (
	Whole     NameKind = iota // the name and all that lies beneath
	File                      // the file of that name, whose mode may change
	Directory                 // a name that must not be a file
	Hidden                    // the name's content may not be read
)

// A Name is protected at every depth below Roots. Its Path is components joined by
// slashes, where "*" is any one, "**" one or more, a '*' at the end of a component
// any ending, and one in front any beginning.
type Name struct {
	Path  string
	Kind  NameKind
	Field string
}

// Network is what can be connected to. The zero value is nothing.
type Network struct {
	All     bool  // everything
	Ports   []int // of the machine's loopback, both of IPv4 and IPv6, to which TCP connections may be made
	Sockets bool  // the unix sockets of the places that Rules show
}

// Tools says which programs need more than their files.
type Tools struct {
	TLS    bool // certificates are checked by trustd, as Go's and the system's libraries do
	Git    bool // the shims in /usr/bin ask xcrun where the tool is
	Node   bool // V8's settings
	Python bool // semaphores of multiprocessing, and OpenMP's shared memory
}

// An Emission is a profile and the parameters that it is used with.
type Emission struct {
	Profile string
	Params  []Param
}

// A Param is one -D option.
type Param struct{ Name, Value string }

// Args returns the parameters as sandbox-exec takes them.
func (e Emission) Args() []string {
	var args []string
	for _, p := range e.Params {
		args = append(args, "-D", p.Name+"="+p.Value)
	}
	return args
}

// An Error is a grant that cannot be written as a profile.
type Error struct {
	Field   string // the grant's own, such as "Files.Read[0]", or where it stands in Grants
	Value   string
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("emit: %s: %q %s", e.Field, e.Value, e.Problem)
}
