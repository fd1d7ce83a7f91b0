package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A harness that keeps a shell ends what the shell runs by signals to the shell's children: pgrep -P PID, and
// SIGTERM. Of the process that the harness has started these are init, or the keeper, or the relay of a session's
// command (relayMain). What a process outside sends to one of those alone is for the children of the tool.
//
// Init knows a process outside its pid namespace by the sender's number, which is 0 (send_signal_locked in
// kernel/signal.c), or that of the keeper, which passes on what it gets. sigqueue(3) cannot pretend to be kill(2).
// Where the user's queue of signals is full the kernel forgets who has sent one; then a tool can have init do what it
// could do itself, since whom it may signal are init and its own children.

// childrensSignals are those that are passed on: those by which harnesses end a process. One that a program counts, such as SIGUSR1, is not:
// a signal to the whole group could come twice.
const childrensSignals = 1<<(syscall.SIGHUP-1) | 1<<(syscall.SIGINT-1) | 1<<(syscall.SIGQUIT-1) | 1<<(syscall.SIGTERM-1)

// toChildren marks the number of a signal that the stage sends: it is for the tool's children.
const toChildren = 0x80

// forChildren returns the signals that serve waits for beside SIGCHLD. A warden is in the harness's process group,
// which its tool and perhaps its stage have left: what comes to it says nothing.
//
//go:norace
//go:nocheckptr
func forChildren() uint64 {
	if st.hdr.Flags&wire.FlagCommand != 0 {
		return 0
	}
	return childrensSignals
}

// hear reads the signals that have come. Of one from outside it asks whether the stage has had it, too: then it was
// sent to the process group, and is not for the tool's children. kill(2) signals a group with the kernel's lock of
// all tasks held, which setpgid(2) takes to write, whatever it returns: after that the stage has the signal. What a
// process inside has sent is dropped.
//
// The kernel does not say whether a group was signalled, so two cases stay. Init, busy, finds two signals to the group as one (signal(7)), of which
// the stage has had each: the tool gets a third. A process that signals init and then the stage, each alone, before init has asked, is taken for one
// that has signalled the group: the tool does not get it, nor do its children. Most tools are apart from the group (FlagApart), and neither is so.
//
//go:norace
//go:nocheckptr
func hear() {
	const code, sender, size, none = 8, 12, 128, 0x7fffffff // struct signalfd_siginfo
	n, errno := sys.Call(syscall.SYS_READ, uintptr(st.poll[1].FD), sys.Addr(&st.children), unsafe.Sizeof(st.children), 0, 0, 0)
	before := st.alone
	for i := uintptr(0); errno == 0 && i+size <= n && i+size <= uintptr(len(st.children)); i += size {
		info := unsafe.Add(unsafe.Pointer(&st.children), i)
		sig, from := *(*uint32)(info)&63, uintptr(*(*uint32)(unsafe.Add(info, sender)))
		if syscall.Signal(sig) == syscall.SIGCHLD || st.hdr.Flags&wire.FlagPIDNS != 0 && from != 0 {
			continue
		}
		st.had |= 1 << sig
		if from == st.keeperPID && *(*uint32)(unsafe.Add(info, code)) == 0 { // SI_USER: not the terminal's
			st.alone |= 1 << sig
		}
	}
	if st.hdr.Flags&wire.FlagApart != 0 { // init is in no group that the stage is in
		signalChildren(st.alone)
		st.had, st.alone = 0, 0
	} else if st.alone != before {
		sys.Call(syscall.SYS_SETPGID, none, 0, 0, 0, 0, 0)
		st.asks++
		tellStop(wire.StatusAsked)
	}
}

// signalChildren sends the signals of a mask to the tool's children.
//
//go:norace
//go:nocheckptr
func signalChildren(signals uint64) {
	proc := uintptr(st.reg[wire.RegProc])
	if st.toolClone != 0 { // init has no place in the tool's procfs
		proc = atCwd
	}
	for sig := uintptr(1); signals>>sig != 0; sig++ {
		if signals>>sig&1 != 0 && int(st.toolPID) > 0 {
			signalBelow(proc, st.toolPID, sig, belowChildren)
		}
	}
}
