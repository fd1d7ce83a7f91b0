package sandbox

import "errors"

// traceChild is written for amd64's registers; the rule is the same code.
func traceChild(change bool) func(ground) error {
	return func(ground) error {
		if change {
			return errors.New("not tried on this architecture")
		}
		return nil
	}
}
