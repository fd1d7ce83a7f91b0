package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// run makes the calls of one place in order and stops at the first that fails.
// It leaves the failure in st and answers whether all went well. Of the tool's ops it makes those of st.phase.
//
//go:norace
//go:nocheckptr
func run(place int) bool {
	for i := uint32(0); i < ops(place).Len; i++ {
		op := op(place, i)
		if place == wire.InTool && st.phase != phaseAll && phaseOf(op.Nr) != st.phase {
			continue
		}
		// The ops are only read: a write would copy their page.
		var arg [6]uintptr
		for j := range op.Arg {
			arg[j] = uintptr(op.Arg[j])
			switch op.Kind[j] {
			case wire.Ptr:
				arg[j] += st.planBase
			case wire.Reg:
				arg[j] = uintptr(st.reg[op.Arg[j]&(wire.MaxRegisters-1)])
			}
		}
		var r, errno uintptr
		if op.Nr >= wire.OpStore32 {
			r, errno = virtualCall(op.Nr, arg[0], arg[1])
		} else {
			r, errno = sys.Call(uintptr(op.Nr), arg[0], arg[1], arg[2], arg[3], arg[4], arg[5])
		}
		if op.Probe > 0 {
			st.checks[(op.Probe-1)&(wire.MaxSelfChecks-1)] = int32(errno) + 1
		} else if errno != 0 && errno != uintptr(op.Ignore[0]) && errno != uintptr(op.Ignore[1]) && errno != uintptr(op.Ignore[2]) {
			st.failedStep, st.failedErrno, st.failedWhere = uint32(op.Step), errno, uint32(place)
			return false // what is to be closed ends with this process
		} else if errno != 0 {
			i += uint32(op.Skip)
		}
		if op.Save >= 0 {
			st.reg[op.Save&(wire.MaxRegisters-1)] = int64(r)
			if errno != 0 {
				st.reg[op.Save&(wire.MaxRegisters-1)] = -1
			}
		}
	}
	closeNow()
	return true
}

// mostLater is how many descriptors wait to be closed: the limit of descriptors may be that of the harness.
const mostLater = 32

// closeLater closes a descriptor together with others, most of which are numbered in a row: the kernel gives each the lowest number that is free.
//
//go:norace
//go:nocheckptr
func closeLater(fd uintptr) uintptr {
	if int32(fd) < 0 || fd >= uintptr(len(st.later)*64) {
		_, errno := sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		return errno
	}
	st.later[fd>>6&3] |= 1 << (fd & 63)
	if st.laterCount++; st.laterCount == mostLater {
		closeNow()
	}
	return 0
}

// closeNow closes the descriptors that wait for it, each row by one call.
//
//go:norace
//go:nocheckptr
func closeNow() {
	for fd := uintptr(0); st.laterCount > 0 && fd < uintptr(len(st.later)*64); fd++ {
		first := fd
		for fd < uintptr(len(st.later)*64) && st.later[fd>>6&3]>>(fd&63)&1 != 0 {
			fd++
		}
		if fd > first {
			sys.Call(sys.SYS_CLOSE_RANGE, first, fd-1, 0, 0, 0, 0)
			st.laterCount -= fd - first
		}
	}
	st.later, st.laterCount = [4]uint64{}, 0
}

// virtualCall runs the ops that are no single system call.
//
//go:norace
//go:nocheckptr
func virtualCall(nr uint32, a, b uintptr) (uintptr, uintptr) {
	switch nr {
	case wire.OpStore32:
		*(*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&a))) = uint32(b)
		return 0, 0
	case wire.OpOwnPID:
		return 0, ownPID(a, b)
	case wire.OpStore64:
		*(*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&a))) = uint64(b)
		return 0, 0
	case wire.OpCwd:
		return 0, enterCwd()
	case wire.OpBounding:
		return 0, dropBounding()
	case wire.OpSignalInit:
		parent, _ := sys.Call(syscall.SYS_GETPPID, 0, 0, 0, 0, 0, 0)
		return sys.Call(syscall.SYS_KILL, parent, 0, 0, 0, 0, 0)
	case wire.OpWitness:
		return 0, startWitness()
	case wire.OpSignalWitness:
		return 0, signalWitness()
	case wire.OpNoNewPrivs:
		return 0, checkNoNewPrivs()
	case wire.OpSignals:
		resetSignals()
		return 0, 0
	case wire.OpJoinNet:
		return 0, joinNet()
	case wire.OpDetach:
		return 0, startDetach(a)
	case wire.OpDetached:
		return 0, awaitDetach(a)
	case wire.OpRootOff:
		return 0, rootOff()
	case wire.OpListener:
		st.listener = int64(a)
		return 0, 0
	case wire.OpNull:
		return 0, ownNull()
	case wire.OpRule:
		return addRule(a, b)
	case wire.OpTerminal:
		return 0, checkTerminal(a, b)
	case wire.OpCloseLater:
		return 0, closeLater(a)
	}
	return layoutOp(nr, a, b)
}

// enterCwd enters the directory that the run names, or the harness's.
//
//go:norace
//go:nocheckptr
func enterCwd() uintptr {
	if st.hdr.Dirs.Len != 0 {
		return enterDir()
	}
	if st.cwdError != 0 {
		return st.cwdError
	}
	_, errno := sys.Call(syscall.SYS_CHDIR, sys.Addr(&st.request.Cwd), 0, 0, 0, 0, 0)
	return errno
}

// dropBounding empties the capability bounding set.
//
//go:norace
//go:nocheckptr
func dropBounding() uintptr {
	for c := uintptr(0); c <= sys.MaxCapability; c++ {
		_, errno := sys.Call(syscall.SYS_PRCTL, sys.PR_CAPBSET_DROP, c, 0, 0, 0, 0)
		if errno == uintptr(syscall.EINVAL) {
			return 0 // past the kernel's last capability
		}
		if errno == uintptr(syscall.EPERM) && c == 0 {
			// An ordinary user outside of a user namespace of the sandbox's has no
			// CAP_SETPCAP. With no_new_privs, set before, no execve gains from
			// the bounding set (capabilities(7), PR_SET_NO_NEW_PRIVS(2const)).
			return 0
		}
		if errno != 0 {
			return errno
		}
	}
	return 0
}

//go:norace
//go:nocheckptr
func checkNoNewPrivs() uintptr {
	is, errno := sys.Call(syscall.SYS_PRCTL, sys.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0)
	if errno == 0 && is != 1 {
		errno = uintptr(syscall.EPERM)
	}
	return errno
}

// checkTerminal returns ENOTTY unless fd is a terminal, which the supervisor is told of where keep is not 0. Of one that was hung up, too,
// nothing can be had: EIO.
//
//go:norace
//go:nocheckptr
func checkTerminal(fd, keep uintptr) uintptr {
	if _, errno := sys.Call(syscall.SYS_IOCTL, fd, syscall.TCGETS, sys.Addr(&st.siginfo), 0, 0, 0); errno != 0 {
		return uintptr(syscall.ENOTTY)
	}
	if keep != 0 && st.plan.Supervisor.Len > 0 {
		keepTerminal(fd)
	}
	return 0
}

// keepTerminal gives the supervisor a descriptor of a terminal that does not hold it open.
//
//go:norace
//go:nocheckptr
func keepTerminal(fd uintptr) {
	const dir = "/proc/self/fd/0\x00"
	for i := range uintptr(len(dir)) {
		st.path[i&63] = dir[i]
	}
	st.path[len(dir)-2] += byte(fd)
	path, errno := sys.Call(syscall.SYS_OPENAT, atCwd, sys.Addr(&st.path), sys.O_PATH|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return
	}
	least := uintptr(st.hdr.Extra) // below are the tool's
	if st.hdr.Flags&(wire.FlagSession|wire.FlagCommand) != 0 {
		least = internals
	}
	up, errno := sys.Call(syscall.SYS_FCNTL, path, syscall.F_DUPFD_CLOEXEC, least, 0, 0, 0)
	sys.Call(syscall.SYS_CLOSE, path, 0, 0, 0, 0, 0)
	if errno == 0 {
		supervisor.KeepTerminal(&supervisorState, int(up))
	}
}

// addRule adds a rule to the Landlock ruleset in RegRuleset. The rule's descriptor is known only here: written into the program, each rule
// would copy the page that it lies in.
//
//go:norace
//go:nocheckptr
func addRule(access, fd uintptr) (uintptr, uintptr) {
	const pathBeneath = 1                                   // LANDLOCK_RULE_PATH_BENEATH
	st.rule = [2]uint64{uint64(access), uint64(uint32(fd))} // struct landlock_path_beneath_attr, 12 bytes, little-endian
	return sys.Call(sys.SYS_LANDLOCK_ADD_RULE, uintptr(st.reg[wire.RegRuleset]), pathBeneath, sys.Addr(&st.rule), 0, 0, 0)
}

// ownNull opens /dev/null anew for each of the tool's descriptors that are it:
// through the harness's mount its owner could change its mode for the machine.
//
//go:norace
//go:nocheckptr
func ownNull() uintptr {
	const device, keep = 1<<8 | 3, syscall.O_ACCMODE | syscall.O_APPEND | syscall.O_NONBLOCK
	for fd := range uintptr(st.hdr.Extra) {
		_, errno := sys.Call(syscall.SYS_FSTAT, fd, sys.Addr(&st.stat), 0, 0, 0, 0)
		if errno != 0 || st.stat.Mode&syscall.S_IFMT != syscall.S_IFCHR || st.stat.Rdev != device {
			continue
		}
		flags, _ := sys.Call(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0, 0, 0, 0)
		own, errno := sys.Call(syscall.SYS_OPENAT, atCwd, text("/dev/null\x00"), flags&keep|syscall.O_CLOEXEC, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		_, errno = sys.Call(syscall.SYS_DUP3, own, fd, 0, 0, 0, 0)
		sys.Call(syscall.SYS_CLOSE, own, 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
	}
	return 0
}
