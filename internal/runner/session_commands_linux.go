package runner

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// SetEnv sets the environment of commands that are made afterwards and have no Env of their own. The policy filters it as it filters theirs; nil:
// they have what the policy lets pass.
func (n *Session) SetEnv(env []string) error {
	if err := n.err(nil); err != nil {
		return err
	}
	return n.defaults.setEnv(env)
}

// SetDir sets the directory of commands that are made afterwards and have no Dir of their own; "": the one that they have without it.
func (n *Session) SetDir(dir string) error {
	if err := n.err(nil); err != nil {
		return err
	}
	return n.defaults.setDir(dir, n.sandbox.shows)
}

// Dir is the directory that SetDir has set.
func (n *Session) Dir() string {
	_, dir := n.defaults.get()
	return dir
}

// Output returns what a command has printed from an offset on.
func (n *Session) Output(id int, offset int64) (policy.Output, error) {
	if err := n.err(nil); err != nil {
		return policy.Output{}, err
	}
	log, err := n.outputs.of(id)
	if err == nil && !log.Seen() {
		err = unseen()
	}
	if err != nil {
		return policy.Output{}, err
	}
	return log.Read(offset), nil
}

// Extend gives the session a deadline, or moves the one that it has, to a time from now.
func (n *Session) Extend(in time.Duration) error {
	if in <= 0 {
		return &policy.PolicyError{Field: "Extend", Value: in.String(), Problem: "is not in the future", Remedy: "use Close"}
	}
	if err := n.err(nil); err != nil {
		return err
	}
	if !n.deadline.set(in, func() { n.Close() }) {
		n.await(n.ended)
		return n.err(nil)
	}
	return nil
}

// endBorrowed ends the session of a borrowed run, if it has not ended by itself, and returns the number of a process that does not end, or 0.
func (n *Session) endBorrowed() int {
	select {
	case <-n.ended:
		return n.control.Stuck
	default:
	}
	if stuck := (*StuckError)(nil); errors.As(n.Close(), &stuck) {
		return stuck.PID
	}
	return 0
}
