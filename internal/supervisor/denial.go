package supervisor

import "unsafe"

// What is refused is recorded in a table of a fixed size, in memory that init shares with the harness and with no other process:
// see record_linux.go. The table is written by init alone, and the harness copies it (ReadDenials). Records are added and never
// changed, but for their count; so the first denials stay, whatever a flood of others does.

// A Deed is what a process wanted to do.
type Deed uint8

// The deeds. DeedCall is a call that was not looked at, because its arguments could not be read.
const (
	DeedCall Deed = iota
	DeedRead
	DeedWrite
	DeedCreate
	DeedMakeDir
	DeedMakeNode
	DeedSymlink
	DeedRemove
	DeedRemoveDir
	DeedRename
	DeedExchange
	DeedLink
	DeedTruncate
	DeedMode
	DeedSetID
	DeedBind
	DeedConnect
	DeedOwner
	DeedTimes
	DeedTrace
	DeedAttribute
	DeedLook // of Rules.Watch
	DeedExecute
	deedCount
)

// A Reason says why a call was refused.
type Reason uint8

// The reasons. ReasonName is that of a rule on the name itself, which CauseOf finds.
const (
	ReasonNone         Reason = iota
	ReasonName                // a protected or hidden name
	ReasonOwn                 // the supervisor's own files in /proc
	ReasonLost                // a directory whose path cannot be told
	ReasonComplete            // the directory would become a git directory, and holds what one may not hold
	ReasonCease               // the directory would be a git directory no more, and holds what one may not hold
	ReasonNewGit              // Rules.NoNewGit
	ReasonConfig              // lines of a git configuration that are not harmless would change
	ReasonSecondConfig        // extensions.worktreeConfig would change
	ReasonText                // a text that git obeys says what is not harmless
	ReasonLock                // the lock is not this sandbox's
	ReasonIndex               // an index with names or sizes that are not harmless, or that is open for writing
	ReasonEntry               // an index with a protected name that the one which it replaces did not have; Paths[0] is that name
	ReasonNode                // no link, device or directory comes into a git directory
	ReasonWay                 // a .git file would lead out of the roots by it
	ReasonPlace               // the user's directory or link has been here: what the tool has made would be taken for it
	ReasonPrefix              // a directory on the way to a protected name
	ReasonRace                // another process made it a git directory at the same time
	ReasonAddress             // Rules.Connects has no such address
	ReasonSocket              // no socket of TCP
	ReasonFence               // Rules.Fence
	ReasonSetID               // the call was made without the setuid and setgid bits
	ReasonOthers              // the call was made without the bits that would let other users write a directory, or read what is hidden in it
	ReasonMemory              // the process hides its memory, so its arguments cannot be read
	ReasonMounts              // the process is in another mount namespace
	ReasonTracer              // another process has tracees with PTRACE_O_TRACEEXIT
	ReasonAbsent              // of Rules.Watch: the path is not there, or may not be used so
	reasonCount
)

const (
	// DenialRoom is how many different denials are recorded.
	DenialRoom = 128
	// DenialPathRoom is how many bytes of a path are.
	DenialPathRoom = 1024

	commandRoom = 512
	commRoom    = 16
)

// DenialBytes is the size of the table.
const DenialBytes = unsafe.Sizeof(denialTable{})

// DenialsUsed, NamesUsed and DotsUsed are where the table has the numbers of its denials and names, as uint32.
const (
	DenialsUsed = unsafe.Offsetof(denialTable{}.used)
	NamesUsed   = unsafe.Offsetof(denialTable{}.names) + unsafe.Offsetof(nameTable{}.used)
	DotsUsed    = unsafe.Offsetof(denialTable{}.dots) + unsafe.Offsetof(nameTable{}.used)
)

// denialTable is the shared memory. The last record is the one that is being made, and never counts.
type denialTable struct {
	used   uint32 // records that are whole
	_      uint32
	beyond uint64 // calls that were refused and have no record
	hash   [DenialRoom + 1]uint64
	record [DenialRoom + 1]denialRecord
	names  nameTable // that are protected elsewhere, made in directories that the tool has made
	dots   nameTable // that begin with a dot and that no list has, made in directories that are held
}

// NameRoom is how many different names a nameTable has room for.
const NameRoom = 32

// nameTable is a list of paths, each once.
type nameTable struct {
	used   uint32
	_      uint32
	beyond uint64 // calls that had another name, for which there was no room
	hash   [NameRoom]uint64
	size   [NameRoom]uint16
	path   [NameRoom][DenialPathRoom]byte
}

type denialRecord struct {
	count  uint64
	time   [2]int64 // seconds and nanoseconds since 1970, of the first
	hit    [2]uint32
	deed   uint8
	reason uint8
	side   uint8 // which of the two paths
	_      uint8
	git    [2]uint16 // where the part of the path begins that lies in a git directory; 0: it lies in none
	size   [2]uint16 // of the paths, which may be more than there is room for
	who    caller
	path   [2][DenialPathRoom]byte
}

// caller is the process that made the call. Name and command line are its own text.
type caller struct {
	pid     uint32
	size    uint32 // of command
	comm    [commRoom]byte
	command [commandRoom]byte
}

// sum is a number for what makes two denials the same, FNV-1a.
//
//go:norace
func (d *denialRecord) sum() uint64 {
	h := uint64(0xcbf29ce484222325)
	h = (h ^ uint64(d.deed)) * 0x100000001b3
	h = (h ^ uint64(d.reason)) * 0x100000001b3
	for k := 0; k < 2; k++ {
		h = (h ^ uint64(d.size[k&1])) * 0x100000001b3
		for i := uint(0); i < uint(d.size[k&1]) && i < DenialPathRoom; i++ {
			h = (h ^ uint64(d.path[k&1][i])) * 0x100000001b3
		}
	}
	return h
}

// questionRecord is a question on the socket: see ask.go.
type questionRecord struct {
	id     uint64
	gone   uint32
	errno  int32
	flags  int32
	_      int32
	denial denialRecord
}

// answerRecord is the answer, with which a descriptor comes if the open succeeds.
type answerRecord struct{ id uint64 }
