//go:build !unix

package resolve

// ownBelow is not known here.
func ownBelow(p string) string { return p }

func exposed(string) (problem, remedy string) {
	return "has an owner that is not known here", "leave it empty"
}
