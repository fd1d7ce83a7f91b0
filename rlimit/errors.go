package rlimit

import (
	"fmt"
)

// FieldError is a limit that makes no sense, or that the inherited limits do not allow; found before anything was set.
type FieldError struct {
	Field  string // the field of [Limits], or the JSON key if there is no such field
	Value  string // what stands there, in the field's unit
	Reason string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("rlimit: %s = %q: %s", e.Field, e.Value, e.Reason)
}

// SetError is a limit that the kernel refused to set or to tell. It wraps the system call's error. Limits set before it stay set.
type SetError struct {
	Op       string // "setrlimit" or "getrlimit"
	Resource Resource
	Err      error
}

func (e *SetError) Error() string {
	return fmt.Sprintf("rlimit: %s %v: %v", e.Op, e.Resource, e.Err)
}

// Unwrap returns the system call's error.
func (e *SetError) Unwrap() error { return e.Err }
