package seccomp

import (
	"encoding/binary"
	"fmt"
)

// Compile turns f into a program for one architecture; it is the same on every system. Its
// errors are those of Validate, and one that wraps errors.ErrUnsupported for an architecture
// other than AMD64 and ARM64.
//
// The program first loads the architecture and kills the process of a foreign one: 32-bit
// calls made by int 0x80 on amd64 arrive as such. On amd64 the x32 numbers fail with ENOSYS,
// as on a kernel built without x32, whatever the rules say. Then it searches the syscall's
// number in a balanced tree, in which neighbours of equal fate are one leaf, and only at the
// leaf it looks at arguments: from there no path leads back into the search, so an argument is
// never taken for a number. Where a call is always allowed the program reads number and
// architecture alone, so that Linux 5.11 and later decide it from a bitmap without running the
// program (kernel commit 8e01b51a31a1).
func (f Filter) Compile(a Arch) (Program, error) {
	if !a.known() {
		return Program{}, &Error{Field: "Arch", Detail: a.String(), Err: errUnsupportedArch}
	}
	places, err := f.check()
	if err != nil {
		return Program{}, err
	}
	var s assembler
	root := s.tree(f.segments(a, places))
	number := s.load(offsetNr, root)
	kill := s.ret(KillProcess.value())
	s.load(offsetArch, s.jump(jumpEqual, uint32(a), number, kill))
	program := s.program()
	if s.full() || program.Len() > MaxInstructions {
		detail := fmt.Sprintf("more than %d instructions for %s", MaxInstructions, a)
		return Program{}, &Error{Field: "Rules", Detail: detail, Err: ErrTooLarge}
	}
	return program, nil
}

// segment is a run of syscall numbers of one fate, up to the start of the next segment.
type segment struct {
	start uint32
	fate  *fate
}

// fate is what becomes of a syscall: the rules with argument checks in order, then an unconditional end.
type fate struct {
	rules []*Rule
	end   uint32 // the program's result
	label label  // where the fate's instructions are, once there are any
}

// segments returns the fates of all 2^32 numbers in order. places has the names of each rule, as check returns them.
func (f Filter) segments(a Arch, places [][]int16) []segment {
	rules := f.rulesByPlace(places)
	byNumber := placesByNumber(a)
	fates := fateSet{}
	unknown := fates.of(nil, f.unknown())
	out := make([]segment, 0, 128)
	add := func(start uint32, ft *fate) {
		if len(out) == 0 || out[len(out)-1].fate != ft {
			out = append(out, segment{start, ft})
		}
	}
	for n, place := range byNumber {
		if place == 0 {
			add(uint32(n), unknown)
		} else {
			add(uint32(n), fates.of(rules[place-1], f.Default))
		}
	}
	add(uint32(len(byNumber)), unknown)
	if a == AMD64 {
		add(x32Bit, fates.of(nil, Errno(ENOSYS)))
	}
	return out
}

// placesByNumber returns where in the table each syscall number is, counted from 1, or 0.
func placesByNumber(a Arch) []int16 {
	out := make([]int16, 0, 512)
	for i, e := range table {
		n, ok := e.number(a)
		if !ok {
			continue
		}
		if missing := int(n) + 1 - len(out); missing > 0 {
			out = append(out, make([]int16, missing)...)
		}
		out[n] = int16(i) + 1
	}
	return out
}

// rulesByPlace returns for every place in the table the rules that name it, in order.
func (f Filter) rulesByPlace(places [][]int16) [][]*Rule {
	counts := make([]int, len(table))
	total := 0
	for _, ps := range places {
		for _, p := range ps {
			counts[p]++
		}
		total += len(ps)
	}
	out := make([][]*Rule, len(table))
	backing := make([]*Rule, total)
	for p, n := range counts {
		out[p], backing = backing[:0:n], backing[n:]
	}
	for i, ps := range places {
		for _, p := range ps {
			out[p] = append(out[p], &f.Rules[i])
		}
	}
	return out
}

// fateSet holds each fate once, so that syscalls of equal fate share instructions. Its keys are only compared.
type fateSet map[string]*fate

// of returns the fate of a syscall that rules name and other decides if they do not.
func (s fateSet) of(rules []*Rule, other Action) *fate {
	end := other.value()
	if n := len(rules); n > 0 && len(rules[n-1].Args) == 0 {
		rules, end = rules[:n-1], rules[n-1].Action.value()
	}
	for n := len(rules); n > 0 && rules[n-1].Action.value() == end; n-- {
		rules = rules[:n-1] // what comes after gives the same
	}
	var buffer [64]byte
	key := binary.LittleEndian.AppendUint32(buffer[:0], end)
	for _, r := range rules {
		args := argsKey(r.Args)
		key = binary.LittleEndian.AppendUint32(key, r.Action.value())
		key = binary.LittleEndian.AppendUint32(key, uint32(len(args)))
		key = append(key, args...)
	}
	ft, ok := s[string(key)]
	if !ok {
		ft = &fate{rules: rules, end: end, label: none}
		s[string(key)] = ft
	}
	return ft
}
