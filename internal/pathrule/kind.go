package pathrule

import "github.com/holdfast-dev/holdfast/internal/errtext"

// A Kind is the list of a policy that a path stands in.
type Kind uint8

// The kinds, by the list that each stands for.
const (
	Read        Kind = iota // Files.Read
	Write                   // Files.Write
	CopyOnWrite             // Files.CopyOnWrite
	Private                 // Files.Private
	Make                    // Files.Make
	Socket                  // Network.Unix
	Hide                    // Files.Hide
)

// A List is one list of a policy's paths.
type List struct {
	Field  string // such as "Files.Read"
	Kind   Kind
	Paths  []string
	Single bool // the field is no list, and has one path at most
}

// Name returns the name of the field that has the i-th path.
func (l List) Name(i int) string {
	if l.Single {
		return l.Field
	}
	return errtext.Indexed(l.Field, i)
}
