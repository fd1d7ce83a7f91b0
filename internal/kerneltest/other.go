//go:build !linux

package kerneltest

import (
	"os"
	"testing"
)

// Main runs the tests of a package and exits with their status, or is one of Programs.
func Main(m *testing.M) {
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

// Need skips: no fact about a Linux kernel holds here.
func Need(t testing.TB, _ ...Fact) {
	t.Helper()
	t.Skip("needs Linux")
}
