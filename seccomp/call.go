package seccomp

import (
	"fmt"
	"strconv"
)

// x32Bit marks the numbers of amd64's x32 interface (__X32_SYSCALL_BIT, asm/unistd.h): 64-bit
// registers, 32-bit pointers, and syscalls that a filter of plain numbers would not recognise.
const x32Bit = 0x40000000

// Call is one syscall as a filter sees it: struct seccomp_data of linux/seccomp.h.
type Call struct {
	Arch Arch
	Nr   uint32 // the number, whose sign plays no part
	Args [6]uint64
	IP   uint64 // address of the instruction; no filter that is compiled here looks at it
}

// NewCall returns the call of a syscall by name, the arguments that are not given being 0. Its
// errors are *Error: an architecture that has no table, a name that the architecture does not
// have, more than six arguments.
func NewCall(a Arch, name string, args ...uint64) (Call, error) {
	if !a.known() {
		return Call{}, &Error{Field: "Arch", Detail: a.String(), Err: errUnsupportedArch}
	}
	i := find(name)
	nr, ok := uint32(0), false
	if i >= 0 {
		nr, ok = table[i].number(a)
	}
	if !ok {
		return Call{}, &Error{Field: "Nr", Detail: strconv.Quote(name) + " on " + a.String(), Err: ErrUnknownSyscall}
	}
	c := Call{Arch: a, Nr: nr}
	if len(args) > len(c.Args) {
		return Call{}, &Error{Field: "Args", Detail: fmt.Sprintf("%d arguments, at most 6", len(args)), Err: ErrInvalid}
	}
	copy(c.Args[:], args)
	return c, nil
}

// String returns the call in one line, by name if the number has one.
func (c Call) String() string {
	name, ok := "", false
	if c.Arch.known() {
		name, ok = nameOf(c.Arch, c.Nr)
	}
	if !ok {
		name = fmt.Sprintf("syscall_%#x", c.Nr)
	}
	s := c.Arch.String() + " " + name + "("
	for i, a := range c.Args {
		if i > 0 {
			s += ", "
		}
		s += "0x" + strconv.FormatUint(a, 16)
	}
	return s + ")"
}
