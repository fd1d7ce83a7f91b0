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
	reg  [wire.MaxRegisters]int64

	control   uintptr // socket to the harness
	stageSock uintptr // the stage's end of the socket between stage and init
	initSock  uintptr // init's end
	initPID   uintptr
	pidfd     int32 // of init
	toolPID   uintptr
	keeperFD  int32 // pidfd of the keeper, or 0
	stagePID  uintptr
	keeperPID uintptr
	threads   bool // the stage has those of a Go runtime
	kept      keeperRecord
	oldMask   uint64 // the signal mask the harness started us with

	checks  [wire.MaxSelfChecks]int32
	status  wire.StatusRecord
	message wire.Message

	cwd      [4097]byte
	cwdError uintptr

	// Set by the unstarted tool, read by init, with which it shares memory.
	failedStep  uint32
	failedErrno uintptr
	failedWhere uint32
	listener    int64

	// Of the process that makes the network namespace; written by it, read by init.
	netPID   uintptr
	netErrno uintptr
	netFD    uintptr
	ifreq    ifreq

	poll      [5]sys.PollFD
	iovec     [4][2]uintptr
	msghdr    msghdr
	rights    cmsgFD
	limits    [2][2]uint64 // of descriptors: as they are, and raised
	timer     [4]int64
	sleepless bool // nothing would wake the stage at its deadline
	action    sys.SigAction
	sigset    uint64
	siginfo   [128]byte
	stat      syscall.Stat_t
	zeroTime  [2]int64
	waited    uint32
	stops     uint64 // signals that have stopped the tool and are still to come from the stage
	path      [64]byte
	digits    [24]byte
	evidence  [wire.EvidenceSize]byte
	used      uintptr // bytes of evidence

	children [4096]byte

	how       [3]uint64 // struct open_how
	toolClone uintptr   // clone flags for the tool, where it is pid 1
	joinFlags uintptr
	joinTop   uintptr
	joinErrno uintptr

	dial wire.DialRequest

	supervisor *supervisor.State // nil: nothing is guarded
	retry      [2]int64
}

type msghdr struct {
	_          uintptr // name
	_          [2]uint32
	iov        uintptr
	iovlen     uintptr
	control    uintptr
	controllen uintptr
	_          [2]int32 // flags
}

// cmsgFD is a control message that carries one descriptor, with its padding.
type cmsgFD struct {
	len   uintptr
	level int32
	typ   int32
	fd    int32
	_     int32
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
