package seccomp

import (
	"errors"
	"fmt"
)

// The sentinels that an Error wraps.
var (
	// ErrUnknownSyscall: no architecture here has a syscall of that name.
	ErrUnknownSyscall error = sentinel("unknown syscall")
	// ErrInvalid: a value that the field cannot take.
	ErrInvalid error = sentinel("invalid value")
	// ErrUnreachable: a rule or argument check that can never decide anything: a duplicate, a
	// contradiction, or a rule behind one that already takes every call.
	ErrUnreachable error = sentinel("can never match")
	// ErrTooLarge: the filter needs more than MaxInstructions instructions.
	ErrTooLarge error = sentinel("too large")
	// ErrProgram: bytes that the kernel's checker would refuse as a seccomp program.
	ErrProgram error = sentinel("not a valid seccomp program")

	errUnsupportedArch error = unsupportedArch{}
)

// sentinel is an error that is there before the program starts, at no cost.
type sentinel string

func (s sentinel) Error() string { return string(s) }

// unsupportedArch wraps errors.ErrUnsupported, also at no cost.
type unsupportedArch struct{}

func (unsupportedArch) Error() string { return "architecture has no syscall table here" }
func (unsupportedArch) Unwrap() error { return errors.ErrUnsupported }

// Error says which field of a filter, call or program is wrong and why. It wraps one of this package's sentinels or
// errors.ErrUnsupported.
type Error struct {
	Field  string // path of the field, as in Rules[3].Args[0].Index
	Detail string // what is wrong with it, for a person; may be empty
	Err    error  // the sentinel
}

// Error returns the field, the sentinel's text and the detail in one line.
func (e *Error) Error() string {
	if e.Detail == "" {
		return "seccomp: " + e.Field + ": " + e.Err.Error()
	}
	return "seccomp: " + e.Field + ": " + e.Err.Error() + ": " + e.Detail
}

// Unwrap returns the sentinel.
func (e *Error) Unwrap() error { return e.Err }

// LoadError says at which step loading a program failed. Nothing was loaded if Load returns it, but no_new_privs may be set.
type LoadError struct {
	Step   string // "no_new_privs", "load" or "synchronize threads"
	Thread int    // kernel id of the thread that could not take the filter, or 0
	Err    error  // the errno, or errors.ErrUnsupported
}

// Error returns the step, the thread if one stood in the way, and the errno's text in one line.
func (e *LoadError) Error() string {
	if e.Thread != 0 {
		return fmt.Sprintf("seccomp: %s: thread %d: %v", e.Step, e.Thread, e.Err)
	}
	return "seccomp: " + e.Step + ": " + e.Err.Error()
}

// Unwrap returns the errno or errors.ErrUnsupported.
func (e *LoadError) Unwrap() error { return e.Err }
