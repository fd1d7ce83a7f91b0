package seccomp

import (
	"errors"
	"testing"
)

func TestAnActionIsWrittenAndReadAsText(t *testing.T) {
	for text, a := range map[string]Action{
		"allow": Allow, "log": Log, "notify": Notify, "trap": Trap, "kill_thread": KillThread, "kill_process": KillProcess,
		"errno(EPERM)": Errno(EPERM), "errno(ENOSYS)": Errno(ENOSYS), "errno(71)": Errno(71), "errno(0)": Errno(0), "errno(4095)": Errno(4095),
	} {
		got, err := a.MarshalText()
		if err != nil || string(got) != text {
			t.Errorf("%#x is written %q, %v; want %q", uint32(a), got, err, text)
		}
		var back Action
		if err := back.UnmarshalText([]byte(text)); err != nil || back != a {
			t.Errorf("%q is read as %v, %v", text, back, err)
		}
	}
}

func TestTextThatIsNoActionIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "Allow", "ALLOW", " allow", "kill", "errno", "errno()", "errno(EPERM", "errno(4096)", "errno(-1)", "errno(01)", "errno(+1)", "errno(0x1)",
		"errno(eperm)", "errno(1) ", "trace", "trace(1)", "action(0x1)", "\x00",
	} {
		a := Allow
		if err := a.UnmarshalText([]byte(text)); !errors.Is(err, ErrInvalid) || a != Allow {
			t.Errorf("%q: %v, %v", text, a, err)
		}
	}
}

func TestTheZeroActionRefusesWithEPERM(t *testing.T) {
	if got := actionOf(Action(0).value()); got != Errno(EPERM) {
		t.Errorf("it is %v", got)
	}
	if got := Action(0).String(); got != "errno(EPERM)" {
		t.Errorf("it is printed %q", got)
	}
}

func TestAValueThatNoRuleMayHaveIsNotWritten(t *testing.T) {
	for _, a := range []Action{1 << 16, 0x7ff00000, 0x7fff0001, 0x00051000, 2, 0xffffffff} {
		if text, err := a.MarshalText(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%#x is written %q, %v", uint32(a), text, err)
		}
	}
}

// The switch of __seccomp_filter in kernel/seccomp.c.
func TestAResultMeansWhatTheKernelTakesItFor(t *testing.T) {
	for ret, want := range map[uint32]Action{
		0x7fff0000: Allow, 0x7fffabcd: Allow, 0x7ffc0001: Log, 0x7fc00000: Notify, 0x00030005: Trap, 0: KillThread, 0x0000ffff: KillThread,
		0x80000000: KillProcess, 0x8000ffff: KillProcess, 0x00050001: Errno(EPERM), 0x0005ffff: Errno(4095), 0x12340000: KillProcess,
		0xffff0000: KillProcess, 0x7ff00007: 0x7ff00007,
	} {
		if got := actionOf(ret); got != want {
			t.Errorf("%#x is %v, want %v", ret, got, want)
		}
	}
}
