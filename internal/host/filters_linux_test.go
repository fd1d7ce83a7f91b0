package host

import (
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/landlock"
)

// TestARefusedSeccompHasItsOwnRemedy: a filter of systemd's answers EPERM, which no newer kernel helps.
func TestARefusedSeccompHasItsOwnRemedy(t *testing.T) {
	for name, fact := range map[string]func(error) Fact{"filters": seccompFact, "notification": notifyFact} {
		if f := fact(syscall.EPERM); f.Yes() || !strings.Contains(f.Remedy, "SystemCallFilter=") {
			t.Errorf("%s refused: %+v", name, f)
		}
		if f := fact(syscall.EINVAL); f.Answer != No || strings.Contains(f.Remedy, "SystemCallFilter=") || f.Remedy == "" {
			t.Errorf("%s unknown: %+v", name, f)
		}
	}
	if f := notifyFact(syscall.EFAULT); !f.Yes() {
		t.Errorf("notification known: %+v", f)
	}
	if f := seccompFact(nil); !f.Yes() {
		t.Errorf("filters known: %+v", f)
	}
}

// TestWhatIsUsedUpIsMissing: a listener around this process, and layers of Landlock; another error says nothing, the start will.
func TestWhatIsUsedUpIsMissing(t *testing.T) {
	yes := Fact{Name: "it", Answer: Yes, Value: 7, Reason: "ABI 7"}
	for err, want := range map[error]Answer{nil: Yes, syscall.EBUSY: No, syscall.EPERM: Yes, syscall.EMFILE: Yes} {
		if f := yes.ofListener(err); f.Answer != want || (f.Remedy == "") != (want == Yes) {
			t.Errorf("a listener, %v: %+v", err, f)
		}
	}
	for err, want := range map[error]Answer{nil: Yes, syscall.E2BIG: No, &landlock.StepError{Step: "landlock_restrict_self", Err: syscall.E2BIG}: No, syscall.EPERM: Yes} {
		if f := yes.ofLayers(err); f.Answer != want || (f.Remedy == "") != (want == Yes) {
			t.Errorf("a layer, %v: %+v", err, f)
		}
	}
}

// TestAThreadEndsWithWhatWasTriedOnIt: it is none that stays.
func TestAThreadEndsWithWhatWasTriedOnIt(t *testing.T) {
	var mine, first int
	onThread(func() { mine, first = syscall.Gettid(), syscall.Getpid() })
	if mine == first {
		t.Errorf("it was tried on the first thread, %d, which never ends", first)
	}
}

// TestASecurityModulesProfileIsRead of proc_pid_attr(5): AppArmor's with its mode, SELinux's as a label.
func TestASecurityModulesProfileIsRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"unconfined\n":                        "",
		"docker-default (enforce)\n":          "docker-default",
		"cri-containerd.apparmor.d (enforce)": "cri-containerd.apparmor.d",
		"unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023\x00": "",
		"system_u:system_r:container_t:s0:c1,c2\x00":                "system_u:system_r:container_t:s0:c1,c2",
	} {
		if got := profileOf(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
