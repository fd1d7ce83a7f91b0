package supervisor

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/supervisor/gittext"
)

// State is everything the serving code reads and writes. It holds the only
// memory that the serving code uses; about 400 KiB, of which most is never touched.
type State struct {
	listener int
	fdDir    int  // O_PATH descriptor of the supervisor's own /proc/self/fd
	procRoot int  // O_PATH descriptor of the same procfs
	apart    bool // KeepApart was called
	stat     [128]byte
	rootDir  int // O_PATH descriptor of /
	self     uint
	mountNS  [64]byte // its name, as /proc/self/ns/mnt has it
	umask    uint     // what the supervisor's own umask is at present; ^0 before it is known

	req  notification
	resp response
	add  addFD
	near near
	how  openHow
	iov  [2]iovec
	sent bool // the notification is answered, or will be later

	op    uint8 // what the call in hand does: see decode
	in    [2]input
	flags int
	mode  int
	dev   int
	times [2]timespec

	tracer   int  // a pidfd of the one process that may stop tracees at their end, or -1: see trace
	tracerID uint // its number
	poll     pollFD
	pause    timespec

	task       int // O_PATH descriptor of /proc/<taskID>, and status opened in it; -1 for none
	taskStatus int
	taskID     uint32

	memory     int // /proc/<taskID>/mem during a call, or -1
	sockets    [socketRoom]ownSocket
	socketTurn uint // the socket that is forgotten next
	bound      [boundRoom]boundFile
	boundTurn  uint
	before     [64]byte // what stands before the tool's abstract names
	beforeSize uint
	ports      [portRoom]heldPort
	portTurn   uint   // the port that is forgotten next
	place      uint   // what the tool's loopback addresses and abstract names are made of
	pair       [2]int // see shared_linux.go; 0: the tool's sockets are its command's alone
	sharing    sharedRecord
	passing    cmsgFDs
	to         inetAddress
	value      int32  // of an option of a socket
	size       uint32 // of what the kernel writes

	given     uint64            // the session whose controlling terminal was made outside of the sandbox; 0: none's was
	terminals [terminalRoom]int // O_PATH descriptors of those that the tool may open by a path; 0 for none. A fork has them, too

	path      [2][pathRoom]byte
	plen      [2]uint
	num       [64]byte
	small     [512]byte
	linger    [2]int32 // struct linger
	st        syscall.Stat_t
	resolved  [2]resolvedPath
	w         walk
	maps      mapsScan
	m         matcher
	text      [2]gittext.Text
	textBase  int // see setTexts
	wait      [waitRoom]waiting
	waits     int
	pendingFD int // a FIFO's end that is put off

	seen      fileSeen
	ownMounts [mountRoom]uint64 // the numbers of mounts of this namespace
	mountTurn uint              // the one that is forgotten next
	rootIDs   [MaxEntries]fileID
	rootCount uint

	up       [upRoom]byte // "../" again and again, then a name
	climb    climb
	scan     scan
	index    indexScan
	was      indexScan // the index that is replaced
	wasPart  indexScan // and its shared index
	entries  indexEntries
	blob     blobSum
	locks    [lockRoom]lock
	turn     uint // the lock that is forgotten next
	copyName [32]byte

	deferred      [deferredRoom]deferredWrite
	deferredCount int      // deferred writes in use
	ends          [2]int32 // of a new pipe

	asks     int // the socket of questions; -1 for none
	asking   [askRoom]asking
	asked    int // of asking, in use
	question questionRecord
	answered answerRecord
	message  msghdr
	rights   cmsgFD
	now      timespec

	record   uintptr   // the address of a madeTable, or 0: see made_linux.go
	recordFD int       // its file, for the lock
	lock     [4]uint64 // struct flock
	since    timespec  // before the directory was made
	oldWho   uint64    // see isOld

	denials uintptr // the address of a denialTable, or 0
	watched uintptr // the address of a watchTable, or 0
	known   caller  // what identify has found last, of the thread knownID
	knownID uint32
	why     Reason // of the refusal in hand
	side    uint8  // and which path is refused
	left    Reason // of bits of the mode that the call asked for and that are left out

	// Refused counts the calls answered with EACCES because of a rule.
	Refused uint64
}

// literal puts a NUL-terminated word into s.num.
//
//go:norace
func (s *State) literal(word string) {
	for i := 0; i < len(word) && i < 60; i++ {
		s.num[i&63] = word[i]
	}
	s.num[len(word)&63] = 0
}

// number puts prefix and n, NUL-terminated, into s.num and returns the length.
//
//go:norace
func (s *State) number(prefix string, n uint) uint {
	s.literal(prefix)
	at := uint(len(prefix))
	digits := uint(1)
	for v := n; v >= 10; v /= 10 {
		digits++
	}
	end := at + digits
	for i := end; i > at; i-- {
		s.num[(i-1)&63] = byte('0' + n%10)
		n /= 10
	}
	s.num[end&63] = 0
	return end
}

// nsName reads the link s.num in dir into s.small: its length, at most 63, or a negative errno.
//
//go:norace
func (s *State) nsName(dir int) int {
	return sys(syscall.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&s.num[0])), uintptr(unsafe.Pointer(&s.small[0])), 63, 0)
}
