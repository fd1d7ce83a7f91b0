package kerneltest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempt makes calls that every kernel since 5.13 knows, with arguments that
// it refuses at once, and returns their errors. None has an effect.
type attempt struct {
	name string
	call func() error
	with unix.Errno // the kernel's answer, 0 for success
	not  unix.Errno // the answer without the feature
}

func raw(nr uintptr, args ...uintptr) func() error {
	return func() error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.RawSyscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		return nil
	}
}

const (
	badFD      = ^uintptr(0) // -1
	badPointer = uintptr(1)
)

var attempts = map[Feature][]attempt{
	UserNamespaces: {
		{"a new user namespace for a process", cloneUser, 0, unix.EPERM},
		// A Go process has threads, for which the kernel refuses it otherwise.
		{"unshare of the user namespace", raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), unix.EINVAL, unix.EPERM},
		{"clone3", raw(unix.SYS_CLONE3, badPointer, 0), unix.EINVAL, unix.ENOSYS},
		{"unshare of nothing", raw(unix.SYS_UNSHARE, 0), 0, 0},
	},
	UserNamespaceCalls: {
		{"a new user namespace for a process", cloneUser, 0, unix.ENOSYS},
		{"unshare of the user namespace", raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), unix.EINVAL, unix.ENOSYS},
		{"unshare of nothing", raw(unix.SYS_UNSHARE, 0), 0, 0},
	},
	MoreUserNamespaces: {{"a new user namespace for a process", cloneUser, 0, unix.ENOSPC}},
	Namespaces: {
		{"a new user namespace for a process", cloneUser, 0, unix.EPERM},
		{"setns", raw(unix.SYS_SETNS, badFD, 0), unix.EBADF, unix.EPERM},
		{"unshare of nothing", raw(unix.SYS_UNSHARE, 0), 0, 0},
	},
	Mounts:    {{"mount_setattr", raw(unix.SYS_MOUNT_SETATTR), unix.EINVAL, unix.EPERM}},
	WholeProc: {{"a procfs of namespaces of one's own", mountProc, 0, unix.EPERM}},
	PivotRoot: {{"pivot_root in namespaces of one's own", pivotNowhere, 0, unix.EPERM}},
	MountAPI:  {{"mount_setattr", raw(unix.SYS_MOUNT_SETATTR), unix.EINVAL, unix.ENOSYS}},
	MountSetattr: {
		{"mount_setattr", raw(unix.SYS_MOUNT_SETATTR), unix.EINVAL, unix.ENOSYS},
		{"open_tree", raw(unix.SYS_OPEN_TREE, badFD, 0, ^uintptr(0)), unix.EINVAL, unix.EINVAL},
	},
	Landlock: {
		{"landlock_create_ruleset", landlockVersion, 0, unix.ENOSYS},
		{"landlock_add_rule", raw(unix.SYS_LANDLOCK_ADD_RULE, badFD, 1, 0, 1), unix.EINVAL, unix.ENOSYS},
	},
	LandlockAtBoot: {{"landlock_create_ruleset", landlockVersion, 0, unix.EOPNOTSUPP}},
	SeccompFilter: {
		{"seccomp", raw(unix.SYS_SECCOMP, 99), unix.EINVAL, unix.ENOSYS},
		{"prctl to set seccomp", raw(unix.SYS_PRCTL, unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, 0), unix.EFAULT, unix.EINVAL},
		{"another prctl", raw(unix.SYS_PRCTL, unix.PR_GET_KEEPCAPS), 0, 0},
	},
	SeccompListener: {
		{"a filter with a listener", seccompNull(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER), unix.EFAULT, unix.EINVAL},
		{"a filter without", seccompNull(0), unix.EFAULT, unix.EFAULT},
	},
	SeccompActions: {
		{"the question about an action", raw(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, 0), unix.EFAULT, unix.EINVAL},
		{"a filter", seccompNull(0), unix.EFAULT, unix.EFAULT},
	},
	Clone3:     {{"clone3", raw(unix.SYS_CLONE3, badPointer, 0), unix.EINVAL, unix.ENOSYS}},
	Statx:      {{"statx", raw(unix.SYS_STATX, badFD, badPointer, 0, 0), unix.EFAULT, unix.EPERM}},
	Faccessat2: {{"faccessat2", raw(unix.SYS_FACCESSAT2, badFD, badPointer, 0, 0), unix.EFAULT, unix.EPERM}},
	Openat2:    {{"openat2", raw(unix.SYS_OPENAT2, badFD, badPointer, badPointer, 0), unix.EINVAL, unix.ENOSYS}},
	PidFD:      {{"pidfd_open", raw(unix.SYS_PIDFD_OPEN, badFD, 0), unix.EINVAL, unix.ENOSYS}},
	ProcessCalls: {
		{"pidfd_getfd", raw(unix.SYS_PIDFD_GETFD, badFD, 0, 0), unix.EBADF, unix.EPERM},
		{"process_vm_readv", raw(unix.SYS_PROCESS_VM_READV, 0, 0, 0, 0, 0, 1), unix.EINVAL, unix.EPERM},
	},
	CloseRange: {{"close_range", raw(unix.SYS_CLOSE_RANGE, 2, 1, 0), unix.EINVAL, unix.ENOSYS}},
	Memfd:      {{"memfd_create", raw(unix.SYS_MEMFD_CREATE, 0, 1<<30), unix.EINVAL, unix.ENOSYS}},
	MemfdExec:  {{"memfd_create", raw(unix.SYS_MEMFD_CREATE, 0, unix.MFD_EXEC), unix.EFAULT, unix.EACCES}},
	Keyrings:   {{"keyctl", raw(unix.SYS_KEYCTL, 9999), unix.EOPNOTSUPP, unix.ENOSYS}},
	IOUring:    {{"io_uring_setup", raw(unix.SYS_IO_URING_SETUP, 1, 0), unix.EFAULT, unix.ENOSYS}},
}

func landlockVersion() error {
	_, err := landlockABI()
	return err
}

func seccompNull(flags uintptr) func() error {
	return raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, 0)
}

// cloneUser starts this program in a user namespace of its own, to run no test.
func cloneUser() error {
	cmd := exec.Command("/proc/self/exe", "-test.run=^$")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	return cmd.Run()
}

// mountProc has unshare(1) mount a procfs on /tmp.
func mountProc() error {
	out, err := exec.Command("unshare", "-Urpfmn", "sh", "-c", "mount -t proc proc /tmp").CombinedOutput()
	if strings.Contains(string(out), "permission denied") || strings.Contains(string(out), "not permitted") {
		return unix.EPERM
	}
	return err
}

// pivotNowhere has unshare(1) pivot to a directory that is not there. Programs of system administration are on few ordinary users' PATH.
func pivotNowhere() error {
	out, _ := exec.Command("env", "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "unshare", "-Urm", "pivot_root", "/nowhere", "/nowhere").CombinedOutput()
	switch {
	case strings.Contains(string(out), "failed to execute"):
		return fmt.Errorf("needs pivot_root: %s", out)
	case strings.Contains(string(out), "No such file"):
		return nil
	case strings.Contains(string(out), "not permitted"):
		return unix.EPERM
	}
	return errors.New(string(out))
}

func (a attempt) check(t *testing.T, want unix.Errno) {
	t.Helper()
	err := a.call()
	if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
		t.Errorf("%s: %v, want errno %d (%v)", a.name, err, int(want), want)
	}
}

func TestKernelFeatureIsThereUntilTaken(t *testing.T) {
	Need(t, HasUserNamespaces, HasMountSetattr, HasSeccompFilter, LandlockABI(1))
	AsEach(t, func(t *testing.T, as User) {
		InChild(t, Child{As: as}, func(t *testing.T) {
			for _, f := range Features() {
				for _, a := range attempts[f] {
					a.check(t, a.with)
				}
			}
		})
	})
}

func TestKernelFeatureIsGoneOnceTaken(t *testing.T) {
	Need(t, HasUserNamespaces, HasMountSetattr, HasSeccompFilter, LandlockABI(1))
	AsEach(t, func(t *testing.T, as User) {
		for _, f := range Features() {
			t.Run(string(f), func(t *testing.T) {
				if len(attempts[f]) == 0 {
					t.Fatal("nothing attempts it")
				}
				InChild(t, Child{As: as, Without: []Feature{f}}, func(t *testing.T) {
					for _, a := range attempts[f] {
						a.check(t, a.not)
					}
					for _, other := range []Feature{Keyrings, Memfd} {
						if other != f {
							attempts[other][0].check(t, attempts[other][0].with)
						}
					}
				})
			})
		}
	})
}

func TestKernelFeatureIsGoneForDescendants(t *testing.T) {
	AsEach(t, func(t *testing.T, as User) {
		c := Child{As: as, Without: []Feature{UserNamespaces}}
		InChild(t, c, func(t *testing.T) {
			for _, want := range []struct {
				args []string
				ok   bool
			}{{[]string{"unshare", "-U", "true"}, false}, {[]string{"true"}, true}} {
				Need(t, Command(want.args[0]))
				out, err := exec.Command(want.args[0], want.args[1:]...).CombinedOutput()
				if (err == nil) != want.ok {
					t.Errorf("%v: %v: %s", want.args, err, out)
				}
			}
		})
	})
}

func TestKernelFeaturesAreTakenTogether(t *testing.T) {
	Need(t, HasUserNamespaces)
	AsEach(t, func(t *testing.T, as User) {
		c := Child{As: as, Without: []Feature{MoreUserNamespaces, Landlock, SeccompFilter}}
		InChild(t, c, func(t *testing.T) {
			for _, f := range c.Without {
				attempts[f][0].check(t, attempts[f][0].not)
			}
		})
	})
}

func TestKernelRootTakesFeaturesWithoutNoNewPrivs(t *testing.T) {
	Need(t, HasUserNamespaces)
	Need(t, IsRoot)
	AsEach(t, func(t *testing.T, as User) {
		InChild(t, Child{As: as, Without: []Feature{Landlock}}, func(t *testing.T) {
			set, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if set != 0 || err != nil {
				t.Errorf("no_new_privs is %d, %v", set, err)
			}
		})
	})
}

func TestEveryFeatureHasRules(t *testing.T) {
	for _, f := range Features() {
		rules, err := refusals(f)
		if err != nil || len(rules) == 0 && f != MoreUserNamespaces && f != WholeProc {
			t.Errorf("%s: %v, %v", f, rules, err)
		}
	}
	if _, err := refusals("gravity"); err == nil {
		t.Error("a feature that does not exist has rules")
	}
}

func TestFilterFitsItsHeader(t *testing.T) {
	var f unix.SockFilter
	if unsafe.Sizeof(f) != 8 {
		t.Errorf("an instruction is %d bytes", unsafe.Sizeof(f))
	}
	program := assemble(unix.AUDIT_ARCH_X86_64, []refusal{{nr: 7, when: equals, arg: 1, value: 3, errno: unix.EPERM}})
	if got := program[5].K; got != 24 {
		t.Errorf("the second argument is read at %d, want 24", got)
	}
	if len(program) != 9 {
		t.Errorf("%d instructions, want 9", len(program))
	}
	if _, err := os.Stat("/proc/self/exe"); err != nil {
		t.Error(err)
	}
}
