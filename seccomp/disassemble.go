package seccomp

import (
	"fmt"
	"strings"
)

// String returns the program as a person reads it: one instruction a line, numbered, jumps by
// the number of the instruction that they lead to, syscalls by name where the program compares
// numbers. Its form may change; nothing should parse it.
func (p Program) String() string {
	var b strings.Builder
	arch := Arch(0)
	held := p.held()
	for pc := range p.Len() {
		i := p.at(pc)
		line := i.text(pc)
		if i.Code == jumpEqual && held[pc] == offsetArch && Arch(i.K).known() {
			arch = Arch(i.K)
			line += "  ; " + arch.String()
		}
		if i.Code&7 == classJump && i.Code != opJump && held[pc] == offsetNr && arch != 0 {
			if name, ok := nameOf(arch, i.K); ok {
				line += "  ; " + name
			}
		}
		fmt.Fprintf(&b, "%4d  %s\n", pc, line)
	}
	return b.String()
}

// held returns for every instruction which word of the call, by its offset, the accumulator
// holds when the program gets there: -1 if that depends on the way or is none, -2 if no way
// leads there.
func (p Program) held() []int {
	held := make([]int, p.Len())
	for pc := range held {
		held[pc] = -2
	}
	flow := func(to, word int) {
		if to < len(held) && held[to] != word {
			if held[to] != -2 {
				word = -1
			}
			held[to] = word
		}
	}
	flow(0, -1)
	for pc := range held {
		i, word := p.at(pc), held[pc]
		switch {
		case i.Code == opLoad:
			word = int(i.K)
		case i.Code&7 == classLoad, i.Code&7 == classALU, i.Code == classMisc|miscTXA:
			word = -1
		case i.Code == opJump:
			flow(pc+1+int(i.K), word)
			continue
		case i.Code&7 == classJump:
			flow(pc+1+int(i.JT), word)
			flow(pc+1+int(i.JF), word)
			continue
		case i.Code&7 == classReturn:
			continue
		}
		flow(pc+1, word)
	}
	return held
}

var aluSigns = [...]string{"+", "-", "*", "/", "|", "&", "<<", ">>", "", "", "^"} // by operation, in steps of 16

// text returns i, which stands at pc, without its comment.
func (i instruction) text(pc int) string {
	operand := fmt.Sprintf("%#x", i.K)
	if i.Code&operandX != 0 {
		operand = "x"
	}
	switch i.Code & 7 {
	case classLoad:
		return "a = " + i.source()
	case classLoadX:
		return "x = " + i.source()
	case classStore:
		return fmt.Sprintf("m[%d] = a", i.K)
	case classStoreX:
		return fmt.Sprintf("m[%d] = x", i.K)
	case classALU:
		if i.Code&0xf0 == aluNeg {
			return "a = -a"
		}
		return fmt.Sprintf("a = a %s %s", aluSigns[i.Code&0xf0>>4], operand)
	case classJump:
		if i.Code == opJump {
			return fmt.Sprintf("goto %d", pc+1+int(i.K))
		}
		test := map[uint16]string{jumpEqual: "==", jumpGreater: ">", jumpGreaterOrEqual: ">=", classJump | testSet: "&"}[i.Code&^operandX]
		return fmt.Sprintf("if a %s %s goto %d else %d", test, operand, pc+1+int(i.JT), pc+1+int(i.JF))
	case classReturn:
		if i.Code&returnA != 0 {
			return "return a"
		}
		return "return " + actionOf(i.K).String()
	}
	if i.Code == classMisc|miscTAX {
		return "x = a"
	}
	return "a = x"
}

// source returns what a load reads.
func (i instruction) source() string {
	switch i.Code & 0xe0 {
	case modeMem:
		return fmt.Sprintf("m[%d]", i.K)
	case modeLen:
		return "64"
	case modeImm:
		return fmt.Sprintf("%#x", i.K)
	}
	switch i.K {
	case offsetNr:
		return "nr"
	case offsetArch:
		return "arch"
	case offsetIP, offsetIP + 4:
		return [...]string{"low(ip)", "high(ip)"}[(i.K-offsetIP)/4]
	}
	return fmt.Sprintf("%s(args[%d])", [...]string{"low", "high"}[i.K/4%2], (i.K-offsetArgs)/8)
}
