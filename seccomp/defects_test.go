package seccomp

import "testing"

// Each test here is a defect of github.com/elastic/go-seccomp-bpf v1.6.0 that this package
// must not have. The two that show only when loading, a lost listener and an ignored TSYNC
// failure, are in load_kernel_linux_test.go.

// After a failed argument check its accumulator holds the argument, which the next group compares with syscall numbers: AF_INET, 2, is open.
func TestAFailedArgumentCheckIsNotTakenForASyscallNumber(t *testing.T) {
	f := Filter{Rules: []Rule{
		{Names: []string{"socket"}, Action: Allow, Args: []Arg{{Index: 0, Value: afUnix}}},
		{Names: []string{"open", "read", "io_submit"}, Action: Allow},
	}}
	for _, a := range arches {
		p := mustCompile(t, f, a)
		for family := range uint64(500) {
			want := Errno(EPERM)
			if family == afUnix {
				want = Allow
			}
			if got := verdict(t, p, mustCall(t, a, "socket", family)); got != want {
				t.Errorf("%v: socket(%d): %v", a, family, got)
			}
		}
		if got := verdict(t, p, mustCall(t, a, "read")); got != Allow {
			t.Errorf("%v: read: %v", a, got)
		}
	}
}

// It gives foreign architectures the default action, which a deny-list has as allow.
func TestADenyListDoesNotLetForeignArchitecturesThrough(t *testing.T) {
	f := Filter{Default: Allow, Rules: []Rule{{Names: []string{"ptrace"}, Action: Errno(EPERM)}}}
	for _, a := range arches {
		p := mustCompile(t, f, a)
		for _, foreign := range []Arch{0x40000003, 0x40000028} {
			if got := verdict(t, p, Call{Arch: foreign, Nr: 26}); got != KillProcess { // ptrace of 32-bit programs
				t.Errorf("%v: ptrace of %v: %v", a, foreign, got)
			}
		}
		if got := verdict(t, p, mustCall(t, a, "getpid")); got != Allow {
			t.Errorf("%v: getpid: %v", a, got)
		}
	}
}

// It compares 64 bits, so a bit that the kernel does not look at gets past a rule.
func TestABitAboveThoseThatTheKernelLooksAtDoesNotGetPastARule(t *testing.T) {
	f := Filter{Default: Allow, Rules: []Rule{{Names: []string{"ioctl"}, Action: Errno(EPERM), Args: []Arg{{Index: 1, Value: tiocsti}}}}}
	for _, a := range arches {
		p := mustCompile(t, f, a)
		for bit := 32; bit < 64; bit++ {
			if got := verdict(t, p, mustCall(t, a, "ioctl", 0, tiocsti|1<<bit)); got != Errno(EPERM) {
				t.Errorf("%v: bit %d: %v", a, bit, got)
			}
		}
		if got := verdict(t, p, mustCall(t, a, "ioctl", 0, tiocsti-1)); got != Allow {
			t.Errorf("%v: another command: %v", a, got)
		}
	}
}
