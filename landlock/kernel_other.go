//go:build !linux || !(amd64 || arm64)

package landlock

import "os"

func unsupported() error {
	return &UnsupportedError{Reason: "Landlock is used on Linux on amd64 and arm64 alone"}
}

// ABI returns an [*UnsupportedError]: this system has no Landlock.
func ABI() (int, error) { return 0, unsupported() }

// FixedErrata returns an [*UnsupportedError]: this system has no Landlock.
func FixedErrata() (Errata, error) { return 0, unsupported() }

// Build returns an [*UnsupportedError]: this system has no Landlock.
func Build(r Ruleset) (*os.File, error) { return nil, unsupported() }

// RestrictThread restricts nothing and returns an [*UnsupportedError]: this system has no Landlock.
func RestrictThread(fd int, flags Flags) error { return unsupported() }
