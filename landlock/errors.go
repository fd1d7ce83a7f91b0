package landlock

import (
	"errors"
	"fmt"
)

// NameError is a name that stands for no right, scope or flag of this package.
type NameError struct {
	Set  string // what was read: "file system right", "network right", "scope"
	Name string
}

func (e *NameError) Error() string { return fmt.Sprintf("landlock: unknown %s %q", e.Set, e.Name) }

// FieldError is a ruleset that makes no sense, found before anything was asked of the kernel.
type FieldError struct {
	Field  string // the Go path of the field: "Paths[2].Access"
	Value  string // what stands there
	Reason string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("landlock: %s = %q: %s", e.Field, e.Value, e.Reason)
}

// RuleError is a rule that cannot be added on this machine, such as one whose path does not exist. It wraps
// the system call's error.
type RuleError struct {
	Rule string // the rule as it prints
	Op   string // the system call: "open", "fstat", "landlock_add_rule"
	Err  error
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("landlock: rule %s: %s: %v", e.Rule, e.Op, e.Err)
}

// Unwrap returns the system call's error.
func (e *RuleError) Unwrap() error { return e.Err }

// StepError is a kernel call, other than adding a rule, that failed.
type StepError struct {
	Step string // the system call: "landlock_restrict_self"
	Err  error
}

func (e *StepError) Error() string { return fmt.Sprintf("landlock: %s: %v", e.Step, e.Err) }

// Unwrap returns the system call's error.
func (e *StepError) Unwrap() error { return e.Err }

// UnsupportedError is a kernel that certainly cannot do what was asked. It wraps errors.ErrUnsupported, and the
// system call's error where there is one.
type UnsupportedError struct {
	ABI    int    // the kernel's Landlock ABI; 0 is no Landlock
	Reason string // why it cannot
	Remedy string // what would change it
	Lost   []Lost // what of a ruleset could not be held, where one was given
	Err    error  // the system call's error, or nil
}

func (e *UnsupportedError) Error() string {
	s := "landlock: " + e.Reason
	if len(e.Lost) > 0 {
		s += ": " + e.Lost[0].String()
		if n := len(e.Lost) - 1; n > 0 {
			s += fmt.Sprintf(" (and %d more)", n)
		}
	}
	if e.Remedy != "" {
		s += "; " + e.Remedy
	}
	return s
}

// Unwrap returns errors.ErrUnsupported and the system call's error.
func (e *UnsupportedError) Unwrap() []error {
	if e.Err == nil {
		return []error{errors.ErrUnsupported}
	}
	return []error{errors.ErrUnsupported, e.Err}
}

// ProbeError is a question to the kernel that got neither yes nor no. It does not wrap errors.ErrUnsupported:
// the kernel may have Landlock, and something between hides it.
type ProbeError struct {
	Reason string
	Remedy string
	Err    error // the system call's error
}

func (e *ProbeError) Error() string {
	return fmt.Sprintf("landlock: could not tell whether the kernel has Landlock: %s: %v; %s", e.Reason, e.Err, e.Remedy)
}

// Unwrap returns the system call's error.
func (e *ProbeError) Unwrap() error { return e.Err }
