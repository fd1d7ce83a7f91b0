package process

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/landlock"
)

// CheckError is a restriction that cannot be shown to be in force.
type CheckError struct {
	Act string // the forbidden act that was tried
	Err error  // what it gave, or nil if it was let through
}

func (e *CheckError) Error() string {
	switch {
	case e.Act == "":
		return "landlock: nothing that the ruleset forbids can be tried without harm, so it cannot be seen to hold"
	case e.Err == nil:
		return fmt.Sprintf("landlock: the restriction is not in force: the kernel let this thread %s", e.Act)
	}
	return fmt.Sprintf("landlock: the restriction cannot be seen to hold: to %s gave %v", e.Act, e.Err)
}

// Unwrap returns what the act gave.
func (e *CheckError) Unwrap() error { return e.Err }

// errTSyncOnly is a program that go-landlock cannot restrict on this kernel.
var errTSyncOnly = errors.New("go-landlock was built with the tag landlocktsync and does nothing before ABI 8")

// usable returns an error if go-landlock enforces nothing on a kernel of this ABI, as in a program built with landlocktsync.
func usable(abi int, tsyncOnly bool) error {
	if tsyncOnly && abi < 8 {
		return &landlock.UnsupportedError{ABI: abi, Err: errTSyncOnly, Reason: errTSyncOnly.Error(),
			Remedy: "build without the tag, or use Linux 7.0 or newer"}
	}
	return nil
}
