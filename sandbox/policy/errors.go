package policy

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/holdfast-dev/holdfast/internal/errtext"
)

// A PolicyError says which field of a [Policy] cannot be, why, and what would
// do instead. It is found before anything runs. It says nothing of what a host
// lacks: that is a sandbox.UnsupportedError.
type PolicyError struct {
	Field   string // "Files.Read[3]"
	Value   string // what stands there
	Problem string // what is wrong with it
	Remedy  string // what to write instead; may be empty
	Err     error  // the cause, such as fs.ErrNotExist or an errno; may be nil
}

// Error returns all of it in one line.
func (e *PolicyError) Error() string {
	s := "sandbox: policy: " + e.Field
	if e.Value != "" {
		s += " = " + strconv.Quote(errtext.Shorten(e.Value))
	}
	s += ": " + e.Problem
	if e.Err != nil {
		s += ": " + errtext.Shorten(e.Err.Error())
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Unwrap returns the cause.
func (e *PolicyError) Unwrap() error { return e.Err }

// An UnsupportedError is a bound that this host cannot hold. It wraps
// errors.ErrUnsupported. Where several bounds are concerned, New's error joins
// one for each.
type UnsupportedError struct {
	Bound  Bound
	What   string // what of the bound is not held
	Reason string // which fact of the host is missing
	Remedy string // what would change it
	Needed bool   // Policy.May does not help: the policy asks for it, or no command starts without it
}

func (e *UnsupportedError) Error() string {
	if e.Needed {
		return fmt.Sprintf("sandbox: this host cannot hold %s: %s: %s (remedy: %s)", e.Bound, e.What, e.Reason, e.Remedy)
	}
	return fmt.Sprintf("sandbox: this host cannot hold %s: %s: %s (remedy: %s; or name the bound in Policy.May to run without)",
		e.Bound, e.What, e.Reason, e.Remedy)
}

// Unwrap returns errors.ErrUnsupported.
func (e *UnsupportedError) Unwrap() error { return errors.ErrUnsupported }
