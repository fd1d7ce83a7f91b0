package supervisor

import (
	"syscall"
	"unsafe"
)

// trace lets one process at a time ask for PTRACE_O_TRACEEXIT, as strace and ltrace always do; another gets EINVAL.
//
// A task that is killed while it is traced with this option stops (PTRACE_EVENT_EXIT, ptrace(2)) until the thread that
// traces it goes on or exits, and a second SIGKILL is dropped. Two processes that trace each other so can never be killed.
// Here there is no such pair, nor a longer circle, because all tracees with the option have their tracers in one process:
//
//   - The option is set by PTRACE_SEIZE and PTRACE_SETOPTIONS alone, in either of its numbers, and the filter sends them
//     here when they carry it. PTRACE_ATTACH and PTRACE_TRACEME set no option.
//   - A process or thread that a tracee makes (PTRACE_O_TRACEFORK, VFORK, CLONE) inherits tracer and options: the tracer is
//     a thread of the same process. A child of the tracer inherits nothing of its tracees.
//   - A thread of this process cannot be such a tracee: a tracer's own thread group cannot be traced by it (ptrace_attach
//     in kernel/ptrace.c). So its threads die when they are killed, whether they are traced without the option or
//     not, and let their tracees go (exit_ptrace).
//   - Another process may ask when this one has ended to the last thread, which a pidfd says (pidfd_open(2)): a
//     thread's tracees are let go before it counts as ended (exit_notify in kernel/exit.c). An execve(2) changes neither
//     the process nor its tracees.
//
// Whom the call is about is not looked at: between a look at a number and the kernel's own, a thread of another
// process can get that number. The caller's number is its own as long as it waits. The call's arguments that count
// are in registers, which nothing changes while the caller waits, so the kernel carries it out: it is the only call answered
// by SECCOMP_USER_NOTIF_FLAG_CONTINUE (seccomp_unotify(2)). Processes of another sandbox have another supervisor; package
// sandbox leaves it to the supervisor only where they cannot be traced, and else refuses the option to all.
//
//go:norace
func (s *State) trace() int {
	caller := s.leader()
	if caller == 0 {
		return -eINVAL
	}
	if s.tracer >= 0 && s.traceesFree(s.tracer) {
		closeFD(s.tracer)
		s.tracer = -1
	}
	if s.tracer < 0 {
		fd := sys(sysPidfdOpen, uintptr(caller), 0, 0, 0, 0)
		if fd < 0 {
			return -eINVAL
		}
		if r := s.alive(); r < 0 {
			closeFD(fd)
			return r
		}
		s.tracer, s.tracerID = fd, caller
	}
	if caller != s.tracerID {
		s.refuse(ReasonTracer)
		return -eINVAL
	}
	s.resp.id, s.resp.val, s.resp.errno, s.resp.flags = s.req.id, 0, 0, notifyContinue
	s.sent = true
	sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlSend, uintptr(unsafe.Pointer(&s.resp)), 0, 0)
	return 0
}

// traceesFree reports whether all threads of a pidfd's process have exited.
//
//go:norace
func (s *State) traceesFree(pidfd int) bool {
	s.poll.fd, s.poll.events, s.poll.revents = int32(pidfd), pollIn, 0
	s.pause = timespec{}
	r := sys(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&s.poll)), 1, uintptr(unsafe.Pointer(&s.pause)), 0, 0)
	return r == 1 && s.poll.revents&pollIn != 0
}
