package kerneltest

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Fact is something about the host that a test cannot do without.
type Fact struct {
	// Name completes "needs ...".
	Name string

	// Check returns nil if the fact holds here, and else why not. It asks the
	// kernel, not a version number.
	Check func() error

	// Since is the first kernel of which the fact is expected; the zero Version
	// expects it of none.
	Since Version

	// Features are those by whose absence a Child lacks the fact.
	Features []Feature

	// Tool marks a program that a prepared machine has installed.
	Tool bool
}

// Version is a kernel's version, 6.12 being {6, 12}.
type Version struct{ Major, Minor int }

// String returns the version as it is commonly written.
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// AtLeast reports whether v is w or later.
func (v Version) AtLeast(w Version) bool {
	return v.Major > w.Major || v.Major == w.Major && v.Minor >= w.Minor
}

// Command is the fact that PATH leads to a program.
func Command(name string) Fact {
	return Fact{
		Name: name + " on PATH",
		Tool: true,
		Check: func() error {
			_, err := exec.LookPath(name)
			return err
		},
	}
}

// Architecture is the fact that this program is for the given GOARCH.
func Architecture(goarch string) Fact {
	return Fact{
		Name: "architecture " + goarch,
		Check: func() error {
			if runtime.GOARCH != goarch {
				return fmt.Errorf("this is %s", runtime.GOARCH)
			}
			return nil
		},
	}
}

// environment is what decides between a skip and a failure.
type environment struct {
	ci     bool // CI=true: nothing that is expected may be missing
	bare   bool // CI_BARE=true: a machine without programs, like that of .ci/vm
	kernel Version
	taken  []Feature // what InChild took away
}

// excused reports whether a test may be skipped for want of a fact: on a
// developer's machine always; in CI if the kernel is too old, the machine has no
// programs, the child was told to be without it, or no kernel is expected to have it.
func excused(f Fact, e environment) bool {
	if !e.ci {
		return true
	}
	for _, feature := range f.Features {
		for _, taken := range e.taken {
			if feature == taken {
				return true
			}
		}
	}
	if f.Tool {
		return e.bare
	}
	return f.Since == Version{} || !e.kernel.AtLeast(f.Since)
}

func ciEnvironment(kernel Version, taken []Feature) environment {
	return environment{
		ci:     os.Getenv("CI") == "true",
		bare:   os.Getenv("CI_BARE") == "true",
		kernel: kernel,
		taken:  taken,
	}
}

// Disposable is the fact that this machine may hang until it is restarted, as that of .ci/vm may.
var Disposable = Fact{
	Name: "a machine that may be lost, such as that of .ci/vm (CI_BARE=true)",
	Check: func() error {
		if os.Getenv("CI_BARE") != "true" {
			return fmt.Errorf("this one is to be kept")
		}
		return nil
	},
}
