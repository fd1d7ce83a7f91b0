package host

import (
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// probes are the calls that Read makes of this process and the trial of namespaces of a child's, and that a filter may not allow.
var probes = []struct {
	name   string
	number uintptr
}{
	{"seccomp(2)", unix.SYS_SECCOMP}, {"landlock_create_ruleset(2)", unix.SYS_LANDLOCK_CREATE_RULESET}, {"mount(2)", unix.SYS_MOUNT}, {"pidfd_open(2)", unix.SYS_PIDFD_OPEN},
	{"pidfd_getfd(2)", unix.SYS_PIDFD_GETFD}, {"process_vm_readv(2)", unix.SYS_PROCESS_VM_READV}, {"keyctl(2)", unix.SYS_KEYCTL}, {"openat2(2)", unix.SYS_OPENAT2},
	{"memfd_create(2)", unix.SYS_MEMFD_CREATE}, {"close_range(2)", unix.SYS_CLOSE_RANGE}, {"unshare(2)", unix.SYS_UNSHARE}, {"setns(2)", unix.SYS_SETNS},
}

// spared are calls without which the sandbox is slower, and nothing else.
var spared = []uintptr{unix.SYS_SCHED_GETAFFINITY, unix.SYS_SCHED_SETAFFINITY, unix.SYS_GETCPU, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_SETSCHEDULER}

// killing returns the first of the probes for which a filter kills the process that makes it; "": none. And whether it kills for one of those
// that are spared. systemd's SystemCallFilter= does so unless SystemCallErrorNumber= is there (systemd.exec(5)). It costs a fork, and is asked
// only where a filter is in force.
func killing() (probe string, noSchedule bool) {
	all := slices.Clone(spared)
	for _, p := range probes {
		all = append(all, p.number)
	}
	if !kills(all) {
		return "", false
	}
	for _, p := range probes {
		if kills([]uintptr{p.number}) {
			return p.name, false
		}
	}
	return "", kills(spared)
}

// kills reports whether a child is killed by SIGSYS when it makes calls, whose arguments no kernel accepts. A harness that waits for every child, by
// __WALL, can take this one (wait(2)): then what ended before it had made the calls was killed.
func kills(calls []uintptr) bool {
	made, status, err := endOf(calls)
	return err == nil && status.Signaled() && status.Signal() == unix.SIGSYS || err == unix.ECHILD && !made
}

// endOf forks a child that makes calls, waits for its end, and reports whether it made them all.
func endOf(calls []uintptr) (made bool, status unix.WaitStatus, err error) {
	shared, err := unix.Mmap(-1, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return false, 0, err
	}
	defer unix.Munmap(shared)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return false, 0, err
	}
	pid, errno := forkAndCall(calls, &shared[0])
	unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if errno != 0 {
		return false, 0, errno
	}
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Wait4(pid, &status, unix.WALL, nil)
	}
	return shared[0] != 0, status, err
}

// forkAndCall forks a child that makes calls, says so in memory that it shares, and exits. In the child there is the calling thread alone, with every signal blocked: it allocates nothing,
// takes no lock, makes raw calls, and does not return. Its end sends no signal, which a harness might take for that of another child, and dumps no core,
// which SIGSYS does (signal(7)): that would be all the harness's memory, in its working directory or with the machine's crash reporter.
//
//go:norace
//go:noinline
func forkAndCall(calls []uintptr, made *byte) (int, unix.Errno) {
	const none = ^uintptr(0)
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, 0, 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return int(pid), errno
	}
	unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0, 0)
	for _, number := range calls {
		unix.RawSyscall6(number, none, none, none, none, none, none)
	}
	*made = 1
	for {
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
