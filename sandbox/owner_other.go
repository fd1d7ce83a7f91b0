//go:build !unix

package sandbox

// ownedByRootAlone is not known here.
func ownedByRootAlone(string) bool { return false }

// ownedBelow is not known here.
func ownedBelow(string, string) bool { return false }
