//go:build linux && (amd64 || arm64)

package landlock

import (
	"os"
	"runtime"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

const (
	createRulesetVersion = 1 << 0 // LANDLOCK_CREATE_RULESET_VERSION
	createRulesetErrata  = 1 << 1 // LANDLOCK_CREATE_RULESET_ERRATA
)

// ABI asks the running kernel for its Landlock ABI: 1 or more. There are two other answers. An
// [*UnsupportedError] is no: the kernel was built without Landlock, or has it and did not
// enable it at boot; Reason and Remedy say which. A [*ProbeError] is could not tell: something
// answered in the kernel's place, as a seccomp filter does.
func ABI() (int, error) {
	n, errno := sys.Call(sys.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetVersion, 0, 0, 0)
	return answer(int(n), syscall.Errno(errno))
}

// answer reads what landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION returned.
func answer(n int, errno syscall.Errno) (int, error) {
	switch {
	case errno == 0 && n > 0:
		return n, nil
	case errno == 0:
		return 0, &ProbeError{"it named a version below 1", "look for a tracer or an emulated kernel", syscall.EINVAL}
	case errno == syscall.EOPNOTSUPP:
		return 0, &UnsupportedError{Reason: "the kernel has Landlock, but it was not enabled at boot", Err: errno,
			Remedy: "add landlock to the list of the lsm= kernel parameter (see /sys/kernel/security/lsm) and boot again"}
	case errno == syscall.ENOSYS:
		return 0, &UnsupportedError{Reason: "the kernel has no Landlock, or a seccomp filter says so", Err: errno,
			Remedy: "use Linux 5.13 or newer built with CONFIG_SECURITY_LANDLOCK; in a container, allow landlock_create_ruleset"}
	}
	return 0, &ProbeError{"the call was refused", "in a container, allow landlock_create_ruleset in its seccomp profile", errno}
}

// FixedErrata asks the running kernel which errata are fixed. A kernel that has Landlock but not this question gives an
// [*UnsupportedError]: nothing is known to be fixed. Other errors are those of [ABI].
func FixedErrata() (Errata, error) {
	abi, err := ABI()
	if err != nil {
		return 0, err
	}
	n, errno := sys.Call(sys.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createRulesetErrata, 0, 0, 0)
	if errno != 0 {
		return 0, &UnsupportedError{ABI: abi, Reason: "the kernel does not tell its errata", Err: syscall.Errno(errno)}
	}
	return Errata(n), nil
}

// Build makes a ruleset descriptor (close-on-exec) of r, for [RestrictThread] or landlock_restrict_self(2). It opens each
// path with O_PATH and closes it again; the rules then hold for those inodes. It restricts nothing.
//
// Build is strict: a ruleset that this kernel cannot hold whole is an [*UnsupportedError] that lists what is lost (see
// [Downgrade]). A path that cannot be opened, or a rule that is empty on a file, is a [*RuleError] that names it; other
// errors are those of [Ruleset.Validate] and [ABI], and a [*StepError].
func Build(r Ruleset) (*os.File, error) {
	abi, err := ABI()
	if err != nil {
		return nil, err
	}
	if err := r.HeldBy(abi); err != nil {
		return nil, err
	}
	attr := r.Attr()
	fd, errno := call(sys.SYS_LANDLOCK_CREATE_RULESET, attr, uintptr(len(attr)), 0)
	if errno != 0 {
		return nil, &StepError{"landlock_create_ruleset", errno}
	}
	f := os.NewFile(fd, "landlock-ruleset")
	if err := addRules(int(fd), r); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func addRules(fd int, r Ruleset) error {
	for _, rule := range r.Paths {
		if rule.Access &= r.HandledFS(); rule.Access == 0 {
			continue // the ruleset handles none of its rights
		}
		if err := addPath(fd, rule); err != nil {
			return err
		}
	}
	for _, rule := range r.Ports {
		if rule.Access &= r.HandledNet(); rule.Access == 0 {
			continue
		}
		attr := NetPortAttr(rule.Access, rule.Port)
		if errno := addRule(fd, RuleNetPort, attr[:]); errno != 0 {
			return &RuleError{rule.String(), "landlock_add_rule", errno}
		}
	}
	return nil
}

func addPath(fd int, rule PathRule) error {
	dir, err := openPath(rule.Path)
	if err != nil {
		return &RuleError{rule.String(), "open", err}
	}
	defer syscall.Close(dir)
	var st syscall.Stat_t
	if err := syscall.Fstat(dir, &st); err != nil {
		return &RuleError{rule.String(), "fstat", err}
	}
	access := rule.Access
	if st.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		access = access.ForFile()
	}
	if access == 0 {
		return &RuleError{rule.String(), "fstat", syscall.ENOTDIR}
	}
	attr := PathBeneathAttr(access, int32(dir))
	if errno := addRule(fd, RulePathBeneath, attr[:]); errno != 0 {
		return &RuleError{rule.String(), "landlock_add_rule", errno}
	}
	return nil
}

// openPath opens for naming alone. An open on a slow file system can be interrupted by Go's preemption signal.
func openPath(path string) (int, error) {
	for {
		fd, err := syscall.Open(path, sys.O_PATH|syscall.O_CLOEXEC, 0)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

func addRule(fd, kind int, attr []byte) syscall.Errno {
	var pin runtime.Pinner
	pin.Pin(&attr[0])
	defer pin.Unpin()
	_, errno := sys.Call(sys.SYS_LANDLOCK_ADD_RULE, uintptr(fd), uintptr(kind), sys.Addr(&attr[0]), 0, 0, 0)
	return syscall.Errno(errno)
}

// call makes a system call whose first argument is the address of attr. Pinning moves attr off the stack and keeps it there.
func call(nr uintptr, attr []byte, b, c uintptr) (uintptr, syscall.Errno) {
	var pin runtime.Pinner
	pin.Pin(&attr[0])
	defer pin.Unpin()
	n, errno := sys.Call(nr, sys.Addr(&attr[0]), b, c, 0, 0, 0)
	return n, syscall.Errno(errno)
}

// RestrictThread sets no_new_privs on the calling thread and puts the ruleset behind fd on it: on this thread, on what it
// starts or executes from now on, and (without [TSync]) on no other thread. There is no way back.
//
// In Go the caller must hold runtime.LockOSThread and never unlock it, so that the thread ends with its goroutine; and
// goroutines started from it run on other threads, which are free. To restrict a whole process, use the sub-package process.
//
// Zero flags is the rule. Flags that the kernel does not know are an [*UnsupportedError], and nothing is restricted; other
// failures are a [*StepError]: EBADF or EBADFD for a descriptor that is no ruleset, E2BIG for a seventeenth layer.
func RestrictThread(fd int, flags Flags) error {
	abi, err := ABI()
	if err != nil {
		return err
	}
	if err := flagsAt(flags, abi); err != nil {
		return err
	}
	// landlock_restrict_self(2) asks for no_new_privs or CAP_SYS_ADMIN; with the capability alone a set-user-ID program
	// would start inside the domain with privileges and without knowing.
	if _, errno := sys.Call(syscall.SYS_PRCTL, sys.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
		return &StepError{"prctl(PR_SET_NO_NEW_PRIVS)", syscall.Errno(errno)}
	}
	if _, errno := sys.Call(sys.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), uintptr(flags), 0, 0, 0, 0); errno != 0 {
		return &StepError{"landlock_restrict_self", syscall.Errno(errno)}
	}
	return nil
}
