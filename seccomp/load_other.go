//go:build !linux

package seccomp

import "errors"

func (p Program) load(LoadOptions) (int, error) {
	return -1, &LoadError{Step: "load", Err: errors.ErrUnsupported}
}
