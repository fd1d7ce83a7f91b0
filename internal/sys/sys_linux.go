// Package sys holds the kernel constants that package syscall lacks and the
// two wrappers around raw system calls that are safe in a forked child: they
// neither grow the stack, allocate, nor tell the Go scheduler.
//
// It imports syscall and unsafe alone, because the stage's child half, which
// runs before the harness's packages have initialised, is built on it.
package sys

import "unsafe"

// Raw makes a system call without telling the scheduler and returns what the
// kernel returns: a result, or the negative of an errno. It is syscall's
// RawSyscall6 without its two frames.
//
//go:noescape
func Raw(nr, a, b, c, d, e, f uintptr) int

// Call is Raw with result and errno (0: none) apart.
//
//go:nosplit
//go:norace
func Call(nr, a, b, c, d, e, f uintptr) (uintptr, uintptr) {
	r := Raw(nr, a, b, c, d, e, f)
	if r < 0 && r > -4096 {
		return ^uintptr(0), uintptr(-r)
	}
	return uintptr(r), 0
}

// Addr returns the address of p for use as a system call's argument. The
// memory must not be on the Go heap unless something else keeps it alive.
//
//go:nosplit
//go:norace
func Addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
