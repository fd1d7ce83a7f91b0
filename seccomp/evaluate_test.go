package seccomp

import (
	"errors"
	"strings"
	"testing"
)

// assembled returns the bytes of a program.
func assembled(code ...instruction) []byte {
	var b []byte
	for _, i := range code {
		b = i.append(b)
	}
	return b
}

// op is an instruction without jumps.
func op(code uint16, k uint32) instruction { return instruction{Code: code, K: k} }

const opReturnA = opReturn | returnA

// Each program is followed by one that returns errno 77 if a is the wanted result.
func TestAnInstructionDoesWhatTheKernelDoes(t *testing.T) {
	c := Call{Arch: AMD64, Nr: 7, IP: 0x1122334455667788, Args: [6]uint64{0x0123456789abcdef, 2, 3, 4, 5, 0xfedcba9876543210}}
	a := func(k uint32) instruction { return op(classLoad|modeImm, k) }
	x := func(k uint32) instruction { return op(classLoadX|modeImm, k) }
	load := func(offset uint32) instruction { return op(opLoad, offset) }
	for name, test := range map[string]struct {
		code []instruction
		want uint32
	}{
		"registers start at 0":          {[]instruction{}, 0},
		"the number":                    {[]instruction{load(0)}, 7},
		"the architecture":              {[]instruction{load(4)}, uint32(AMD64)},
		"the low half of the address":   {[]instruction{load(8)}, 0x55667788},
		"the high half of the address":  {[]instruction{load(12)}, 0x11223344},
		"the low half of the first":     {[]instruction{load(16)}, 0x89abcdef},
		"the high half of the first":    {[]instruction{load(20)}, 0x01234567},
		"the low half of the last":      {[]instruction{load(56)}, 0x76543210},
		"the high half of the last":     {[]instruction{load(60)}, 0xfedcba98},
		"the length":                    {[]instruction{op(classLoad|modeLen, 0)}, 64},
		"the length in x":               {[]instruction{op(classLoadX|modeLen, 0), op(classMisc|miscTXA, 0)}, 64},
		"memory from a":                 {[]instruction{a(9), op(classStore, 15), a(1), op(classLoad|modeMem, 15)}, 9},
		"memory from x":                 {[]instruction{x(9), op(classStoreX, 0), op(classLoad|modeMem, 0)}, 9},
		"memory to x":                   {[]instruction{a(9), op(classStore, 3), op(classLoadX|modeMem, 3), a(1), op(classMisc|miscTXA, 0)}, 9},
		"a to x and back":               {[]instruction{a(9), op(classMisc|miscTAX, 0), a(1), op(classMisc|miscTXA, 0)}, 9},
		"addition wraps":                {[]instruction{a(1<<32 - 1), op(classALU|aluAdd, 3)}, 2},
		"subtraction wraps":             {[]instruction{a(1), op(classALU|aluSub, 3)}, 1<<32 - 2},
		"multiplication wraps":          {[]instruction{a(0x80000001), op(classALU|aluMul, 6)}, 6},
		"division is unsigned":          {[]instruction{a(1<<32 - 2), op(classALU|aluDiv, 2)}, 0x7fffffff},
		"division by x":                 {[]instruction{a(7), x(2), op(classALU|aluDiv|operandX, 0)}, 3},
		"and":                           {[]instruction{a(0xf0f), op(classALU|aluAnd, 0x3c)}, 0xc},
		"or":                            {[]instruction{a(0xf0), x(0x0f), op(classALU|aluOr|operandX, 0)}, 0xff},
		"exclusive or":                  {[]instruction{a(0xff), op(classALU|aluXor, 0x0f)}, 0xf0},
		"shift left":                    {[]instruction{a(3), op(classALU|aluLsh, 31)}, 1 << 31},
		"shift right is unsigned":       {[]instruction{a(1 << 31), op(classALU|aluRsh, 31)}, 1},
		"shift by x looks at five bits": {[]instruction{a(1), x(33), op(classALU|aluLsh|operandX, 0)}, 2},
		"negation":                      {[]instruction{a(1), op(classALU|aluNeg, 0)}, 1<<32 - 1},
		"a jump":                        {[]instruction{a(1), op(opJump, 1), a(2), op(classALU|aluAdd, 4)}, 5},
		"equal":                         {[]instruction{a(5), {Code: jumpEqual, JF: 1, K: 5}, a(6)}, 6},
		"equal to x":                    {[]instruction{a(5), x(5), {Code: jumpEqual | operandX, JT: 1, K: 9}, a(6)}, 5},
		"greater is unsigned":           {[]instruction{a(1 << 31), {Code: jumpGreater, JF: 1, K: 1}, a(6)}, 6},
		"greater is not equal":          {[]instruction{a(1), {Code: jumpGreater, JT: 1, K: 1}, a(6)}, 6},
		"greater or equal":              {[]instruction{a(1), {Code: jumpGreaterOrEqual, JT: 1, K: 1}, a(6)}, 1},
		"a bit is set":                  {[]instruction{a(6), {Code: classJump | testSet, JT: 1, K: 3}, a(0)}, 6},
		"no bit is set":                 {[]instruction{a(4), {Code: classJump | testSet, JT: 1, K: 3}, a(0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			code := append(test.code, instruction{Code: jumpEqual, JF: 1, K: test.want}, op(opReturn, retErrno|77), op(opReturnA, 0))
			p, err := ParseProgram(assembled(code...))
			if err != nil {
				t.Fatal(err)
			}
			if got := verdict(t, p, c); got != Errno(77) {
				t.Errorf("not %#x, but %v\n%v", test.want, got, p)
			}
		})
	}
}

// bpf_convert_filter ends the program with 0 when X is 0 (net/core/filter.c).
func TestDivisionByZeroEndsTheProgramAndKills(t *testing.T) {
	p, err := ParseProgram(assembled(op(classLoad|modeImm, 7), op(classALU|aluDiv|operandX, 0), op(opReturn, uint32(Allow))))
	if err != nil {
		t.Fatal(err)
	}
	if got := verdict(t, p, Call{}); got != KillThread {
		t.Errorf("%v", got)
	}
}

func TestAProgramThatTheKernelWouldRefuseIsRefused(t *testing.T) {
	end := op(opReturn, 0)
	fill := func(n int) []instruction {
		code := make([]instruction, n)
		for i := range code {
			code[i] = end
		}
		return code
	}
	for name, b := range map[string][]byte{
		"nothing":                          nil,
		"half an instruction":              assembled(end)[:4],
		"a byte too many":                  append(assembled(end), 0),
		"more than 4096 instructions":      assembled(fill(MaxInstructions + 1)...),
		"no return at the end":             assembled(op(opLoad, 0)),
		"a jump at the end":                assembled(end, op(opJump, 0)),
		"a load past the call":             assembled(op(opLoad, 64), end),
		"a load that is not aligned":       assembled(op(opLoad, 2), end),
		"a load of two bytes":              assembled(op(0x28, 0), end),
		"a load by index":                  assembled(op(0x40, 0), end),
		"a load of the IP header's length": assembled(op(0xb1, 0), end),
		"a jump past the end":              assembled(op(opJump, 1), end),
		"a jump that wraps":                assembled(op(opJump, 1<<32-1), end),
		"a true branch past the end":       assembled(instruction{Code: jumpEqual, JT: 1}, end),
		"a false branch past the end":      assembled(instruction{Code: jumpEqual, JF: 1}, end),
		"division by zero":                 assembled(op(classALU|aluDiv, 0), end),
		"a remainder":                      assembled(op(0x94, 3), end),
		"a shift by 32":                    assembled(op(classALU|aluLsh, 32), end),
		"memory word 16":                   assembled(op(classStore, 16), end),
		"memory that was not written":      assembled(op(classLoad|modeMem, 0), end),
		"memory that one branch did not write": assembled(
			instruction{Code: jumpEqual, JF: 1}, op(classStore, 0), op(classLoad|modeMem, 0), end),
		"a return of x":       assembled(op(opReturn|operandX, 0)),
		"an unknown code":     assembled(op(0xffff, 0), end),
		"a high byte of code": assembled(op(0x100|opReturn, 0), end),
	} {
		if _, err := ParseProgram(b); !errors.Is(err, ErrProgram) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"4096 instructions": assembled(fill(MaxInstructions)...),
		"memory that both branches wrote": assembled(
			instruction{Code: jumpEqual, JF: 2}, op(classStore, 0), op(opJump, 1), op(classStoreX, 0), op(classLoad|modeMem, 0), end),
		"code that is never reached": assembled(op(opJump, 1), op(opLoad, 0), end),
	} {
		if _, err := ParseProgram(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheZeroProgramCannotBeEvaluatedOrLoaded(t *testing.T) {
	if _, err := (Program{}).Evaluate(Call{}); !errors.Is(err, ErrProgram) {
		t.Error(err)
	}
	if fd, err := (Program{}).Load(LoadOptions{}); !errors.Is(err, ErrProgram) || fd != -1 {
		t.Error(fd, err)
	}
}

func TestAListingNamesArchitectureSyscallsArgumentsAndActions(t *testing.T) {
	f := Filter{Rules: []Rule{
		{Names: []string{"openat"}, Action: Allow},
		{Names: []string{"ioctl"}, Action: Notify, Args: []Arg{{Index: 1, Op: MaskedEqual, Mask: 0xff, Value: 3}, {Index: 2, Width: 64, Op: Greater, Value: 5}}},
	}}
	got := mustCompile(t, f, ARM64).String()
	for _, want := range []string{
		"   0  a = arch\n", "; arm64\n", "return kill_process\n", "a = nr\n", "; openat\n", "low(args[1])", "a = a & 0xff", "high(args[2])",
		"if a > 0x5 goto", "return notify\n", "return allow\n", "return errno(EPERM)\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	every := assembled(op(classLoad|modeLen, 0), op(classStore, 1), op(classLoad|modeMem, 1), op(opLoad, 12), op(classLoadX|modeImm, 5), op(classStoreX, 2),
		op(classALU|aluNeg, 0), op(classALU|aluXor|operandX, 0), op(classMisc|miscTAX, 0), op(classMisc|miscTXA, 0), op(opJump, 0),
		instruction{Code: classJump | testSet | operandX}, op(opReturnA, 0))
	p, err := ParseProgram(every)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a = 64", "m[1] = a", "a = m[1]", "a = high(ip)", "x = 0x5", "m[2] = x", "a = -a", "a = a ^ x", "x = a", "a = x", "goto 11",
		"if a & x goto 12 else 12", "return a"} {
		if !strings.Contains(p.String(), "  "+want+"\n") {
			t.Errorf("%q is not in\n%s", want, p)
		}
	}
}
