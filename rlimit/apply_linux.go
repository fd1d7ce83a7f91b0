//go:build linux && (amd64 || arm64)

package rlimit

import "syscall"

// Current returns the limits of the calling process. In a Go program the soft NoFile is not
// what was inherited: syscall's init raises it to one below the hard limit and gives children
// the former value back, unless it is set (see [Limits.Apply]). The error is a [*SetError].
func Current() (Values, error) {
	var v Values
	for r := range Resource(NumResources) {
		var lim syscall.Rlimit
		if err := syscall.Getrlimit(int(r), &lim); err != nil {
			return Values{}, &SetError{"getrlimit", r, err}
		}
		v[r] = Limit{lim.Cur, lim.Max}
	}
	return v, nil
}

// Apply sets l on the calling process, all threads, and so on the children it starts from now on. It resolves l against
// [Current] first and sets nothing if that fails. A process that lowers NoFile below what it has open keeps that open.
//
// It sets through syscall.Setrlimit, not by a raw call: after it, os/exec no longer gives children the soft NoFile that
// this process was started with, so they have what was set.
//
// The errors are those of [Limits.Resolve] and a [*SetError].
func (l Limits) Apply() error {
	inherited, err := Current()
	if err != nil {
		return err
	}
	settings, err := l.Resolve(inherited)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if err := syscall.Setrlimit(int(s.Resource), &syscall.Rlimit{Cur: s.Soft, Max: s.Hard}); err != nil {
			return &SetError{"setrlimit", s.Resource, err}
		}
	}
	return nil
}
