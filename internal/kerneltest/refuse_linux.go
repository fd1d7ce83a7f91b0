package kerneltest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// refusal is one rule of a filter: a system call that fails with errno, always
// or when its argument has one of the bits or is the value.
type refusal struct {
	nr    int
	when  condition
	arg   int
	value uint32
	errno unix.Errno
}

type condition int

const (
	always condition = iota
	anyBit
	equals
)

const cloneNew = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

var (
	newMountCalls = []int{
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	}
	oldMountCalls = []int{unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT}
	landlockCalls = []int{unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE, unix.SYS_LANDLOCK_RESTRICT_SELF}
)

// refusals returns the rules that take a feature away; none for a feature that
// is taken away otherwise.
func refusals(f Feature) ([]refusal, error) {
	switch f {
	case UserNamespaces:
		return namespaceRefusals(unix.CLONE_NEWUSER, unix.EPERM), nil
	case UserNamespaceCalls:
		return namespaceRefusals(unix.CLONE_NEWUSER, unix.ENOSYS), nil
	case Namespaces:
		return append(namespaceRefusals(cloneNew, unix.EPERM), refusal{nr: unix.SYS_SETNS, errno: unix.EPERM}), nil
	case MoreUserNamespaces, WholeProc:
		return nil, nil
	case ProcessCalls:
		return refuse(unix.EPERM, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PTRACE), nil
	case Mounts:
		return append(refuse(unix.EPERM, oldMountCalls...), refuse(unix.EPERM, newMountCalls...)...), nil
	case PivotRoot:
		return refuse(unix.EPERM, unix.SYS_PIVOT_ROOT), nil
	case MountAPI:
		return refuse(unix.ENOSYS, newMountCalls...), nil
	case MountSetattr:
		return refuse(unix.ENOSYS, unix.SYS_MOUNT_SETATTR), nil
	case Landlock:
		return refuse(unix.ENOSYS, landlockCalls...), nil
	case LandlockAtBoot:
		return refuse(unix.EOPNOTSUPP, landlockCalls...), nil
	case SeccompFilter:
		return append(refuse(unix.ENOSYS, unix.SYS_SECCOMP),
			refusal{nr: unix.SYS_PRCTL, when: equals, arg: 0, value: unix.PR_SET_SECCOMP, errno: unix.EINVAL}), nil
	case SeccompListener:
		return []refusal{{nr: unix.SYS_SECCOMP, when: anyBit, arg: 1,
			value: unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, errno: unix.EINVAL}}, nil
	case SeccompActions:
		return []refusal{{nr: unix.SYS_SECCOMP, when: equals, arg: 0, value: unix.SECCOMP_GET_ACTION_AVAIL, errno: unix.EINVAL}}, nil
	case Statx:
		return refuse(unix.EPERM, unix.SYS_STATX), nil
	case Faccessat2:
		return refuse(unix.EPERM, unix.SYS_FACCESSAT2), nil
	case MemfdExec:
		return []refusal{{nr: unix.SYS_MEMFD_CREATE, when: anyBit, arg: 1, value: unix.MFD_EXEC, errno: unix.EACCES}}, nil
	}
	if calls, ok := absentCalls[f]; ok {
		return refuse(unix.ENOSYS, calls...), nil
	}
	return nil, fmt.Errorf("kerneltest: no such feature: %q", string(f))
}

// absentCalls are the features that are a few calls which do not exist.
var absentCalls = map[Feature][]int{
	Clone3:     {unix.SYS_CLONE3},
	Openat2:    {unix.SYS_OPENAT2},
	PidFD:      {unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_PIDFD_GETFD},
	CloseRange: {unix.SYS_CLOSE_RANGE},
	Memfd:      {unix.SYS_MEMFD_CREATE},
	Keyrings:   {unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY},
	IOUring:    {unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER},
}

func refuse(errno unix.Errno, calls ...int) []refusal {
	var rules []refusal
	for _, nr := range calls {
		rules = append(rules, refusal{nr: nr, errno: errno})
	}
	return rules
}

// namespaceRefusals refuses by errno the creation of the namespaces in flags. clone's
// flags are its first argument on amd64 and arm64 (clone(2), C library/kernel differences).
func namespaceRefusals(flags uint32, errno unix.Errno) []refusal {
	return []refusal{
		{nr: unix.SYS_CLONE, when: anyBit, arg: 0, value: flags, errno: errno},
		{nr: unix.SYS_UNSHARE, when: anyBit, arg: 0, value: flags, errno: errno},
		{nr: unix.SYS_CLONE3, errno: unix.ENOSYS},
	}
}
