package seccomp

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever ParseProgram accepts runs to its end on any call, prints, and keeps its bytes.
func FuzzParseProgram(f *testing.F) {
	for _, a := range arches {
		p, err := Strict().Compile(a)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p.Bytes(), uint32(a), uint32(1), uint64(2))
	}
	f.Add(assembled(op(classStore, 3), op(classLoad|modeMem, 3), op(classALU|aluDiv|operandX, 0), op(opReturnA, 0)), uint32(0), uint32(0), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, arch, nr uint32, arg uint64) {
		p, err := ParseProgram(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, ErrProgram) {
				t.Fatalf("%v", err)
			}
			return
		}
		if string(p.Bytes()) != string(b) {
			t.Fatal("the bytes changed")
		}
		_ = p.String()
		c := Call{Arch: Arch(arch), Nr: nr, Args: [6]uint64{arg, arg, arg, arg, arg, arg}, IP: arg}
		if _, steps, err := p.run(c); err != nil || steps > p.Len() {
			t.Fatalf("%d of %d instructions, %v", steps, p.Len(), err)
		}
	})
}

// reader makes values of bytes; when they run out it makes zeros.
type reader []byte

func (r *reader) byte() byte {
	if len(*r) == 0 {
		return 0
	}
	b := (*r)[0]
	*r = (*r)[1:]
	return b
}

// value is a number near an edge of a word.
func (r *reader) value() uint64 {
	b := r.byte()
	return [...]uint64{0, 1 << 31, 1 << 32, 1<<32 | 1<<31, 1 << 63, 0x5412, 1 << 33, 1<<64 - 4}[b%8] + uint64(b>>5)
}

// filter makes a filter of about as many rules as there are bytes for; it may be invalid.
func (r *reader) filter() Filter {
	action := func() Action {
		return [...]Action{0, Allow, Log, Notify, Trap, KillThread, KillProcess, Errno(ENOSYS), Errno(uint16(r.byte()))}[r.byte()%9]
	}
	f := Filter{Default: action(), Unknown: action()}
	for len(*r) > 0 && len(f.Rules) < 300 {
		rule := Rule{Action: action()}
		for range 1 + r.byte()%5 {
			rule.Names = append(rule.Names, table[(int(r.byte())*3+int(r.byte()%4))%len(table)].name)
		}
		for range r.byte() % 4 {
			a := Arg{Index: r.byte() % 6, Width: r.byte() % 2 * 64, Op: Op(r.byte() % 7), Value: r.value()}
			if a.Op == MaskedEqual {
				a.Mask = r.value() | 1
				a.Value &= a.Mask
			}
			if !a.wide() {
				a.Mask, a.Value = uint64(uint32(a.Mask)), uint64(uint32(a.Value))
			}
			rule.Args = append(rule.Args, a)
		}
		f.Rules = append(f.Rules, rule)
	}
	return f
}

// A compiled program does to every syscall what the filter's rules, read one by one, say.
func FuzzCompileVersusNaive(f *testing.F) {
	f.Add([]byte("a filter"), []byte("calls"))
	long := make([]byte, 3000)
	for i := range long {
		long[i] = byte(i * i / 7)
	}
	f.Add(long, long[500:800])
	f.Fuzz(func(t *testing.T, shape, calls []byte) {
		r := reader(shape)
		filter := Filter{Default: Errno(99), Unknown: Errno(98)}
		seen := newReach()
		for i, rule := range r.filter().Rules { // without those that are wrong
			places, err := rule.check(i, nil)
			if err == nil && seen.add(rule, i, places) == nil {
				filter.Rules = append(filter.Rules, rule)
			}
		}
		for _, a := range arches {
			p, err := filter.Compile(a)
			if err != nil {
				if !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
				return
			}
			if _, err := ParseProgram(p.Bytes()); err != nil {
				t.Fatal(err)
			}
			args := reader(calls)
			for nr := range uint32(480) {
				c := Call{Arch: a, Nr: nr}
				for i := range c.Args {
					c.Args[i] = args.value()
				}
				if nr%97 == 0 {
					args = reader(binary.LittleEndian.AppendUint32(calls, nr))
				}
				want, _ := filter.Decide(c)
				if got, err := p.Evaluate(c); got != want || err != nil {
					t.Fatalf("%v: %v, %v; want %v\n%+v\n%v", c, got, err, want, filter, p)
				}
			}
		}
	})
}

// Whatever is read as a filter is valid and reads the same once written.
func FuzzFilterJSON(f *testing.F) {
	for _, profile := range profiles {
		b, err := json.Marshal(profile())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"rules":[{"names":["ioctl"],"args":[{"index":1,"width":64,"op":"masked==","mask":7,"value":3}],"reason":"\u00e9"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var filter Filter
		if err := json.Unmarshal(b, &filter); err != nil {
			return
		}
		if err := filter.Validate(); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(filter)
		if err != nil {
			t.Fatal(err)
		}
		var back Filter
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		again, err := json.Marshal(back)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%v\n%s", err, cmp.Diff(string(out), string(again)))
		}
	})
}
