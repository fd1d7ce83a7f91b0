package sandbox

import "golang.org/x/sys/unix"

// traceChild is written for amd64's registers; the rule is the same code.
func traceChild(change bool) func(ground) error {
	return func(ground) error {
		if change {
			return unix.ENOSYS // not tried
		}
		return nil
	}
}
