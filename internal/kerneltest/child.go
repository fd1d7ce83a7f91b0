package kerneltest

import (
	"testing"
	"time"
)

// User says who the child runs as.
type User int

const (
	// Same is the user of the test process.
	Same User = iota
	// Root is uid 0. A test process that is not root skips.
	Root
	// Ordinary is a user without privileges: nobody, with no supplementary
	// groups, if the test process is root, and else the test process's own user.
	Ordinary
)

// String returns the word that AsEach names its subtests by.
func (u User) String() string {
	switch u {
	case Same:
		return "as the same user"
	case Root:
		return "as root"
	case Ordinary:
		return "as an ordinary user"
	}
	return "as an unknown user"
}

// Child says how InChild runs a body. The zero value is a child like the test
// process itself.
type Child struct {
	// As is who the child runs as.
	As User

	// Without lists the features that the child and all its descendants find
	// missing. Nil takes nothing away.
	Without []Feature

	// Env holds variables in os/exec's form that are added to the environment
	// of the test process. HOME, USER, LOGNAME, TMPDIR are the child's own:
	// HOME is an empty directory of mode 0700.
	Env []string

	// Home is the child's HOME, such as /home/user or /root; "": one below the temporary directory. It is an empty directory of mode 0700 in a mount
	// namespace of the child's, in which its top directory (/home) has nothing else: tests meet the rules of the presets that depend on it.
	Home string

	// Timeout is when the child is killed and the test fails; zero is four minutes.
	Timeout time.Duration
}

// AsEach runs body in one subtest as Root and in one as Ordinary. Unless All tests
// are asked for, the subtest of the user who is not the current one skips. A test
// process that is not root cannot do the first, which skips.
func AsEach(t *testing.T, body func(t *testing.T, as User)) {
	t.Helper()
	for _, as := range []User{Root, Ordinary} {
		t.Run(as.String(), func(t *testing.T) {
			as.Wanted(t)
			body(t, as)
		})
	}
}
