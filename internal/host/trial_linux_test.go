package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestWhatIsSaidOfTUNDevices(t *testing.T) {
	tests := []struct {
		name         string
		open, device syscall.Errno
		failed       error
		want         Answer
		says         string
	}{
		{"all is well", 0, 0, nil, Yes, "made"},
		{"there is no file", syscall.ENOENT, syscall.EBADF, nil, No, "no such file"},
		{"there is no module", syscall.ENODEV, syscall.EBADF, nil, No, "no such device"},
		{"it may not be opened", syscall.EACCES, syscall.EBADF, nil, No, "permission denied"},
		{"a cgroup forbids it", syscall.EPERM, syscall.EBADF, nil, No, "not permitted"},
		{"no device may be made", 0, syscall.EPERM, nil, No, "making one"},
		{"it was not tried", 0, 0, errors.New("it was not tried"), Unknown, "not tried"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := Facts{Namespaces: Fact{Answer: Yes}, TUN: Fact{Name: "TUN devices"}}.TriedTUN(TUNTrial{test.failed, test.open, test.device}).TUN
			if f.Answer != test.want || !strings.Contains(f.Reason, test.says) || (f.Remedy != "") != (f.Answer != Yes) || f.Name == "" {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestWhatFollowsFromATrial: each outcome of making namespaces, on a kernel whose tmpfs holds user xattrs and on one before.
func TestWhatFollowsFromATrial(t *testing.T) {
	tests := []struct {
		name                string
		kernel              string
		trial               Trial
		image, made, mounts Answer
		user                bool
	}{
		{"all is well", "6.6.0", Trial{}, Yes, Yes, Yes, true},
		{"the memfd is not executed", "6.6.0", Trial{Trampoline: os.ErrPermission}, No, Yes, Yes, true},
		{"namespaces are refused", "6.6.0", Trial{Refused: "clone a process: EPERM", Obstacle: Obstacle{Errno: syscall.EPERM}}, Yes, No, No, true},
		{"root has them without a user namespace", "6.6.0", Trial{WithoutUser: true}, Yes, Yes, Yes, false},
		{"no /proc can be mounted", "6.6.0", Trial{SharedPIDs: true, Obstacle: Obstacle{Errno: syscall.EPERM, Mount: true, Proc: true}}, Yes, Yes, Yes, true},
		{"root without CAP_NET_ADMIN", "6.6.0", Trial{WithoutUser: true, NetApart: true, Obstacle: Obstacle{Errno: syscall.EPERM, Mount: true, Proc: true}}, Yes, Yes, Yes, false},
		{"pivot_root is refused", "6.6.0", Trial{Chroot: true, Obstacle: Obstacle{Errno: syscall.EPERM, Mount: true, Pivot: true}}, Yes, Yes, Yes, true},
		{"no overlayfs", "6.6.0", Trial{Overlay: syscall.ENODEV}, Yes, Yes, No, true},
		{"an old kernel", "6.5.0", Trial{}, Yes, Yes, No, true},
		{"no descriptor was free", "6.6.0", Trial{Shortage: syscall.EMFILE}, Yes, Unknown, Unknown, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := Facts{Kernel: test.kernel, UserNS: true, Image: Fact{Name: "i"}, Namespaces: Fact{Name: "n"}, Overlay: Fact{Name: "o"}}.Tried(test.trial)
			if f.SharedPIDs != test.trial.SharedPIDs || f.SharedPIDs != (f.Namespaces.Yes() && f.Namespaces.Remedy != "") {
				t.Errorf("a pid namespace: %+v", f)
			}
			if f.NetApart != test.trial.NetApart || f.NetApart != strings.Contains(f.Namespaces.Reason, "CAP_NET_ADMIN") {
				t.Errorf("a network namespace of another user namespace: %+v", f)
			}
			if f.Chroot != test.trial.Chroot || f.Chroot != strings.Contains(f.Namespaces.Reason, "chroot") {
				t.Errorf("a root by chroot(2): %+v", f)
			}
			if f.Image.Answer != test.image || f.Namespaces.Answer != test.made || f.Overlay.Answer != test.mounts || f.UserNS != test.user {
				t.Errorf("%+v", f)
			}
			for _, fact := range []Fact{f.Image, f.Namespaces, f.Overlay} {
				if fact.Name == "" || fact.Reason == "" || fact.Answer != Yes && fact.Remedy == "" {
					t.Errorf("%+v", fact)
				}
			}
			if !errors.Is(f.Shortage, test.trial.Shortage) || f.Shortage != nil && !strings.Contains(f.Shortage.Error(), shortageRemedy) {
				t.Errorf("the shortage is %v", f.Shortage)
			}
		})
	}
}

// TestAShortageIsOfTheMoment: what a tool can bring about, and what a host answers for good.
func TestAShortageIsOfTheMoment(t *testing.T) {
	for _, err := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM, syscall.EDQUOT, syscall.ETOOMANYREFS, syscall.EFBIG, ErrKilled} {
		if !IsShortage(fmt.Errorf("clone: %w", err)) {
			t.Errorf("%v is no shortage", err)
		}
	}
	for _, err := range []error{nil, syscall.EPERM, syscall.EACCES, syscall.ENOSYS, syscall.EINVAL, syscall.ENOSPC, syscall.EUSERS, os.ErrPermission} {
		if IsShortage(err) {
			t.Errorf("%v is a lack", err)
		}
	}
}
