//go:build !linux || !(amd64 || arm64)

package process

import "github.com/holdfast-dev/holdfast/landlock"

// Restrict restricts nothing and returns a [*landlock.UnsupportedError]: this system has no Landlock.
func Restrict(r landlock.Ruleset) error {
	_, err := landlock.ABI()
	return err
}
