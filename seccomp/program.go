package seccomp

import (
	"encoding/binary"
	"fmt"
	"strconv"
)

// Program is a compiled filter: classic BPF for the kernel's seccomp. It cannot be changed,
// and two programs are equal (==) if they have the same instructions. The zero Program is
// empty: it cannot be evaluated or loaded.
type Program struct {
	code string // struct sock_filter, one after the other
}

// instruction is struct sock_filter of linux/filter.h.
type instruction struct {
	Code   uint16
	JT, JF uint8 // how many instructions a conditional jump skips, if its test holds and if not
	K      uint32
}

const instructionSize = 8

// The instructions that this package compiles to, out of linux/bpf_common.h.
const (
	opLoad             = classLoad | sizeWord | modeAbs
	opAnd              = classALU | aluAnd
	opReturn           = classReturn
	opJump             = classJump
	jumpEqual          = classJump | testEqual
	jumpGreater        = classJump | testGreater
	jumpGreaterOrEqual = classJump | testGreaterOrEqual
)

// Offsets in struct seccomp_data.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetIP   = 8
	offsetArgs = 16
	dataSize   = 64
)

// append encodes i in the layout of amd64 and arm64, which are both little-endian.
func (i instruction) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint16(b, i.Code)
	b = append(b, i.JT, i.JF)
	return binary.LittleEndian.AppendUint32(b, i.K)
}

// at returns the instruction at pc, which must be within the program.
func (p Program) at(pc int) instruction {
	b := p.code[pc*instructionSize:][:instructionSize]
	return instruction{
		Code: uint16(b[0]) | uint16(b[1])<<8,
		JT:   b[2],
		JF:   b[3],
		K:    uint32(b[4]) | uint32(b[5])<<8 | uint32(b[6])<<16 | uint32(b[7])<<24,
	}
}

// Len returns the number of instructions.
func (p Program) Len() int { return len(p.code) / instructionSize }

// Bytes returns the program as an array of struct sock_filter, little-endian, 8 bytes each:
// what struct sock_fprog points to for seccomp(2). The caller may change the bytes.
func (p Program) Bytes() []byte { return []byte(p.code) }

// ParseProgram reads what Bytes writes, or any other program, and refuses what the kernel
// would refuse to load, with an *Error that wraps ErrProgram. It does not say what the program
// does; Evaluate does.
func ParseProgram(b []byte) (Program, error) {
	if len(b)%instructionSize != 0 {
		return Program{}, &Error{Field: "Program", Detail: fmt.Sprintf("%d bytes are no whole number of instructions", len(b)), Err: ErrProgram}
	}
	n := len(b) / instructionSize
	if n == 0 || n > MaxInstructions {
		return Program{}, &Error{Field: "Program", Detail: fmt.Sprintf("%d instructions, not 1 to %d", n, MaxInstructions), Err: ErrProgram}
	}
	p := Program{string(b)}
	if pc, detail := p.check(); detail != "" {
		return Program{}, &Error{Field: "Program[" + strconv.Itoa(pc) + "]", Detail: detail, Err: ErrProgram}
	}
	return p, nil
}
