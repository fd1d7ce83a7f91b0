package seccomp

import (
	"strconv"
	"strings"
)

// Action is what becomes of a syscall. The zero Action is Errno(EPERM), so that what was left out is refused.
// The values are those of the kernel's SECCOMP_RET_ constants (linux/seccomp.h), with two exceptions: the zero Action, and
// KillThread, which carries data that the kernel ignores so that it is not the zero Action.
type Action uint32

// The actions without data. See seccomp(2).
const (
	Allow       Action = 0x7fff0000 // the call is made
	Log         Action = 0x7ffc0000 // the call is made and logged, if the sysctl kernel.seccomp.actions_logged has "log"
	Notify      Action = 0x7fc00000 // a supervisor decides, see LoadOptions.Listener; without one the call fails with ENOSYS
	Trap        Action = 0x00030000 // the thread gets SIGSYS, which it may handle
	KillThread  Action = 0x00000001 // the thread ends at once; in a program with threads this usually hangs it
	KillProcess Action = 0x80000000 // the process ends at once, as by SIGSYS
)

// Errno numbers that filters use often. They are Linux's, on every system that this package is built for.
const (
	EPERM           = 1
	EACCES          = 13
	ENOSYS          = 38
	EPROTONOSUPPORT = 93
	EAFNOSUPPORT    = 97
)

const (
	retErrno   = 0x00050000
	retTrace   = 0x7ff00000
	actionBits = 0xffff0000 // SECCOMP_RET_ACTION_FULL
	dataBits   = 0x0000ffff // SECCOMP_RET_DATA
	maxErrno   = 4095       // MAX_ERRNO, linux/err.h: the kernel cuts larger numbers down to it
)

// Errno returns the action that makes the call fail with a Linux errno, without making it. A
// number above 4095 becomes 4095, as the kernel does it. Errno(0) makes the call seem to
// succeed with result 0.
func Errno(n uint16) Action { return retErrno | Action(min(n, maxErrno)) }

// value returns what the program returns to the kernel.
func (a Action) value() uint32 {
	if a == 0 {
		return uint32(Errno(EPERM))
	}
	return uint32(a)
}

// actionOf turns a program's result into an Action, as kernel/seccomp.c does in
// __seccomp_filter: what the kernel does not know kills the process.
func actionOf(ret uint32) Action {
	switch a := Action(ret & actionBits); a {
	case retErrno:
		return Errno(uint16(ret & dataBits))
	case retTrace:
		return Action(ret)
	case Allow, Log, Notify, Trap:
		return a
	case 0:
		return KillThread
	}
	return KillProcess
}

// canonical says whether a is an Action that this package makes, and that a rule may have.
func (a Action) canonical() bool {
	if a&actionBits == retErrno {
		return a&dataBits <= maxErrno
	}
	switch a {
	case 0, Allow, Log, Notify, Trap, KillThread, KillProcess:
		return true
	}
	return false
}

var errnoNames = [...]struct {
	n    uint16
	name string
}{
	{1, "EPERM"}, {2, "ENOENT"}, {11, "EAGAIN"}, {12, "ENOMEM"}, {13, "EACCES"}, {16, "EBUSY"}, {19, "ENODEV"}, {22, "EINVAL"},
	{25, "ENOTTY"}, {30, "EROFS"}, {38, "ENOSYS"}, {93, "EPROTONOSUPPORT"}, {94, "ESOCKTNOSUPPORT"}, {95, "EOPNOTSUPP"},
	{97, "EAFNOSUPPORT"},
}

// String returns the action as JSON has it: allow, log, notify, trap, kill_thread,
// kill_process, errno(EPERM), errno(71). A value that no rule may have is printed in
// hexadecimal.
func (a Action) String() string {
	switch a {
	case Allow:
		return "allow"
	case Log:
		return "log"
	case Notify:
		return "notify"
	case Trap:
		return "trap"
	case KillThread:
		return "kill_thread"
	case KillProcess:
		return "kill_process"
	}
	if v := a.value(); v&actionBits == retErrno {
		n := uint16(v & dataBits)
		for _, e := range errnoNames {
			if e.n == n {
				return "errno(" + e.name + ")"
			}
		}
		return "errno(" + strconv.Itoa(int(n)) + ")"
	}
	return "action(0x" + strconv.FormatUint(uint64(a), 16) + ")"
}

// MarshalText returns String, or an error that wraps ErrInvalid for a value that no rule may have.
func (a Action) MarshalText() ([]byte, error) {
	if !a.canonical() {
		return nil, &Error{Field: "Action", Detail: a.String(), Err: ErrInvalid}
	}
	return []byte(a.String()), nil
}

// UnmarshalText reads what String writes, and nothing else but errno by number. Its errors wrap ErrInvalid.
func (a *Action) UnmarshalText(text []byte) error {
	s := string(text)
	for _, plain := range [...]Action{Allow, Log, Notify, Trap, KillThread, KillProcess} {
		if s == plain.String() {
			*a = plain
			return nil
		}
	}
	if inner, ok := strings.CutPrefix(s, "errno("); ok {
		if inner, ok = strings.CutSuffix(inner, ")"); ok {
			for _, e := range errnoNames {
				if e.name == inner {
					*a = Errno(e.n)
					return nil
				}
			}
			if n, err := strconv.ParseUint(inner, 10, 16); err == nil && n <= maxErrno && (inner == "0" || inner[0] != '0') {
				*a = Errno(uint16(n))
				return nil
			}
		}
	}
	return &Error{Field: "Action", Detail: strconv.Quote(s), Err: ErrInvalid}
}
