//go:build !linux

package kerneltest

import (
	"os"
	"slices"
	"testing"
)

// Main runs the tests of a package and exits with their status, or is one of Programs.
func Main(m *testing.M, _ ...Fact) {
	beProgram()
	os.Exit(m.Run())
}

// InChild skips: there is no Linux kernel to test.
func InChild(t *testing.T, _ Child, _ func(t *testing.T)) {
	t.Helper()
	t.Skip("needs Linux")
}

// Parallel is t.Parallel.
func Parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
}

// Need skips where another fact is asked for than what sandboxes need: none about a Linux kernel holds here.
func Need(t testing.TB, facts ...Fact) {
	t.Helper()
	if slices.ContainsFunc(facts, func(f Fact) bool { return f.Name != "" }) {
		t.Skip("needs Linux")
	}
}

// HasUserNamespaces is what a sandbox needs on Linux alone: it is not asked for here.
var HasUserNamespaces Fact
