package supervisor

import "syscall"

// What State holds for the parts of the serving code: buffers, cursors and tables of a fixed size, since nothing can be allocated.

const walkMax = 3 * pathMax

// walk is the cursor of the slow resolution.
type walk struct {
	b     [2][walkMax]byte
	cur   int  // which of b is in use
	pos   uint // the next component
	end   uint
	dir   int
	owned bool
	links int
	fd    int  // the link that is to be followed
	last  bool // and no component follows it
	asked bool // a link of /proc was followed, which means another thing to another process
	comp  [512]byte
	st    syscall.Stat_t
	fsBuf [16]uint64 // struct statfs
}

const mapsBytes = 4096

// mapsScan is the cursor of longPath.
type mapsScan struct {
	fd   int
	b    [mapsBytes]byte
	at   uint // of the next byte in b
	n    uint // bytes in b
	want [32]byte
}

const (
	climbStep = 16
	upLevels  = climbStep + 2 // two more to the parent of "worktrees"
	upName    = 3 * upLevels
	upRoom    = upName + 32
)

// climb is where a look at the directories above a name has come to.
type climb struct {
	fd  int  // O_PATH descriptor of a directory; -1 for none
	own bool // it is closed at the end
	at  uint // how many components of the path in s.m lead to it
}

const waitRoom = 64

// waiting is an open that cannot be answered yet: a FIFO without its other end, a file under a lease.
type waiting struct {
	used  bool
	ready bool
	id    uint64
	dir   int // O_PATH descriptor of the object
	fd    int // a FIFO's end opened for reading, or -1
	flags int
	dev   uint64
	ino   uint64
	who   caller
}

// askRoom is how many opens are asked about at one time. One more is not asked about.
const askRoom = 32

// asking is an open that the harness has been asked about.
type asking struct {
	used   bool
	goesOn bool // the call was only watched: without a descriptor it goes on in the kernel
	id     uint64
	errno  int // the answer to another
	flags  int
	until  timespec // of the monotonic clock
}

const lockRoom = 32

// lock is a lock file that this supervisor made for the tool: see lock_linux.go.
type lock struct {
	fd  int // 0: unused
	dev uint64
	ino uint64
}

const (
	deferredRoom  = 16
	deferredBytes = 1 << 15
)

// deferredWrite is a file that the tool writes into a pipe: see deferred_linux.go.
type deferredWrite struct {
	used bool
	kind int // textNone: a .git file
	hit  uint32
	name [32]byte // with a NUL
	who  caller
	pipe int // its reading end
	dir  int // O_PATH descriptor of the directory that the .git file is for
	n    uint
	b    [deferredBytes]byte
}

const (
	scanDepth   = 32
	scanEntries = 1 << 16
	dentBytes   = 8192
)

// scan is the cursor of conforms.
type scan struct {
	fd     [scanDepth]int
	next   [scanDepth]int64 // where the directory is read on
	size   [scanDepth]uint  // of its path, relative to the first
	at     uint             // the present directory
	left   uint             // entries that may still be looked at
	conf   bool             // there is a configuration
	closes bool             // what every user could write is closed to others
	dent   [dentBytes]byte
}

const indexBytes = 65536

// indexScan is the cursor of harmlessIndex.
type indexScan struct {
	fd     int
	at     uint // of the next byte in b
	n      uint // bytes in b
	read   uint // bytes taken
	filled uint // bytes read into b
	total  uint // the file's size
	bad    bool
	b      [indexBytes]byte
	why    Reason

	version, left, oid uint // as the header has them; left: entries that were not read yet
	live               bool // there is a present entry

	// The present entry.
	name [pathMax]byte
	size uint
	mode uint
	id   [32]byte

	// What git with several threads goes by, as the file says it.
	end    uint // where the entries end, or 0
	block  [indexBlocks]indexBlock
	blocks uint
}

// indexEntries is what the entries of an index are judged by: see gitentries_linux.go.
type indexEntries struct {
	held   bool // names in the work tree are protected
	looked bool // a shared index of the one that is replaced was looked for
	tree   int  // O_PATH descriptor of the work tree; -1: it is not known
	dir    int  // O_PATH descriptor of the directory that the index is in
	prefix uint // how much of the path in State.m stands for the work tree's
	budget uint // bytes that may still be read to compare files
}

const indexBlocks = 512

// indexBlock is a number of entries, the first of which begins at an offset.
type indexBlock struct{ offset, entries uint }

// heldPort is a port at which the tool serves, or did.
type heldPort struct {
	fd   int // the supervisor's socket; -1: this is none
	life int // an epoll instance that shows whether the tool's socket is there still: its last close(2) takes it out (epoll(7))
	addr [4]byte
	port [2]byte
	open bool // no other socket than the tool's listens here, and none can
}

// portRoom is how many ports are known at once. Of more servers the oldest cannot be connected to any more.
const portRoom = 32

// inetAddress is the address of the call in hand, as the supervisor writes it for the kernel.
type inetAddress struct {
	family byte // AF_INET or AF_INET6
	addr   [4]byte
	port   [2]byte
	six    bool // ::1 or :: was meant
	any    bool // 0.0.0.0 or :: was
}

// sharedRecord is a message between supervisors (shared_linux.go): a port, with the two descriptors of a heldPort, or a file, with one.
type sharedRecord struct {
	dev, ino uint64
	addr     [4]byte
	port     [2]byte
	isOpen   bool
	isFile   bool
}

// cmsgFDs is a control message with two descriptors; of one with one its size says so.
type cmsgFDs struct {
	size       uintptr
	level, typ int32
	fds        [2]int32
}

// fileID says which file one is: its number, and that of its device.
type fileID struct {
	ino uint64
	dev [2]uint32
}

// fileSeen is struct statx of linux/stat.h, as far as it is asked for.
type fileSeen struct {
	mask  uint32
	_     [3]uint32
	nlink uint32
	_     [2]uint32
	mode  uint16
	_     uint16
	ino   uint64
	_     [5]uint64
	birth [2]uint64 // seconds and nanoseconds
	_     [2]uint64
	wrote [2]uint64 // mtime
	_     [2]uint32
	dev   [2]uint32
	mount uint64
	_     [13]uint64
}

const mountRoom = 16
