package seccomp

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func rule(args []Arg, names ...string) Rule { return Rule{Names: names, Action: Allow, Args: args} }

func TestAWrongFilterIsRefusedAndTheErrorNamesTheField(t *testing.T) {
	args := func(a ...Arg) Filter { return Filter{Rules: []Rule{rule(a, "ioctl")}} }
	for name, test := range map[string]struct {
		filter Filter
		field  string
		err    error
	}{
		"an unknown syscall":          {Filter{Rules: []Rule{rule(nil, "read"), rule(nil, "write", "opne")}}, "Rules[1].Names[1]", ErrUnknownSyscall},
		"an empty name":               {Filter{Rules: []Rule{rule(nil, "")}}, "Rules[0].Names[0]", ErrUnknownSyscall},
		"a name with a NUL":           {Filter{Rules: []Rule{rule(nil, "read\x00")}}, "Rules[0].Names[0]", ErrUnknownSyscall},
		"a 32-bit syscall":            {Filter{Rules: []Rule{rule(nil, "socketcall")}}, "Rules[0].Names[0]", ErrUnknownSyscall},
		"no names":                    {Filter{Rules: []Rule{{Action: Allow}}}, "Rules[0].Names", ErrInvalid},
		"an action that is none":      {Filter{Rules: []Rule{{Names: []string{"read"}, Action: 7}}}, "Rules[0].Action", ErrInvalid},
		"a default that is none":      {Filter{Default: 0x7fff0001}, "Default", ErrInvalid},
		"an unknown that is none":     {Filter{Unknown: 3 << 16 << 4}, "Unknown", ErrInvalid},
		"a seventh argument":          {args(Arg{Index: 6}), "Rules[0].Args[0].Index", ErrInvalid},
		"a width of 16":               {args(Arg{Width: 16}), "Rules[0].Args[0].Width", ErrInvalid},
		"an operator that is none":    {args(Arg{Op: 7, Value: 1}), "Rules[0].Args[0].Op", ErrInvalid},
		"a mask with ==":              {args(Arg{Mask: 1}), "Rules[0].Args[0].Mask", ErrInvalid},
		"masked== without a mask":     {args(Arg{Op: MaskedEqual}), "Rules[0].Args[0].Mask", ErrInvalid},
		"a 64-bit mask at width 32":   {args(Arg{Op: MaskedEqual, Mask: 1 << 32}), "Rules[0].Args[0].Mask", ErrInvalid},
		"a 64-bit value at width 32":  {args(Arg{Value: 1 << 32}), "Rules[0].Args[0].Value", ErrInvalid},
		"a value outside its mask":    {args(Arg{Op: MaskedEqual, Mask: 2, Value: 3}), "Rules[0].Args[0].Value", ErrUnreachable},
		"less than nothing":           {args(Arg{Op: Less}), "Rules[0].Args[0].Value", ErrUnreachable},
		"more than 32 bits hold":      {args(Arg{Op: Greater, Value: 1<<32 - 1}), "Rules[0].Args[0].Value", ErrUnreachable},
		"more than 64 bits hold":      {args(Arg{Op: Greater, Width: 64, Value: 1<<64 - 1}), "Rules[0].Args[0].Value", ErrUnreachable},
		"one argument, two values":    {args(Arg{Value: 1}, Arg{Value: 2}), "Rules[0].Args[1]", ErrUnreachable},
		"a value outside a range":     {args(Arg{Op: Less, Value: 5}, Arg{Index: 1}, Arg{Value: 5}), "Rules[0].Args[2]", ErrUnreachable},
		"equal and not equal":         {args(Arg{Value: 5}, Arg{Op: NotEqual, Value: 5}), "Rules[0].Args[1]", ErrUnreachable},
		"two masks that disagree":     {args(Arg{Op: MaskedEqual, Mask: 3, Value: 1}, Arg{Op: MaskedEqual, Mask: 6, Value: 2}), "Rules[0].Args[1]", ErrUnreachable},
		"a check that is there twice": {args(Arg{Value: 5}, Arg{Value: 5, Width: 32}), "Rules[0].Args[1]", ErrUnreachable},
		"a name twice in a rule":      {Filter{Rules: []Rule{rule(nil, "read", "read")}}, "Rules[0].Names[1]", ErrUnreachable},
		"a rule twice":                {Filter{Rules: []Rule{rule(nil, "read"), rule(nil, "read")}}, "Rules[1].Names[0]", ErrUnreachable},
		"a contradiction of an earlier rule": {
			Filter{Rules: []Rule{rule(nil, "read"), {Names: []string{"write", "read"}}}}, "Rules[1].Names[1]", ErrUnreachable},
		"the same checks in another order": {
			Filter{Rules: []Rule{rule([]Arg{{Value: 1}, {Index: 1}}, "read"), rule([]Arg{{Index: 1, Width: 32}, {Value: 1}}, "read")}},
			"Rules[1].Names[0]", ErrUnreachable},
		"a rule behind one that takes all": {Filter{Rules: []Rule{rule(nil, "read"), rule([]Arg{{Value: 1}}, "read")}}, "Rules[1].Names[0]", ErrUnreachable},
		"too many rules":                   {Filter{Rules: make([]Rule, MaxInstructions+1)}, "Rules", ErrTooLarge},
		"too many names":                   {Filter{Rules: []Rule{{Names: slices.Repeat([]string{"read"}, maxPairs+1)}}}, "Rules[0].Names", ErrTooLarge},
		"too many checks":                  {args(make([]Arg, maxArgs+1)...), "Rules[0].Args", ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.filter.Validate()
			var e *Error
			if !errors.As(err, &e) || e.Field != test.field || !errors.Is(err, test.err) {
				t.Fatalf("%v; want %s: %v", err, test.field, test.err)
			}
			if _, err := test.filter.Compile(ARM64); err == nil {
				t.Error("it compiles")
			}
		})
	}
}

func TestAnUnknownSyscallsErrorSuggestsTheNearestName(t *testing.T) {
	err := Filter{Rules: []Rule{rule(nil, "opne")}}.Validate()
	want := `seccomp: Rules[0].Names[0]: unknown syscall: "opne", did you mean "open"?`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestAFilterThatDoesNotFitIsRefusedForEitherArchitecture(t *testing.T) {
	var f Filter
	for i := range uint64(2100) {
		f.Rules = append(f.Rules, rule([]Arg{{Index: 0, Value: i}, {Index: 1, Value: i}}, "ioctl"))
	}
	for _, a := range arches {
		if _, err := f.Compile(a); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: %v", a, err)
		}
	}
	f.Rules = f.Rules[:500]
	if err := f.Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatIsUnusualButHoldsIsAccepted(t *testing.T) {
	for name, f := range map[string]Filter{
		"the zero filter":             {},
		"a syscall of one arch alone": {Rules: []Rule{rule(nil, "open", "fork", "arch_prctl")}},
		"a range of two checks":       {Rules: []Rule{rule([]Arg{{Op: Greater, Value: 1}, {Op: Less, Value: 5}}, "ioctl")}},
		"a mask within a range":       {Rules: []Rule{rule([]Arg{{Op: MaskedEqual, Mask: 1, Value: 1}, {Op: Less, Value: 5}}, "ioctl")}},
		"both halves of an argument":  {Rules: []Rule{rule([]Arg{{Value: 1}, {Width: 64, Value: 1}}, "ioctl")}},
		"pretended success":           {Rules: []Rule{{Names: []string{"sync"}, Action: Errno(0)}}},
		"every action":                {Default: Trap, Unknown: KillThread, Rules: []Rule{{Names: []string{"read"}, Action: Notify}, {Names: []string{"write"}, Action: Log}}},
	} {
		if err := f.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnErrorIsOneLineWithTheFieldInFront(t *testing.T) {
	for _, err := range []error{
		&Error{Field: "Default", Err: ErrInvalid}, &Error{Field: "Rules", Detail: "5000 rules", Err: ErrTooLarge},
	} {
		if s := err.Error(); !strings.HasPrefix(s, "seccomp: "+err.(*Error).Field+": ") || strings.Contains(s, "\n") {
			t.Error(s)
		}
	}
}
