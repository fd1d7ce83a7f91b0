package kerneltest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// specEnv is the variable that makes a test binary a child of InChild. The
// child removes it before the test begins, so its own children do not have it.
const specEnv = "KERNELTEST_CHILD"

// idEnv marks a child and, unless they are given another environment, its
// descendants, for the search for what is left of them.
const idEnv = "KERNELTEST_ID"

// recordFD is the descriptor on which the child says how far it came.
const recordFD = 3

// The records, a line each.
const (
	began   = "began\n"
	passed  = "passed\n"
	failed  = "failed\n"
	skipped = "skipped\n"
)

// spec is what the parent tells the child.
type spec struct {
	Test     string // the test's full name
	Call     int    // which of its calls of InChild, from 1
	Without  []Feature
	SetUser  bool // become UID and GID, with no supplementary groups
	UID, GID int
	Home     string // see Child
	Parent   int
	Prepared bool // the user is set and the features are taken away
}

func (s spec) env() (string, error) {
	text, err := json.Marshal(s)
	return specEnv + "=" + string(text), err
}

// readSpec returns the spec of this process, nil if it is no child.
func readSpec() (*spec, error) {
	text, ok := os.LookupEnv(specEnv)
	if !ok {
		return nil, nil
	}
	var s spec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("kerneltest: %s: %w", specEnv, err)
	}
	return &s, os.Unsetenv(specEnv)
}

func (s spec) without(f Feature) bool {
	for _, g := range s.Without {
		if f == g {
			return true
		}
	}
	return false
}

// runPattern is the -test.run expression that selects one test or subtest.
func runPattern(name string) string {
	elems := strings.Split(name, "/")
	for i, e := range elems {
		elems[i] = "^" + quote(e) + "$"
	}
	return strings.Join(elems, "/")
}

// quote is regexp.QuoteMeta with brackets in a form that the flag's own
// splitting at slashes, which counts brackets, is not misled by.
func quote(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune(`[]()`, r):
			fmt.Fprintf(&b, `\x%02x`, r)
		case strings.ContainsRune(`\.+*?|{}^$`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
