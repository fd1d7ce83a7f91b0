package seccomp

import "slices"

// A program is assembled from its end to its start: a jump leads only forward, so its targets
// are there before it. That makes every offset known at once and long jumps a matter of one
// more instruction in between.

// label names an instruction by its distance from the end of the program, which stays as the program grows at its start.
type label int

const none label = -1

// jumpReach is how far a conditional jump may lead; its offsets have 8 bits. Less than 255, for up to two hops that come in between.
const jumpReach = 250

// assembler holds the instructions in reverse. nearest maps an instruction to its latest stand-in: a copy if it is a return, else a jump.
type assembler struct {
	code    []instruction
	returns map[uint32]label
	nearest map[label]label
}

func (s *assembler) push(i instruction) label {
	s.code = append(s.code, i)
	return label(len(s.code) - 1)
}

// distance is how many instructions the next one would skip to get to l.
func (s *assembler) distance(l label) int { return len(s.code) - int(l) - 1 }

// ret returns an instruction that ends the program with v.
func (s *assembler) ret(v uint32) label {
	if l, ok := s.returns[v]; ok {
		return l
	}
	if s.returns == nil {
		s.returns, s.nearest = map[uint32]label{}, map[label]label{}
	}
	s.returns[v] = s.push(instruction{Code: opReturn, K: v})
	return s.returns[v]
}

// near returns l, or a stand-in for it that a conditional jump can lead to.
func (s *assembler) near(l label) label {
	if s.distance(l) <= jumpReach {
		return l
	}
	if n, ok := s.nearest[l]; ok && s.distance(n) <= jumpReach {
		return n
	}
	s.nearest[l] = s.hop(l)
	return s.nearest[l]
}

// hop pushes a stand-in for l.
func (s *assembler) hop(l label) label {
	if s.code[l].Code == opReturn {
		return s.push(s.code[l])
	}
	return s.push(instruction{Code: opJump, K: uint32(s.distance(l))})
}

// jump pushes a comparison of the accumulator with k, unless both outcomes are the same.
func (s *assembler) jump(code uint16, k uint32, yes, no label) label {
	if yes == no {
		return yes
	}
	yes, no = s.near(yes), s.near(no)
	return s.push(instruction{Code: code, JT: uint8(s.distance(yes)), JF: uint8(s.distance(no)), K: k})
}

// before pushes an instruction that does not jump, to be followed by next.
func (s *assembler) before(i instruction, next label) label {
	if s.distance(next) != 0 {
		s.hop(next)
	}
	return s.push(i)
}

// load pushes the load of 32 bits of the call, at an offset of struct seccomp_data, into the accumulator.
func (s *assembler) load(offset uint32, next label) label {
	return s.before(instruction{Code: opLoad, K: offset}, next)
}

// tree pushes the search for a number, which is in the accumulator, and all that it leads to.
func (s *assembler) tree(segments []segment) label {
	if len(segments) == 1 {
		return s.fate(segments[0].fate)
	}
	if lone(segments) {
		within, around := s.fate(segments[1].fate), s.fate(segments[0].fate)
		return s.jump(jumpEqual, segments[1].start, within, around)
	}
	mid := len(segments) / 2
	upper := s.tree(segments[mid:])
	lower := s.tree(segments[:mid])
	return s.jump(jumpGreaterOrEqual, segments[mid].start, upper, lower)
}

// lone says whether segments are one number and its surroundings, which one comparison tells apart.
func lone(segments []segment) bool {
	return len(segments) == 3 && segments[0].fate == segments[2].fate && segments[2].start-segments[1].start == 1
}

// full says whether to stop: the program will be refused, wherever it leads. There is room for instructions that will be left out.
func (s *assembler) full() bool { return len(s.code) > 2*MaxInstructions }

// fate pushes what becomes of a call once its number is found. From here no path leads back to a search by number.
func (s *assembler) fate(f *fate) label {
	if len(f.rules) == 0 {
		return s.ret(f.end)
	}
	if f.label != none || s.full() {
		return max(f.label, 0)
	}
	otherwise := s.ret(f.end)
	for _, r := range slices.Backward(f.rules) {
		here := s.ret(r.Action.value())
		for _, a := range slices.Backward(r.Args) {
			here = s.check(a, here, otherwise)
		}
		otherwise = here
		if s.full() {
			break
		}
	}
	f.label = otherwise
	return otherwise
}

// check pushes an argument check.
func (s *assembler) check(a Arg, yes, no label) label {
	low := offsetArgs + 8*uint32(a.Index)
	high := low + 4 // both architectures are little-endian
	if !a.wide() {
		return s.compareWord(a.Op, low, uint32(a.Mask), uint32(a.Value), yes, no)
	}
	lowMask, highMask := uint32(a.Mask), uint32(a.Mask>>32)
	lowValue, highValue := uint32(a.Value), uint32(a.Value>>32)
	switch a.Op {
	case Equal:
		return s.compareWord(Equal, high, 0, highValue, s.compareWord(Equal, low, 0, lowValue, yes, no), no)
	case NotEqual:
		return s.compareWord(Equal, high, 0, highValue, s.compareWord(Equal, low, 0, lowValue, no, yes), yes)
	case MaskedEqual:
		if lowMask != 0 {
			yes = s.compareWord(MaskedEqual, low, lowMask, lowValue, yes, no)
		}
		if highMask != 0 {
			yes = s.compareWord(MaskedEqual, high, highMask, highValue, yes, no)
		}
		return yes
	}
	// An order: the high words decide unless they are equal.
	tie := s.compareWord(a.Op, low, 0, lowValue, yes, no)
	if a.Op == Less || a.Op == LessOrEqual {
		yes, no = no, yes // yes is now where a greater high word leads
	}
	return s.load(high, s.jump(jumpGreater, highValue, yes, s.jump(jumpEqual, highValue, tie, no)))
}

// compareWord pushes a comparison of 32 bits of the call.
func (s *assembler) compareWord(op Op, offset, mask, value uint32, yes, no label) label {
	if op == MaskedEqual {
		test := s.jump(jumpEqual, value, yes, no)
		return s.load(offset, s.before(instruction{Code: opAnd, K: mask}, test))
	}
	yes, no = s.loaded(offset, yes), s.loaded(offset, no)
	var test label
	switch op {
	case Equal:
		test = s.jump(jumpEqual, value, yes, s.settled(offset, value, no))
	case NotEqual:
		test = s.jump(jumpEqual, value, no, s.settled(offset, value, yes))
	case Less:
		test = s.jump(jumpGreaterOrEqual, value, no, yes)
	case LessOrEqual:
		test = s.jump(jumpGreater, value, no, yes)
	case Greater:
		test = s.jump(jumpGreater, value, yes, no)
	case GreaterOrEqual:
		test = s.jump(jumpGreaterOrEqual, value, yes, no)
	}
	return s.load(offset, test)
}

// loaded returns where to go on at l when the accumulator already holds the word at offset: past the load of that very word, if l is one.
func (s *assembler) loaded(offset uint32, l label) label {
	if i := s.code[l]; i.Code == opLoad && i.K == offset {
		return l - 1
	}
	return l
}

// settled returns where to go on at l when the accumulator holds the word at offset and is not value: past the tests for that very value.
func (s *assembler) settled(offset, value uint32, l label) label {
	for i := s.code[l]; i.Code == jumpEqual && i.K == value; i = s.code[l] {
		l = s.loaded(offset, l-1-label(i.JF))
	}
	return l
}

// program turns the instructions round and leaves out those that no way leads to, such as loads that all ways pass by.
func (s *assembler) program() Program {
	keep := s.live()
	position := make([]int, len(s.code)) // the place of an instruction, or of the next one that is kept, from the end
	kept := 0
	for l := range s.code {
		position[l] = kept
		if keep[l] {
			kept++
		}
	}
	code := make([]byte, 0, kept*instructionSize)
	for l, i := range slices.Backward(s.code) {
		if !keep[l] {
			continue
		}
		skip := func(n int) int { return position[l] - position[l-1-n] - 1 }
		switch {
		case i.Code == opJump:
			i.K = uint32(skip(int(i.K)))
		case i.Code&7 == classJump:
			i.JT, i.JF = uint8(skip(int(i.JT))), uint8(skip(int(i.JF)))
		}
		code = i.append(code)
	}
	return Program{string(code)}
}

// live returns which instructions some way leads to. The last one pushed is where the program starts.
func (s *assembler) live() []bool {
	live := make([]bool, len(s.code))
	live[len(live)-1] = true
	for l, i := range slices.Backward(s.code) {
		switch {
		case !live[l] || i.Code == opReturn:
		case i.Code == opJump:
			live[l-1-int(i.K)] = true
		case i.Code&7 == classJump:
			live[l-1-int(i.JT)], live[l-1-int(i.JF)] = true, true
		default:
			live[l-1] = true
		}
	}
	return live
}
