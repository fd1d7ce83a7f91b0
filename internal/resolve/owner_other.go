//go:build !unix

package resolve

import "github.com/holdfast-dev/holdfast/internal/plan"

// idOf is not known here.
func idOf(string) plan.FileID { return plan.FileID{} }

// ownBelow is not known here.
func ownBelow(p string) string { return p }

func exposed(string) (problem, remedy string) {
	return "has an owner that is not known here", "leave it empty"
}
