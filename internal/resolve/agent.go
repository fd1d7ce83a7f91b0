package resolve

import (
	"io/fs"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// AgentSocket is the canonical path of an agent's socket.
func AgentSocket(field, p, remedy string) (string, error) {
	if p == "" {
		return "", &policy.PolicyError{Field: field, Problem: "the harness has no agent", Remedy: remedy, Err: fs.ErrNotExist}
	}
	real, info, err := Canonical(p)
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		err = syscall.ENOTSOCK
	}
	if err != nil {
		return "", &policy.PolicyError{Field: field, Value: p, Problem: "is not the socket of an agent", Remedy: remedy, Err: err}
	}
	return real, nil
}
