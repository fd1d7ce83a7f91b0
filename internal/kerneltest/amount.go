package kerneltest

import (
	"os"
	"testing"
)

// AllEnv is the variable whose value "all" asks for every test, as .ci/run does, and "soak" for the longest sequences as well.
const AllEnv = "HOLDFAST_TESTS"

// All reports whether HOLDFAST_TESTS=all asks for every test: each case as both users, the long sequences,
// every generated policy. Without it each bound is shown once, as the current user. With -short the test fails,
// since the two contradict each other.
func All(t testing.TB) bool {
	t.Helper()
	value := os.Getenv(AllEnv)
	all := value == "all" || value == "soak"
	if all && testing.Short() {
		t.Fatalf("%s=%s and -short contradict each other", AllEnv, value)
	}
	return all
}

// Soak returns n where HOLDFAST_TESTS=soak asks for the longest sequences, which take minutes and which a release is preceded by; 0 otherwise.
func Soak(n int) int {
	if os.Getenv(AllEnv) == "soak" {
		return n
	}
	return 0
}

// Heavy skips the test unless All. Such a test repeats what another one shows, for more users, seeds or kernels.
func Heavy(t testing.TB) {
	t.Helper()
	if !All(t) {
		t.Skipf("heavy: needs %s=all", AllEnv)
	}
}

// Long skips the test with -short.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("long: needs a run without -short")
	}
}

// Amount returns how much of a thing a test does, such as the number of generated policies: with -short, without
// it, and where All tests are asked for.
func Amount(t testing.TB, short, usual, all int) int {
	t.Helper()
	switch {
	case All(t):
		return all
	case testing.Short():
		return short
	}
	return usual
}

// Wanted skips the test of a user who is not the current one unless All. AsEach asks it.
func (u User) Wanted(t testing.TB) {
	t.Helper()
	if u != current() && !All(t) {
		t.Skipf("heavy: as another user than the current one it needs %s=all", AllEnv)
	}
}

// current is the user of the test process, as AsEach names it.
func current() User {
	if os.Geteuid() == 0 {
		return Root
	}
	return Ordinary
}
