//go:build !unix

package resolve

// OwnedByRootAlone is not known here.
func OwnedByRootAlone(string) bool { return false }

// OwnedBelow is not known here.
func OwnedBelow(string, string) bool { return false }

// ownBelow is not known here.
func ownBelow(p string) string { return p }

func exposed(string) (problem, remedy string) {
	return "has an owner that is not known here", "leave it empty"
}
