package seccomp

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// MaxInstructions is the most that a program may have: BPF_MAXINSNS of linux/bpf_common.h,
// which the kernel enforces. It also bounds the rules of a filter.
const MaxInstructions = 4096

// maxPairs bounds the sum over all rules of the names they have. Rules of equal checks share instructions, so it is larger.
const maxPairs = 1 << 16

// maxArgs bounds the checks of a rule: more than a range and a dozen single values for each argument is a mistake.
const maxArgs = 96

// Validate reports the first thing that is wrong with f, as an *Error that names the field, or
// nil. It finds unknown names, actions and operators, argument indexes above 5, checks and
// rules that can never match, and filters too large for either architecture. The zero Filter
// is valid. It does not judge whether f is wise.
func (f Filter) Validate() error {
	for _, a := range [...]Arch{AMD64, ARM64} {
		if _, err := f.Compile(a); err != nil {
			return err
		}
	}
	return nil
}

// check is Validate but for the size of the programs. It returns the names of each rule as places in the table.
func (f Filter) check() ([][]int16, error) {
	if !f.Default.canonical() {
		return nil, &Error{Field: "Default", Detail: f.Default.String(), Err: ErrInvalid}
	}
	if !f.Unknown.canonical() {
		return nil, &Error{Field: "Unknown", Detail: f.Unknown.String(), Err: ErrInvalid}
	}
	if len(f.Rules) > MaxInstructions {
		return nil, &Error{Field: "Rules", Detail: fmt.Sprintf("%d rules, at most %d", len(f.Rules), MaxInstructions), Err: ErrTooLarge}
	}
	pairs := 0
	for i, r := range f.Rules {
		if pairs += len(r.Names); pairs > maxPairs {
			return nil, &Error{Field: "Rules[" + strconv.Itoa(i) + "].Names", Detail: "too many names in all", Err: ErrTooLarge}
		}
	}
	places := make([][]int16, len(f.Rules))
	backing := make([]int16, 0, pairs)
	seen := newReach()
	for i, r := range f.Rules {
		start := len(backing)
		var err error
		if backing, err = r.check(i, backing); err != nil {
			return nil, err
		}
		places[i] = backing[start:]
		if err := seen.add(r, i, places[i]); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// check validates the rule of an index by itself, and adds to places where its names are in the table.
func (r Rule) check(index int, places []int16) ([]int16, error) {
	if len(r.Names) == 0 {
		return nil, r.wrong(index, ".Names", "no names", ErrInvalid)
	}
	for i, name := range r.Names {
		place := find(name)
		if place < 0 {
			detail := strconv.Quote(name)
			if near := closest(name); near != "" {
				detail += ", did you mean " + strconv.Quote(near) + "?"
			}
			return nil, r.wrong(index, fmt.Sprintf(".Names[%d]", i), detail, ErrUnknownSyscall)
		}
		places = append(places, int16(place))
	}
	if !r.Action.canonical() {
		return nil, r.wrong(index, ".Action", r.Action.String(), ErrInvalid)
	}
	if len(r.Args) > maxArgs {
		return nil, r.wrong(index, ".Args", fmt.Sprintf("%d checks", len(r.Args)), ErrTooLarge)
	}
	for i, a := range r.Args {
		if field, detail, err := a.check(); err != nil {
			return nil, r.wrong(index, fmt.Sprintf(".Args[%d]", i)+field, detail, err)
		}
	}
	if i, detail := contradiction(r.Args); detail != "" {
		return nil, r.wrong(index, fmt.Sprintf(".Args[%d]", i), detail, ErrUnreachable)
	}
	return places, nil
}

// wrong returns an error about a field of the rule of an index.
func (r Rule) wrong(index int, field, detail string, err error) error {
	return &Error{Field: "Rules[" + strconv.Itoa(index) + "]" + field, Detail: detail, Err: err}
}

// reach finds rules that come too late. A rule is remembered by its index and 1.
type reach struct {
	always  []int32            // by place in the table: the rule without argument checks
	checked map[reachKey]int32 // the rule with a set of argument checks
	argsIDs map[string]int     // numbers the sets
}

type reachKey struct {
	place int16
	args  int
}

func newReach() reach {
	return reach{make([]int32, len(table)), map[reachKey]int32{}, map[string]int{}}
}

// add takes in the next rule, or says that it comes too late.
func (s reach) add(r Rule, index int, places []int16) error {
	id := -1
	if len(r.Args) > 0 {
		key := argsKey(r.Args)
		if _, ok := s.argsIDs[key]; !ok {
			s.argsIDs[key] = len(s.argsIDs)
		}
		id = s.argsIDs[key]
	}
	for i, place := range places {
		earlier := s.always[place]
		if earlier == 0 && id >= 0 {
			earlier = s.checked[reachKey{place, id}]
		}
		if earlier != 0 {
			detail := fmt.Sprintf("%q is already decided by Rules[%d]", r.Names[i], earlier-1)
			return r.wrong(index, fmt.Sprintf(".Names[%d]", i), detail, ErrUnreachable)
		}
		if id >= 0 {
			s.checked[reachKey{place, id}] = int32(index) + 1
		} else {
			s.always[place] = int32(index) + 1
		}
	}
	return nil
}

// normal returns a with the two ways to write 32 bits made one.
func (a Arg) normal() Arg {
	if a.Width == 0 {
		a.Width = 32
	}
	return a
}

// argsKey returns a string that is equal for equal sets of checks, in whatever order, and "" for none.
func argsKey(args []Arg) string {
	keys := make([]string, len(args))
	for i, a := range args {
		a = a.normal()
		b := []byte{a.Index, a.Width, byte(a.Op)}
		keys[i] = string(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, a.Mask), a.Value))
	}
	slices.Sort(keys)
	return strings.Join(keys, "")
}

// sameArgs says whether two sets of checks are the same.
func sameArgs(a, b []Arg) bool { return len(a) == len(b) && argsKey(a) == argsKey(b) }

// check validates an argument check by itself. It returns the field that is wrong, what is wrong with it, and a sentinel.
func (a Arg) check() (field, detail string, err error) {
	if a.Index > 5 {
		return ".Index", fmt.Sprintf("%d, the last argument is 5", a.Index), ErrInvalid
	}
	if a.Width != 0 && a.Width != 32 && a.Width != 64 {
		return ".Width", fmt.Sprintf("%d is not 32 or 64", a.Width), ErrInvalid
	}
	if int(a.Op) >= len(opNames) {
		return ".Op", strconv.Itoa(int(a.Op)), ErrInvalid
	}
	if (a.Op == MaskedEqual) != (a.Mask != 0) {
		return ".Mask", "needed by masked==, and by no other operator", ErrInvalid
	}
	if !a.wide() && a.Mask>>32 != 0 {
		return ".Mask", fmt.Sprintf("%#x has more than 32 bits", a.Mask), ErrInvalid
	}
	if !a.wide() && a.Value>>32 != 0 {
		return ".Value", fmt.Sprintf("%#x has more than 32 bits", a.Value), ErrInvalid
	}
	lo, hi, ok := a.interval()
	if a.Op == MaskedEqual {
		ok = a.Value&^a.Mask == 0
	}
	if !ok || lo > hi {
		return ".Value", fmt.Sprintf("no argument is %s %#x", a.Op, a.Value), ErrUnreachable
	}
	return "", "", nil
}

// interval returns the smallest and largest argument that pass, and false if there are none. MaskedEqual and NotEqual do not narrow it.
func (a Arg) interval() (lo, hi uint64, ok bool) {
	top := uint64(1<<32 - 1)
	if a.wide() {
		top = 1<<64 - 1
	}
	switch a.Op {
	case Equal:
		return a.Value, a.Value, true
	case Less:
		return 0, a.Value - 1, a.Value > 0
	case LessOrEqual:
		return 0, a.Value, true
	case Greater:
		return a.Value + 1, top, a.Value < top
	case GreaterOrEqual:
		return a.Value, top, true
	}
	return 0, top, true
}

// contradiction finds two checks of one argument, at one width, that cannot both hold, and
// checks that are there twice. It returns the second and what is wrong with it, or "".
func contradiction(args []Arg) (int, string) {
	for i, a := range args {
		for j, b := range args[:i] {
			if a.Index != b.Index || a.wide() != b.wide() {
				continue
			}
			if a.normal() == b.normal() {
				return i, fmt.Sprintf("the same as Args[%d]", j)
			}
			if !compatible(a, b) {
				return i, fmt.Sprintf("contradicts Args[%d]", j)
			}
		}
	}
	return 0, ""
}

// compatible says whether some value passes both checks. It may say yes wrongly, for a mask against a range; it never says no wrongly.
func compatible(a, b Arg) bool {
	alo, ahi, _ := a.interval()
	blo, bhi, _ := b.interval()
	lo, hi := max(alo, blo), min(ahi, bhi)
	if lo > hi {
		return false
	}
	if lo == hi {
		return a.holds(lo) && b.holds(lo)
	}
	return a.Op != MaskedEqual || b.Op != MaskedEqual || (a.Value^b.Value)&a.Mask&b.Mask == 0
}
