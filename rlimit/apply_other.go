//go:build !linux || !(amd64 || arm64)

package rlimit

import (
	"errors"
	"fmt"
)

var errUnsupported = fmt.Errorf("rlimit: limits are set on Linux on amd64 and arm64 alone: %w", errors.ErrUnsupported)

// Current returns an error that wraps errors.ErrUnsupported.
func Current() (Values, error) { return Values{}, errUnsupported }

// Apply sets nothing and returns an error that wraps errors.ErrUnsupported.
func (l Limits) Apply() error { return errUnsupported }
