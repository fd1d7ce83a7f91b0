package supervisor

import "syscall"

// What a call does. The old forms of the calls are the new ones with AT_FDCWD and no flags.
const (
	opOpen = iota + 1
	opMakeDir
	opMakeNode
	opSymlink
	opUnlink
	opRename
	opLink
	opTruncate
	opChmod
	opBind
	opListen
	opConnect
	opSocket
	opChown
	opTimes
	opTrace
	opSetAttribute
	opRemoveAttribute
	opLook    // of Rules.Watch
	opExecute // as opLook
)

// Where a path argument comes from.
const (
	fromNothing = iota // the call has no such argument
	fromMemory
	fromEmpty  // as fromMemory, and an empty path means dirfd itself
	fromFD     // dirfd itself
	fromBuffer // the path is in State already
)

// input is one path argument of the call in hand.
type input struct {
	dirfd  int
	addr   uint64 // of the path in the tool's memory
	from   uint8  // one of the constants above
	follow bool   // follow a symbolic link as the last name
}

// setIDs are S_ISUID and S_ISGID. A file never gets them: outside, it would give other accounts of the machine its
// owner's rights. A directory may, as in git init --shared: there S_ISGID says whose its files are (inode(7)).
const setIDs = 0o6000

// cwd is AT_FDCWD as an argument word.
const cwd = 1<<32 - 100

// openKeeps are the flags of a file that fcntl(2) can set.
const openKeeps = syscall.O_APPEND | syscall.O_NONBLOCK | syscall.O_DIRECT | syscall.O_NOATIME | syscall.O_ASYNC
