package seccomp

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithPutsTheCallersRulesFirstAndLeavesTheFilterAlone(t *testing.T) {
	base := Default()
	f := base.With(
		Rule{Names: []string{"socket"}, Action: Allow, Args: []Arg{{Value: 40}}, Reason: "vsock after all"},
		Rule{Names: []string{"ptrace", "openat2"}, Action: Errno(ENOSYS), Reason: "not here"},
	)
	if d := cmp.Diff(Default(), base); d != "" {
		t.Errorf("the base changed:\n%s", d)
	}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, a := range arches {
		before, after := mustCompile(t, base, a), mustCompile(t, f, a)
		for _, test := range []struct {
			call          Call
			before, after Action
		}{
			{mustCall(t, a, "socket", 40, 1), Errno(EAFNOSUPPORT), Allow},
			{mustCall(t, a, "socket", 38, 5), Errno(EAFNOSUPPORT), Errno(EAFNOSUPPORT)},
			{mustCall(t, a, "socket", 2, 1, 6), Allow, Allow},
			{mustCall(t, a, "ptrace"), Allow, Errno(ENOSYS)},
			{mustCall(t, a, "openat2"), Allow, Errno(ENOSYS)},
			{mustCall(t, a, "process_vm_readv"), Allow, Allow},
		} {
			if got := verdict(t, before, test.call); got != test.before {
				t.Errorf("before, %v: %v", test.call, got)
			}
			if got := verdict(t, after, test.call); got != test.after {
				t.Errorf("after, %v: %v", test.call, got)
			}
		}
	}
}

func TestWithMayRepeatARuleOfTheFilterAndReplacesIt(t *testing.T) {
	f := Default().With(Rule{Names: []string{"ioctl"}, Action: KillProcess, Args: []Arg{{Index: 1, Value: tiocsti, Width: 32}}, Reason: "louder"})
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, f, AMD64)
	if got := verdict(t, p, mustCall(t, AMD64, "ioctl", 0, tiocsti)); got != KillProcess {
		t.Errorf("TIOCSTI: %v", got)
	}
	if got := verdict(t, p, mustCall(t, AMD64, "ioctl", 0, tioclinux)); got != Errno(EPERM) {
		t.Errorf("TIOCLINUX: %v", got)
	}
}

func TestRulesGivenToWithAreCheckedByValidate(t *testing.T) {
	for _, rules := range [][]Rule{
		{{Names: []string{"ptrcae"}}}, {{}}, {{Names: []string{"read"}}, {Names: []string{"read"}}}, {{Names: []string{"read"}, Args: []Arg{{Index: 9}}}},
	} {
		if err := Default().With(rules...).Validate(); err == nil {
			t.Errorf("%v is accepted", rules)
		}
	}
}

func TestWithoutLeavesASyscallToTheDefaultAction(t *testing.T) {
	f := Default().Without("ptrace", "socket", "read")
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	p := mustCompile(t, f, ARM64)
	for name, want := range map[string]Action{"ptrace": Errno(EPERM), "socket": Errno(EPERM), "read": Errno(EPERM), "write": Allow} {
		if got := verdict(t, p, mustCall(t, ARM64, name, 1, 1)); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAMisspeltNameInWithoutMakesTheFilterInvalid(t *testing.T) {
	if err := Default().Without("read", "ptrcae").Validate(); !errors.Is(err, ErrUnknownSyscall) {
		t.Error(err)
	}
}

func TestOnlyTheFilterThatSaysNothingIsZero(t *testing.T) {
	if !(Filter{}).IsZero() || !(Filter{Rules: []Rule{}}).IsZero() {
		t.Error("the zero filter is not zero")
	}
	for _, f := range []Filter{Off(), Default(), {Default: KillThread}, {Unknown: Log}, {Rules: make([]Rule, 1)}} {
		if f.IsZero() {
			t.Errorf("%v is zero", f)
		}
	}
}

func TestTheZeroFilterRefusesEverything(t *testing.T) {
	for _, a := range arches {
		p := mustCompile(t, Filter{}, a)
		for nr := range uint32(1000) {
			if got := verdict(t, p, Call{Arch: a, Nr: nr}); got != Errno(EPERM) && nr < x32Bit {
				t.Errorf("%v %d: %v", a, nr, got)
			}
		}
	}
}

func TestDecideGivesTheReasonOfTheRule(t *testing.T) {
	for _, test := range []struct {
		call   Call
		action Action
		reason string
	}{
		{mustCall(t, AMD64, "ioctl", 0, tiocsti), Errno(EPERM), "types into the terminal as if the user had (CVE-2017-5226)"},
		{mustCall(t, ARM64, "clone3"), Errno(ENOSYS), "its flags lie in memory, out of a filter's sight; C libraries fall back to clone"},
		{Call{Arch: AMD64, Nr: 5000}, Errno(ENOSYS), ""},
		{Call{Arch: AMD64, Nr: x32Bit}, Errno(ENOSYS), "x32 syscall"},
		{Call{Arch: 3}, KillProcess, "foreign architecture"},
	} {
		if a, r := Default().Decide(test.call); a != test.action || r != test.reason {
			t.Errorf("%v: %v, %q", test.call, a, r)
		}
	}
}

func TestACallByNameHasTheArchitecturesNumber(t *testing.T) {
	for a, want := range map[Arch]uint32{AMD64: 257, ARM64: 56} {
		if c := mustCall(t, a, "openat", 1, 2); c != (Call{Arch: a, Nr: want, Args: [6]uint64{1, 2}}) {
			t.Errorf("%+v", c)
		}
	}
	for _, name := range []string{"open", "nosuch", ""} {
		if _, err := NewCall(ARM64, name); !errors.Is(err, ErrUnknownSyscall) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewCall(AMD64, "read", 1, 2, 3, 4, 5, 6, 7); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
	if got := mustCall(t, AMD64, "read", 3).String(); got != "amd64 read(0x3, 0x0, 0x0, 0x0, 0x0, 0x0)" {
		t.Error(got)
	}
	if got := (Call{Arch: 7, Nr: 300}).String(); got != "Arch(0x7) syscall_0x12c(0x0, 0x0, 0x0, 0x0, 0x0, 0x0)" {
		t.Error(got)
	}
}
