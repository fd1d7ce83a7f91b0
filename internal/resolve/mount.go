package resolve

import "github.com/holdfast-dev/holdfast/internal/plan"

// A MountEntry is an entry of an explicit root with the host's paths resolved, and the field that it comes from.
type MountEntry struct {
	Field  string
	Action plan.Action
}
