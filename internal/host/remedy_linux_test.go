package host

import (
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestNamespaceRemedies(t *testing.T) {
	docker := switches{filtered: true, masked: true}
	for name, c := range map[string]struct {
		o    Obstacle
		s    switches
		want []string // all, and no other option of a container
	}{
		"Docker by default needs both options":        {Obstacle{Errno: syscall.EPERM}, docker, []string{"seccomp=unconfined", "systempaths=unconfined"}},
		"Docker without its profile needs /proc":      {Obstacle{syscall.EPERM, true}, switches{masked: true}, []string{"systempaths=unconfined"}},
		"a filter that does not know a call":          {Obstacle{Errno: syscall.ENOSYS}, switches{filtered: true}, []string{"seccomp=unconfined", "5.12"}},
		"an old kernel":                               {Obstacle{syscall.ENOSYS, true}, switches{}, []string{"5.12"}},
		"a Landlock domain":                           {Obstacle{syscall.EPERM, true}, switches{}, []string{"Landlock domain"}},
		"a kernel without user namespaces":            {Obstacle{Errno: syscall.EINVAL}, switches{}, []string{"CONFIG_USER_NS"}},
		"a sysctl of Ubuntu's":                        {Obstacle{syscall.EACCES, true}, switches{sysctls: []string{"sysctl x=0"}}, []string{"sysctl x=0"}},
		"a sysctl, and a container that has its own":  {Obstacle{Errno: syscall.EPERM}, switches{sysctls: []string{"sysctl x=0"}, filtered: true}, []string{"sysctl x=0", "seccomp=unconfined"}},
		"an EPERM that nothing explains but the host": {Obstacle{Errno: syscall.EPERM}, switches{}, []string{"CONFIG_USER_NS"}},
	} {
		got := c.o.remedy(c.s)
		for _, text := range []string{"seccomp=unconfined", "systempaths=unconfined", "5.12", "Landlock domain", "CONFIG_USER_NS", "sysctl x=0"} {
			if strings.Contains(got, text) != slices.Contains(c.want, text) {
				t.Errorf("%s: %q says %q: want it to be one of %q", name, got, text, c.want)
			}
		}
	}
}

func TestCoveredPartsOfProcAreSeen(t *testing.T) {
	const proc = "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
	for name, c := range map[string]struct {
		text string
		want bool
	}{
		"nothing":             {proc, false},
		"binfmt_misc":         {proc + "30 22 0:25 / /proc/sys/fs/binfmt_misc rw - autofs systemd-1 rw\n", false},
		"Docker's kcore":      {proc + "31 22 0:26 /null /proc/kcore rw,nosuid - tmpfs tmpfs rw\n", true},
		"Docker's /proc/sys":  {proc + "32 22 0:21 /sys /proc/sys ro - proc proc rw\n", true},
		"another tree's proc": {proc + "33 27 0:21 / /chroot/proc rw - proc proc rw\n", false},
	} {
		if got := coversProc(c.text); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

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
