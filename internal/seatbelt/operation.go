package seatbelt

// An Argument is what an operation is asked about.
type Argument string

// The kinds of arguments.
const (
	NoArgument Argument = "none"
	PathOf     Argument = "path"
	AddressOf  Argument = "address" // or the path of a unix socket
	NameOf     Argument = "name"
	TargetOf   Argument = "target"
)

// An Operation is a row of seatbelt's table of operations.
type Operation struct {
	Name     string
	Parent   string // the wildcard above, "default" at last; "" for default itself
	Argument Argument
	About    string
}
