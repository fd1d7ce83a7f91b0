package seccomp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTheFirstInstructionLoadsTheArchitectureAndAForeignOneIsKilled(t *testing.T) {
	foreign := []Arch{0, 0x40000003 /* i386 */, 0x40000028 /* arm */, 0x80000016 /* s390x */, 0xC00000F3 /* riscv64 */, ^Arch(0)}
	for name, f := range map[string]Filter{"default": Default(), "off": Off(), "zero": {}, "log": {Default: Log}} {
		for i, a := range arches {
			p := mustCompile(t, f, a)
			if got := p.at(0); got != (instruction{Code: opLoad, K: offsetArch}) {
				t.Errorf("%s, %v: the first instruction is %+v", name, a, got)
			}
			for _, other := range append(foreign, arches[1-i]) {
				for _, nr := range []uint32{0, 1, 39, 1 << 30, 1<<32 - 1} {
					if got := verdict(t, p, Call{Arch: other, Nr: nr}); got != KillProcess {
						t.Errorf("%s for %v: call %d of %v: %v", name, a, nr, other, got)
					}
				}
			}
		}
	}
}

func TestAnX32NumberIsRefusedWhateverTheFilterSays(t *testing.T) {
	for name, f := range map[string]Filter{"default": Default(), "off": Off(), "allow": {Default: Allow, Unknown: Allow}} {
		p := mustCompile(t, f, AMD64)
		for _, nr := range []uint32{x32Bit, x32Bit + 1, x32Bit | 41, x32Bit + 512, 1<<31 | 1, 1<<32 - 1} {
			if got := verdict(t, p, Call{Arch: AMD64, Nr: nr}); got != Errno(ENOSYS) {
				t.Errorf("%s: %#x: %v", name, nr, got)
			}
		}
		if got := verdict(t, p, mustCall(t, AMD64, "read")); got != Allow {
			t.Errorf("%s: read: %v", name, got)
		}
	}
}

func TestTheFirstRuleThatHoldsDecidesAndElseTheDefault(t *testing.T) {
	f := Filter{Default: Trap, Unknown: Log, Rules: []Rule{
		{Names: []string{"ioctl"}, Action: KillThread, Args: []Arg{{Value: 1}}},
		{Names: []string{"ioctl"}, Action: Errno(7), Args: []Arg{{Op: Less, Value: 3}}},
		{Names: []string{"ioctl", "read"}, Action: Allow},
		{Names: []string{"write"}, Action: Notify, Args: []Arg{{Value: 1}, {Index: 5, Width: 64, Op: Greater, Value: 1 << 40}}},
	}}
	for _, a := range arches {
		p := mustCompile(t, f, a)
		for name, test := range map[string]struct {
			call Call
			want Action
		}{
			"the first rule":           {mustCall(t, a, "ioctl", 1), KillThread},
			"the second rule":          {mustCall(t, a, "ioctl", 2), Errno(7)},
			"the third rule":           {mustCall(t, a, "ioctl", 3), Allow},
			"another name of the rule": {mustCall(t, a, "read", 1), Allow},
			"all checks hold":          {mustCall(t, a, "write", 1, 0, 0, 0, 0, 1<<40+1), Notify},
			"the first does not":       {mustCall(t, a, "write", 0, 0, 0, 0, 0, 1<<40+1), Trap},
			"the second does not":      {mustCall(t, a, "write", 1, 0, 0, 0, 0, 1<<40), Trap},
			"no rule":                  {mustCall(t, a, "close"), Trap},
			"a number without a name":  {Call{Arch: a, Nr: 5000}, Log},
			"a number in a gap":        {Call{Arch: a, Nr: 400}, Log},
		} {
			if got := verdict(t, p, test.call); got != test.want {
				t.Errorf("%v, %s: %v, want %v", a, name, got, test.want)
			}
			if got, _ := f.Decide(test.call); got != test.want {
				t.Errorf("%v, %s: Decide: %v, want %v", a, name, got, test.want)
			}
		}
	}
}

// Each operator at each width, on the values around the edges of the words.
func TestEveryOperatorComparesUnsignedAtItsWidth(t *testing.T) {
	edges := []uint64{0, 1, 2, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 1 << 32, 1<<32 + 1, 1<<33 - 1, 1 << 63, 1<<64 - 2, 1<<64 - 1}
	for _, width := range []uint8{0, 32, 64} {
		for op := Equal; op <= MaskedEqual; op++ {
			for _, value := range edges {
				arg := Arg{Index: 3, Width: width, Op: op, Value: value}
				if op == MaskedEqual {
					arg.Mask = value | 0x80000001
				}
				f := Filter{Rules: []Rule{{Names: []string{"futex"}, Action: Allow, Args: []Arg{arg}}}}
				if f.Validate() != nil {
					continue // more than the width, or never
				}
				p := mustCompile(t, f, ARM64)
				for _, v := range append(edges, value-1, value+1) {
					c := mustCall(t, ARM64, "futex", 9, 9, 9, v, 9, 9)
					want := Errno(EPERM)
					if compare(arg, v) {
						want = Allow
					}
					if got := verdict(t, p, c); got != want {
						t.Fatalf("width %d: %#x %v %#x (mask %#x): %v", width, v, op, value, arg.Mask, got)
					}
				}
			}
		}
	}
}

// compare is written apart from Arg.holds.
func compare(a Arg, v uint64) bool {
	if a.Width != 64 {
		v = uint64(uint32(v))
	}
	less, equal := v < a.Value, v == a.Value
	return [...]bool{equal, !equal, less, less || equal, !less && !equal, !less, v&a.Mask == a.Value}[a.Op]
}

// A filter with more code behind one syscall than a jump's 8 bits reach, at every place in the tree.
func TestJumpsFartherThan255InstructionsLeadWhereTheyShould(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, names := range [][]string{{"read"}, {"futex"}, {"mseal"}, {"io_setup", "read"}, {"read", "write", "futex", "openat", "ioctl", "mseal"}} {
		f := Filter{Default: Errno(2)}
		for i, name := range names {
			for j := range uint64(2000 / len(names) / 3) {
				f.Rules = append(f.Rules, Rule{Names: []string{name}, Action: Errno(uint16(3 + (j+uint64(i))%900)),
					Args: []Arg{{Index: uint8(j % 6), Width: 64, Value: j}}})
			}
		}
		for _, a := range arches {
			p := mustCompile(t, f, a)
			if p.Len() < 1000 {
				t.Errorf("%d instructions test nothing", p.Len())
			}
			if _, err := ParseProgram(p.Bytes()); err != nil {
				t.Error(err)
			}
			for range 3000 {
				c := mustCall(t, a, append(names, "close")[r.IntN(len(names)+1)])
				for i := range c.Args {
					c.Args[i] = r.Uint64N(700)
				}
				want, _ := f.Decide(c)
				if got := verdict(t, p, c); got != want {
					t.Fatalf("%v: %v, want %v", c, got, want)
				}
			}
		}
	}
}

func TestTheSearchIsBalancedAndNeighboursOfEqualFateAreOneLeaf(t *testing.T) {
	for _, a := range arches {
		p := mustCompile(t, Default(), a)
		if p.Len() > 200 {
			t.Errorf("%v: %d instructions", a, p.Len())
		}
		for _, e := range table {
			nr, ok := e.number(a)
			if !ok {
				continue
			}
			_, steps, err := p.run(Call{Arch: a, Nr: nr})
			if limit := 32; err != nil || steps > limit {
				t.Errorf("%v %s: %d instructions, %v", a, e.name, steps, err)
			}
		}
	}
	all := make([]string, 0, len(table))
	for _, e := range table {
		all = append(all, e.name)
	}
	f := Filter{Default: Errno(1), Unknown: Errno(1), Rules: []Rule{{Names: all, Action: Errno(1), Reason: "all alike"}}}
	if n := mustCompile(t, f, ARM64).Len(); n != 5 {
		t.Errorf("one fate takes %d instructions", n)
	}
}

// Linux decides calls that are always allowed from a bitmap, if it can follow the program
// knowing number and architecture alone (seccomp_is_const_allow in kernel/seccomp.c).
func TestACallThatIsAlwaysAllowedLooksAtNoArgument(t *testing.T) {
	for _, a := range arches {
		p := mustCompile(t, Default(), a)
		for _, name := range []string{"read", "write", "openat", "close", "futex", "mmap", "newfstatat", "getpid", "execve"} {
			c := mustCall(t, a, name)
			for pc := 0; p.at(pc).Code != opReturn; {
				i := p.at(pc)
				pc++
				if i.Code == opLoad && i.K >= offsetIP {
					t.Errorf("%v %s: instruction %d loads offset %d", a, name, pc-1, i.K)
				}
				if i.Code&7 == classJump {
					m := machine{a: c.Nr}
					if held := p.held()[pc-1]; held == offsetArch {
						m.a = uint32(a)
					}
					pc += m.jump(i)
				}
			}
		}
	}
}

func TestANameThatOnlyTheOtherArchitectureHasIsPassedOver(t *testing.T) {
	f := Filter{Default: Trap, Rules: []Rule{{Names: []string{"open", "openat"}, Action: Allow}}}
	if got := verdict(t, mustCompile(t, f, AMD64), mustCall(t, AMD64, "open")); got != Allow {
		t.Errorf("open on amd64: %v", got)
	}
	p := mustCompile(t, f, ARM64)
	for nr := range uint32(500) {
		want := Trap
		if nr == 56 { // openat
			want = Allow
		}
		if got := verdict(t, p, Call{Arch: ARM64, Nr: nr}); got != want {
			t.Errorf("%d on arm64: %v", nr, got)
		}
	}
}

func TestAnArchitectureWithoutATableIsAnError(t *testing.T) {
	for _, a := range []Arch{0, 0x40000003, 12345} {
		if _, err := Default().Compile(a); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", a, err)
		}
		if _, err := NewCall(a, "read"); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%v: %v", a, err)
		}
	}
}

func TestCompilingIsRepeatable(t *testing.T) {
	for _, a := range arches {
		want := mustCompile(t, Default(), a)
		for range 20 {
			if got := mustCompile(t, Default(), a); got != want {
				t.Fatalf("%v: another program", a)
			}
		}
	}
}

func TestAProgramCannotBeChangedThroughWhatItReturns(t *testing.T) {
	p := mustCompile(t, Default(), AMD64)
	before := fmt.Sprint(p)
	clear(p.Bytes())
	if fmt.Sprint(p) != before {
		t.Error("it changed")
	}
	b := p.Bytes()
	q, err := ParseProgram(b)
	if err != nil || q != p {
		t.Fatalf("parsing gives another program: %v", err)
	}
	clear(b)
	if q != p || !slices.Equal(q.Bytes(), p.Bytes()) {
		t.Error("the parsed one changed")
	}
}
