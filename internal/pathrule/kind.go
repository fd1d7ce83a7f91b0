package pathrule

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
	Field string // such as "Files.Read"
	Kind  Kind
	Paths []string
}
