package seccomp

// Evaluate runs p on a call as the kernel would, on any system, and returns what would become
// of the call: an Action that a rule may have, or one of SECCOMP_RET_TRACE if p was not
// compiled here. It fails, with an *Error that wraps ErrProgram, only for the zero Program.
//
// When several filters are loaded the kernel runs them all and the strictest result wins; Evaluate knows of one.
func (p Program) Evaluate(c Call) (Action, error) {
	a, _, err := p.run(c)
	return a, err
}

// run is Evaluate, and counts the instructions. Its rules are those of bpf_convert_filter
// (net/core/filter.c): 32-bit unsigned arithmetic that wraps, registers that start at 0,
// division by a zero X ends the program with 0, a shift by X looks at its low five bits.
func (p Program) run(c Call) (Action, int, error) {
	if p.Len() == 0 {
		return 0, 0, &Error{Field: "Program", Detail: "empty", Err: ErrProgram}
	}
	var m machine
	for pc, steps := 0, 1; ; pc, steps = pc+1, steps+1 {
		i := p.at(pc)
		switch i.Code & 7 {
		case classLoad:
			m.a = m.load(i, c)
		case classLoadX:
			m.x = m.load(i, c)
		case classStore:
			m.memory[i.K] = m.a
		case classStoreX:
			m.memory[i.K] = m.x
		case classALU:
			if i.Code == classALU|aluDiv|operandX && m.x == 0 {
				return actionOf(0), steps, nil
			}
			m.a = arithmetic(i.Code&0xf0, m.a, m.operand(i))
		case classJump:
			pc += m.jump(i)
		case classReturn:
			v := i.K
			if i.Code&returnA != 0 {
				v = m.a
			}
			return actionOf(v), steps, nil
		default:
			if i.Code == classMisc|miscTAX {
				m.x = m.a
			} else {
				m.a = m.x
			}
		}
	}
}

// machine is the state of a running program.
type machine struct {
	a, x   uint32
	memory [memoryWords]uint32
}

func (m *machine) load(i instruction, c Call) uint32 {
	switch i.Code & 0xe0 {
	case modeAbs:
		return c.word(i.K)
	case modeMem:
		return m.memory[i.K]
	case modeLen:
		return dataSize
	}
	return i.K
}

// operand returns the second operand of an arithmetic instruction or test.
func (m *machine) operand(i instruction) uint32 {
	if i.Code&operandX != 0 {
		return m.x
	}
	return i.K
}

func arithmetic(op uint16, a, b uint32) uint32 {
	switch op {
	case aluAdd:
		return a + b
	case aluSub:
		return a - b
	case aluMul:
		return a * b
	case aluDiv:
		return a / b
	case aluOr:
		return a | b
	case aluAnd:
		return a & b
	case aluLsh:
		return a << (b & 31)
	case aluRsh:
		return a >> (b & 31)
	case aluXor:
		return a ^ b
	}
	return -a
}

// jump returns how many instructions to skip.
func (m *machine) jump(i instruction) int {
	b, holds := m.operand(i), false
	switch i.Code &^ operandX {
	case opJump:
		return int(i.K)
	case jumpEqual:
		holds = m.a == b
	case jumpGreater:
		holds = m.a > b
	case jumpGreaterOrEqual:
		holds = m.a >= b
	default:
		holds = m.a&b != 0
	}
	if holds {
		return int(i.JT)
	}
	return int(i.JF)
}

// word returns 32 bits of the call at an offset of struct seccomp_data, on a little-endian machine.
func (c Call) word(offset uint32) uint32 {
	switch {
	case offset == offsetNr:
		return c.Nr
	case offset == offsetArch:
		return uint32(c.Arch)
	}
	v := c.IP
	if offset >= offsetArgs {
		v = c.Args[(offset-offsetArgs)/8]
	}
	return uint32(v >> (offset % 8 * 8))
}
