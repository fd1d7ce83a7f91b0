package seccomp

import "slices"

// Filter says what becomes of every syscall. It is data: nothing is restricted until it is compiled and the program loaded.
//
// For one syscall the rules are read in order: the first rule that names it and whose argument
// checks all hold decides. If none does, Default decides. The zero Filter refuses everything;
// package sandbox takes it to mean the default profile.
type Filter struct {
	Default Action `json:"default,omitzero"` // for a syscall that no rule decides; zero: Errno(EPERM)

	// Unknown is for numbers that this package's table does not name, such as syscalls newer
	// than it. Zero: as Default. The profiles answer Errno(ENOSYS), which makes a C library
	// fall back to an older call.
	Unknown Action `json:"unknown,omitzero"`

	Rules []Rule `json:"rules,omitempty"`
}

// Rule gives one Action to the syscalls that it names.
type Rule struct {
	// Names are syscalls as the kernel calls them. A name that one architecture lacks (open on
	// arm64) is passed over there; a name that neither has is an error.
	Names  []string `json:"names"`
	Action Action   `json:"action,omitzero"` // zero: Errno(EPERM)
	Args   []Arg    `json:"args,omitempty"`  // all must hold; none: the rule holds for every call
	Reason string   `json:"reason,omitempty"`
}

// Arg checks one argument of a syscall. The zero Arg holds if the low 32 bits of the first argument are 0.
//
// A filter sees numbers. It cannot read what a pointer points to, so paths and addresses cannot be checked.
type Arg struct {
	Index uint8 `json:"index"` // 0 to 5

	// Width is how many low bits are compared: 32 (or zero) or 64. Most flags, commands and
	// descriptors are a C int: the kernel looks at 32 bits, and so must the check, or a caller
	// gets past it with a bit above them.
	Width uint8 `json:"width,omitzero"`

	Op    Op     `json:"op,omitzero"`
	Mask  uint64 `json:"mask,omitzero"` // for MaskedEqual alone, which needs it
	Value uint64 `json:"value"`
}

// Op compares an argument with Arg.Value. Numbers are unsigned. The zero Op is Equal.
type Op uint8

// The comparisons.
const (
	Equal          Op = iota // argument == Value
	NotEqual                 // argument != Value
	Less                     // argument < Value
	LessOrEqual              // argument <= Value
	Greater                  // argument > Value
	GreaterOrEqual           // argument >= Value
	MaskedEqual              // argument & Mask == Value
)

var opNames = [...]string{"==", "!=", "<", "<=", ">", ">=", "masked=="}

// String returns the operator as JSON has it: ==, !=, <, <=, >, >= or masked==.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return "op?"
}

// MarshalText returns String, or an error that wraps ErrInvalid.
func (o Op) MarshalText() ([]byte, error) {
	if int(o) >= len(opNames) {
		return nil, &Error{Field: "Op", Err: ErrInvalid}
	}
	return []byte(opNames[o]), nil
}

// UnmarshalText reads what String writes. Its errors wrap ErrInvalid.
func (o *Op) UnmarshalText(text []byte) error {
	i := slices.Index(opNames[:], string(text))
	if i < 0 {
		return &Error{Field: "Op", Detail: string(text), Err: ErrInvalid}
	}
	*o = Op(i)
	return nil
}

// wide says whether all 64 bits are compared.
func (a Arg) wide() bool { return a.Width == 64 }

// holds says whether an argument passes the check.
func (a Arg) holds(v uint64) bool {
	if !a.wide() {
		v &= 1<<32 - 1
	}
	switch a.Op {
	case Equal:
		return v == a.Value
	case NotEqual:
		return v != a.Value
	case Less:
		return v < a.Value
	case LessOrEqual:
		return v <= a.Value
	case Greater:
		return v > a.Value
	case GreaterOrEqual:
		return v >= a.Value
	}
	return v&a.Mask == a.Value
}

// IsZero says whether f is the zero Filter, which a caller may take to mean a default of its own.
func (f Filter) IsZero() bool { return f.Default == 0 && f.Unknown == 0 && len(f.Rules) == 0 }

// IsOff says whether f refuses no syscall, as Off does. Loading such a filter holds nothing, and a report should say so.
func (f Filter) IsOff() bool {
	return f.Default == Allow && (f.Unknown == 0 || f.Unknown == Allow) && len(f.Rules) == 0
}

// With returns f with more rules, which are read before those of f and so win over them. Rules
// of f that could no longer decide anything are left out for the names concerned. f itself
// stays as it is. What is wrong with the new rules, Validate says.
func (f Filter) With(rules ...Rule) Filter {
	out := Filter{Default: f.Default, Unknown: f.Unknown, Rules: make([]Rule, 0, len(rules)+len(f.Rules))}
	for _, r := range rules {
		out.Rules = append(out.Rules, r.clone())
	}
	for _, old := range f.Rules {
		r := old.clone()
		r.Names = slices.DeleteFunc(r.Names, func(name string) bool { return shadowed(name, old.Args, rules) })
		if len(r.Names) > 0 || len(old.Names) == 0 {
			out.Rules = append(out.Rules, r)
		}
	}
	return out
}

// shadowed says whether a rule for name with args comes too late after rules.
func shadowed(name string, args []Arg, rules []Rule) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return slices.Contains(r.Names, name) && (len(r.Args) == 0 || sameArgs(r.Args, args))
	})
}

// Without returns f without any rule for the named syscalls, so that f.Default decides them. f
// itself stays as it is. A name that is no syscall is kept, as a rule, so that Validate and
// Compile refuse the filter: a misspelt name must not leave a hole.
func (f Filter) Without(names ...string) Filter {
	out := Filter{Default: f.Default, Unknown: f.Unknown}
	for _, name := range names {
		if find(name) < 0 {
			out.Rules = append(out.Rules, Rule{Names: []string{name}, Reason: "named in Without"})
		}
	}
	for _, old := range f.Rules {
		r := old.clone()
		r.Names = slices.DeleteFunc(r.Names, func(name string) bool { return slices.Contains(names, name) })
		if len(r.Names) > 0 || len(old.Names) == 0 {
			out.Rules = append(out.Rules, r)
		}
	}
	return out
}

// clone returns a copy of r that shares no memory with it.
func (r Rule) clone() Rule {
	r.Names, r.Args = slices.Clone(r.Names), slices.Clone(r.Args)
	return r
}

// Decide returns the Action of f for a call and the reason of the rule that decided, which is
// empty if none did. It reads the rules one by one, as Filter documents; a compiled program
// gives the same Action. A call of a foreign architecture, or by amd64's x32 numbers, gets
// what every compiled program gives it. It does not check f: unknown names match nothing.
func (f Filter) Decide(c Call) (Action, string) {
	if !c.Arch.known() {
		return KillProcess, "foreign architecture"
	}
	if c.Arch == AMD64 && c.Nr >= x32Bit {
		return Errno(ENOSYS), "x32 syscall"
	}
	name, ok := nameOf(c.Arch, c.Nr)
	if !ok {
		return actionOf(f.unknown().value()), ""
	}
	for _, r := range f.Rules {
		if slices.Contains(r.Names, name) && r.holds(c) {
			return actionOf(r.Action.value()), r.Reason
		}
	}
	return actionOf(f.Default.value()), ""
}

// holds says whether all argument checks of r pass.
func (r Rule) holds(c Call) bool {
	for _, a := range r.Args {
		if int(a.Index) >= len(c.Args) || !a.holds(c.Args[a.Index]) {
			return false
		}
	}
	return true
}

// unknown is the action for numbers that no table names.
func (f Filter) unknown() Action {
	if f.Unknown == 0 {
		return f.Default
	}
	return f.Unknown
}
