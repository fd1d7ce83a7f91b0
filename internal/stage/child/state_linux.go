package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// st is everything that the stage, init and the unstarted tool know. It is
// static, so that no code below the clone needs an allocation or a large frame.
var st state

type state struct {
	base uintptr
	hdr  *wire.Header
	// Where the ops, the steps and the supervisor's rules are: that program, or, of a command with FlagShares, its session's.
	planBase uintptr
	plan     *wire.Header

	// What init's ops write lies together: the first write, before a process beside init runs on another processor, copies the page that
	// init shares with the stage since fork(2). A copy later interrupts that processor (flush_tlb_mm_range).
	listener int64
	reg      [wire.MaxRegisters]int64
	// Descriptors that wait to be closed (closeLater): bit n for descriptor n, and how many.
	later      [4]uint64
	laterCount uintptr
	checks     [wire.MaxSelfChecks]int32
	how        [3]uint64 // struct open_how
	rule       [2]uint64 // struct landlock_path_beneath_attr
	path       [64]byte
	digits     [24]byte
	stat       syscall.Stat_t
	waited     uint32

	// Of the processes beside init: netFD and detachErrno are written by one each, the rest by init.
	netPID      uintptr
	netFD       uintptr
	netErrno    uintptr // of a namespace that was made before init's ops
	detachPID   uintptr
	detachFD    uintptr
	detachPidfd uintptr
	detachErrno uintptr
	detached    bool // the harness's root is off
	ifreq       ifreq

	control   uintptr // socket to the harness
	stageSock uintptr // the stage's end of the socket between stage and init
	initSock  uintptr // init's end
	initPID   uintptr
	pidfd     int32 // of init
	toolPID   uintptr
	keeperFD  int32 // pidfd of the keeper, or 0
	stagePID  uintptr
	keeperPID uintptr
	threads   bool   // the stage has those of a Go runtime
	oldMask   uint64 // the signal mask the harness started us with

	status  wire.StatusRecord
	message wire.Message

	cwdBytes uintptr // of st.request.Cwd, with its zero
	cwdError uintptr

	// Set by the unstarted tool, read by init, with which it shares memory.
	failedStep  uint32
	failedErrno uintptr
	failedWhere uint32

	poll      [6]sys.PollFD
	iovec     [4][2]uintptr
	msghdr    msghdr
	rights    cmsgFD
	limits    [2][2]uint64 // of descriptors: as they are, and raised
	timer     [4]int64
	sleepless bool // nothing would wake the stage at its deadline
	action    sys.SigAction
	sigset    uint64
	siginfo   [128]byte
	zeroTime  [2]int64
	stops     uint64       // signals that have stopped the tool and are still to come from the stage
	had       uint64       // signals that were sent to init's process group, or to init, and are still to come from the stage if it was the group
	alone     uint64       // those of them that a process outside has sent; hear has asked whether the stage has had them, too
	asks      uint64       // how often the stage has not answered yet; only its last answer is about all of alone
	early     uint64       // signals that the stage had before init was known to the harness
	passed    cmsgMany     // the descriptors of a session's command,
	request   wire.Request // and what else there is of it
	short     [8192]byte   // a program that is not longer, or the header of one
	evidence  [wire.EvidenceSize]byte
	used      uintptr // bytes of evidence

	children [4096]byte

	witness    uintptr
	witnessEnd [2]int32

	// Of a session: what init knows of it.
	session    uintptr // init's end of the session's socket
	entrance   uintptr // and of the one for commands for which a process stands ready; noSocket: there is none
	childrenFD uintptr // init's list of children
	ignored    uint64  // signals that init ignores, as Header.IgnoredSigs
	signals    uintptr // childSignals
	commands   [wire.MaxCommands]command
	bereft     int     // commands whose wardens have ended since the last sweep that found nothing
	rounds     int     // of sweep
	paused     uintptr // WUNTRACED in a pause, in init; 0: there is none
	turn       uintptr // see takeTurn; 0: there is but one supervisor
	lock       flock
	pair       [2]int32 // of sockets that the wardens' supervisors share (supervisor.Share); 0: there is none

	// Of a session's processes that stand ready (ready_linux.go).
	ready       uintptr  // the warden's number, in init; 0: none stands ready
	readySock   uintptr  // init's end of the socket to it, or noSocket; the warden's own end, in the warden
	readyWanted bool     // init makes one when there is nothing else to do,
	readyIn     [2]int64 // and in so long, struct timespec, if the latest command goes on
	latest      uintptr  // the warden of the command that init has heard of last; 0: it has ended
	phase       uint32   // which of the tool's ops run; 0: all, in order
	standing    uint32   // a futex: what the tool is at
	released    uint32   // a futex: not 0 once the command is there
	warmth      uint32   // how the command's tool was started: wire.Warm and what follows it

	toolClone uintptr // clone flags for the tool, where it is pid 1
	initFlags uintptr // where another process than the stage clones init: the clone flags,
	initTop   uintptr // and the end of init's stack
	joinErrno uintptr

	dial wire.DialRequest

	supervisor *supervisor.State // nil: nothing is guarded
	made       uintptr           // the file of the record of what tools have made, in a session; 0: there is none
	retry      [2]int64
	questions  [2]int32 // the ends of the socket on which the harness is asked: init's, and the harness's
}

type msghdr struct {
	_          uintptr // name
	_          [2]uint32
	iov        uintptr
	iovlen     uintptr
	control    uintptr
	controllen uintptr
	flags      int32
	_          int32
}

// cmsgFD is a control message that carries one descriptor, with its padding.
type cmsgFD struct {
	len   uintptr
	level int32
	typ   int32
	fd    int32
	_     int32
}

// cmsgMany is a control message that carries as many as the kernel passes.
type cmsgMany struct {
	len   uintptr
	level int32
	typ   int32
	fds   [256]int32
}

// A command is what init keeps of one of a session.
type command struct {
	warden  uintptr // its number; 0: it has ended
	control uintptr // the socket to the harness, which init holds until no process of the command is left; 0: the place is free
}

// flock is struct flock, of a whole file.
type flock struct {
	kind int16
	_    [15]int16 // whence, start, length, process
}

// keeperRecord is what the keeper tells the stage: init's pid, the number of its
// pidfd in the descriptor table that the two share, or the errno for which it has none.
type keeperRecord struct{ pid, pidfd, errno uintptr }

// ifreq is struct ifreq (netdevice(7)) with flags.
type ifreq struct {
	name  [syscall.IFNAMSIZ]byte
	flags uint16
	_     [22]byte
}

const atCwd = ^uintptr(99) // AT_FDCWD
