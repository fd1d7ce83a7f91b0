package seccomp

// Classic BPF, as far as seccomp knows it. An instruction's code is a class with a size and
// mode, an operation, or a test, and for the last two where the operand is: in K or in the
// register X. See linux/bpf_common.h.
const (
	classLoad, classLoadX, classStore, classStoreX = 0x00, 0x01, 0x02, 0x03
	classALU, classJump, classReturn, classMisc    = 0x04, 0x05, 0x06, 0x07

	sizeWord                           = 0x00
	modeImm, modeAbs, modeMem, modeLen = 0x00, 0x20, 0x60, 0x80
	aluAdd, aluSub, aluMul, aluDiv     = 0x00, 0x10, 0x20, 0x30
	aluOr, aluAnd, aluLsh, aluRsh      = 0x40, 0x50, 0x60, 0x70
	aluNeg, aluXor                     = 0x80, 0xa0
	testEqual, testGreater             = 0x10, 0x20
	testGreaterOrEqual, testSet        = 0x30, 0x40
	operandX                           = 0x08
	returnA                            = 0x10
	miscTAX, miscTXA                   = 0x00, 0x80
	memoryWords                        = 16 // BPF_MEMWORDS
)

// check does what bpf_check_classic (net/core/filter.c) and seccomp_check_filter
// (kernel/seccomp.c) do. It returns the first instruction that is wrong and why, or "".
func (p Program) check() (int, string) {
	n := p.Len()
	for pc := range n {
		if detail := p.at(pc).check(n - pc - 1); detail != "" {
			return pc, detail
		}
	}
	if c := p.at(n - 1).Code; c != opReturn && c != opReturn|returnA {
		return n - 1, "the last instruction does not return"
	}
	return p.checkMemory()
}

// check validates an instruction that is followed by rest others.
func (i instruction) check(rest int) string {
	switch i.Code {
	case opLoad:
		if i.K >= dataSize || i.K%4 != 0 {
			return "loads from outside the call"
		}
	case classLoad | sizeWord | modeLen, classLoadX | sizeWord | modeLen, classLoad | modeImm, classLoadX | modeImm,
		classMisc | miscTAX, classMisc | miscTXA, opReturn, opReturn | returnA, classALU | aluNeg:
	case classLoad | modeMem, classLoadX | modeMem, classStore, classStoreX:
		if i.K >= memoryWords {
			return "memory has 16 words"
		}
	case opJump:
		if uint64(i.K) >= uint64(rest) {
			return "jumps out of the program"
		}
	default:
		return i.checkOperation(rest)
	}
	return ""
}

// checkOperation validates arithmetic and conditional jumps, whose operand may be K or X.
func (i instruction) checkOperation(rest int) string {
	switch i.Code {
	case classALU | aluDiv:
		if i.K == 0 {
			return "divides by zero"
		}
	case classALU | aluLsh, classALU | aluRsh:
		if i.K >= 32 {
			return "shifts by 32 or more"
		}
	default:
		switch i.Code &^ operandX {
		case classALU | aluAdd, classALU | aluSub, classALU | aluMul, classALU | aluDiv, classALU | aluOr, classALU | aluAnd,
			classALU | aluXor, classALU | aluLsh, classALU | aluRsh:
		case jumpEqual, jumpGreater, jumpGreaterOrEqual, classJump | testSet:
			if int(i.JT) >= rest || int(i.JF) >= rest {
				return "jumps out of the program"
			}
		default:
			return "an instruction that seccomp does not know"
		}
	}
	return ""
}

// checkMemory refuses loads of memory words that were not stored on every path, as
// check_load_and_stores does. A set bit is a word that may be read; masks holds, for
// instructions that jumps lead to, what is stored on all of those jumps.
func (p Program) checkMemory() (int, string) {
	n := p.Len()
	masks := make([]uint16, n)
	for i := range masks {
		masks[i] = 0xffff
	}
	valid := uint16(0)
	for pc := range n {
		i := p.at(pc)
		valid &= masks[pc]
		switch {
		case i.Code == classStore || i.Code == classStoreX:
			valid |= 1 << i.K
		case i.Code == classLoad|modeMem || i.Code == classLoadX|modeMem:
			if valid&(1<<i.K) == 0 {
				return pc, "reads memory that may not have been written"
			}
		case i.Code == opJump:
			masks[pc+1+int(i.K)] &= valid
			valid = 0xffff
		case i.Code&7 == classJump:
			masks[pc+1+int(i.JT)] &= valid
			masks[pc+1+int(i.JF)] &= valid
			valid = 0xffff
		}
	}
	return 0, ""
}
