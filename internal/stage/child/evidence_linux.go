package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// The evidence is a sequence of records: what (a byte, an index into
// wire.EvidenceNames), length (two bytes, little-endian), data.
//
// checkExecuted runs in init as soon as it resumes, which is when the tool has
// executed or died. It reads the tool's status from the kernel, decides
// whether the tool was executed, and reports.
//
//go:norace
//go:nocheckptr
func checkExecuted() {
	if st.failedErrno != 0 { // an op or execve failed; the tool's process has exited
		failInit()
	}
	if !executed() {
		st.used = 0 // what was read of it says no more than that
		if status := endOfTool(); status != 0 && syscall.Signal(status) != syscall.SIGSYS {
			// By a process outside, another command's, or for want of memory: its command ends as one of os/exec's that is killed between fork and execve.
			st.status = wire.StatusRecord{Kind: wire.StatusEnded, Status: status}
			endInit()
		}
		st.failedStep, st.failedErrno, st.failedWhere = wire.StepKilled, uintptr(syscall.EPERM), wire.InTool
		failInit()
	}
	// Before the harness hears that the tool runs: from then on the ends of its
	// pipes are the tool's alone.
	sys.Call(sys.SYS_CLOSE_RANGE, 0, uintptr(st.hdr.Extra)-1, 0, 0, 0, 0)
	st.message = wire.Message{Kind: wire.MsgStarted, Step: st.warmth, Check: st.checks, Value: st.reg[wire.RegKeyring]}
	sendHeld(st.reg[wire.RegMounts])
	for i := uintptr(1); i < wire.NumberEvidence; i++ {
		collect(i)
	}
	sendQuestions()
	st.message = wire.Message{Kind: wire.MsgEvidence, Value: int64(st.used)}
	sendEvidence(makeDenials())
	closeInitFDs()
}

// closeInitFDs closes what init no longer needs.
//
//go:norace
//go:nocheckptr
func closeInitFDs() {
	if st.hdr.Flags&wire.FlagCommand == 0 {
		sys.Call(syscall.SYS_CLOSE, st.control, 0, 0, 0, 0, 0)
	}
	// Only registers that still hold what they name: the number in RegRuleset, for
	// one, has been closed and given to the supervisor's listener.
	for i := range wire.RegProc {
		if st.reg[i] > 0 {
			sys.Call(syscall.SYS_CLOSE, uintptr(st.reg[i]), 0, 0, 0, 0, 0)
		}
	}
	if st.reg[wire.RegMounts] > 0 {
		sys.Call(syscall.SYS_CLOSE, uintptr(st.reg[wire.RegMounts]), 0, 0, 0, 0, 0)
	}
	if st.hdr.Flags&wire.FlagCommand == 0 {
		closeGivenFDs()
	}
}

// executed waits until the tool's process is known to have reached its new
// program, or to have died before: its own filter killed it. execve(2) wakes a
// vfork's parent shortly before it renames the thread (exec_mmap comes before
// __set_task_comm in begin_new_exec), so a living process with the name it had
// before is about to lose it. Init sleeps meanwhile, for its timer's slack of some 50 us:
// where both share a processor, sched_yield(2) would run the tool to the end of its time slice.
//
//go:norace
//go:nocheckptr
func executed() bool {
	shortest := [2]int64{0, 1} // struct timespec
	for {
		dead := toolDied()
		st.used = 0
		collect(0)
		if !unnamed() {
			return true
		}
		if dead {
			return false
		}
		sys.Call(syscall.SYS_NANOSLEEP, sys.Addr(&shortest), 0, 0, 0, 0, 0)
	}
}

// toolDied asks without reaping (waitid(2), WNOWAIT). It is asked before the
// name is read: a name read after death is final.
//
//go:norace
//go:nocheckptr
func toolDied() bool {
	const pPID, wExited, wNoWait = 1, 4, 0x1000000
	clear(st.siginfo[:])
	_, errno := sys.Call(syscall.SYS_WAITID, pPID, st.toolPID, sys.Addr(&st.siginfo), wExited|sys.WNOHANG|wNoWait, 0, 0)
	return errno != 0 || st.siginfo[0] == byte(syscall.SIGCHLD)
}

// endOfTool returns the signal that has killed the tool, as toolDied has found it; 0: none has.
//
//go:norace
//go:nocheckptr
func endOfTool() uint32 {
	const code, status, killed, dumped = 8, 24, 2, 3 // si_code, si_status, CLD_KILLED, CLD_DUMPED
	if c := st.siginfo[code]; c != killed && c != dumped {
		return 0
	}
	return uint32(st.siginfo[status])
}

// unnamed reports whether the status just read bears, in its first line, the
// name that the process had before execve.
//
//go:norace
//go:nocheckptr
func unnamed() bool {
	const skip = 3 + len("Name:\t") // the record's header and the field's name
	name := &st.hdr.Name
	for i := range len(name) - 1 {
		if st.evidence[skip+i] != name[i] {
			return false
		}
	}
	return true
}

// collect reads evidence file i of the tool and appends its record.
//
//go:norace
//go:nocheckptr
func collect(i uintptr) {
	if st.used+3 >= wire.EvidenceSize {
		return
	}
	pathOf(i, false)
	room := uintptr(wire.EvidenceSize) - st.used - 3
	buf := sys.Addr(&st.evidence) + st.used + 3
	n, errno := uintptr(0), uintptr(0)
	if i < wire.NumberFiles {
		var fd uintptr
		fd, errno = sys.Call(syscall.SYS_OPENAT, uintptr(st.reg[wire.RegProc]), sys.Addr(&st.path), syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			n, errno = sys.Call(syscall.SYS_READ, fd, buf, room, 0, 0, 0)
			sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
	} else {
		n, errno = sys.Call(syscall.SYS_READLINKAT, uintptr(st.reg[wire.RegProc]), sys.Addr(&st.path), buf, room, 0, 0)
		if errno != 0 {
			// The tool has ended already, and the dead have no namespaces
			// (exit_task_namespaces). It was in init's: nothing lay between but execve.
			pathOf(i, true)
			n, errno = sys.Call(syscall.SYS_READLINKAT, uintptr(st.reg[wire.RegProc]), sys.Addr(&st.path), buf, room, 0, 0)
		}
	}
	if errno != 0 || n > 0xffff {
		n = 0
	}
	header := (*[3]byte)(unsafe.Add(unsafe.Pointer(&st.evidence), st.used))
	header[0], header[1], header[2] = byte(i), byte(n), byte(n>>8)
	st.used += 3 + n
}

// pathOf writes "PID/file" into st.path; "self/file" for init's own.
//
//go:nosplit
//go:norace
//go:nocheckptr
func pathOf(i uintptr, own bool) {
	const names, self = wire.EvidenceNames, "self"
	n := uintptr(0)
	if st.toolClone != 0 { // init has no place in that procfs
		st.path[0], n = '1', 1
	} else if own {
		for ; n < uintptr(len(self)); n++ {
			st.path[n] = self[n]
		}
	} else {
		for d := decimal(&st.digits, st.toolPID); d < uintptr(len(st.digits)); d++ {
			st.path[n&63] = st.digits[d]
			n++
		}
	}
	field := uintptr(0)
	for j := range len(names) {
		if names[j] == 0 {
			if field == i {
				break
			}
			field++
			continue
		}
		if field == i {
			st.path[n&63] = names[j]
			n++
		}
	}
	st.path[n&63] = 0
}
