package landlock

// AccessFS is a set of file system rights, one bit for each, with the kernel's own values
// (LANDLOCK_ACCESS_FS_*). Zero is no right. Its text form is the names joined by "|".
type AccessFS uint64

// The file system rights. Those up to FSReadFile, and FSTruncate, FSIoctlDev and FSResolveUnix, mean
// something on a file; the others on directories alone (see [AccessFS.ForFile]).
const (
	// FSExecute is to execute a file.
	FSExecute AccessFS = 1 << iota
	// FSWriteFile is to open a file for writing. Most programs need FSTruncate with it.
	FSWriteFile
	// FSReadFile is to open a file for reading.
	FSReadFile
	// FSReadDir is to open a directory or list it.
	FSReadDir
	// FSRemoveDir is to remove an empty directory, or rename it.
	FSRemoveDir
	// FSRemoveFile is to unlink or rename a file.
	FSRemoveFile
	// FSMakeChar is to create, rename or link a character device. A whiteout (device 0:0) is
	// one on some kernels; on others, since "landlock: Require LANDLOCK_ACCESS_FS_MAKE_REG for
	// whiteout creation" of 2026, it needs FSMakeReg instead.
	FSMakeChar
	// FSMakeDir is to create or rename a directory.
	FSMakeDir
	// FSMakeReg is to create, rename or link a regular file.
	FSMakeReg
	// FSMakeSock is to create, rename or link a UNIX socket.
	FSMakeSock
	// FSMakeFifo is to create, rename or link a named pipe.
	FSMakeFifo
	// FSMakeBlock is to create, rename or link a block device.
	FSMakeBlock
	// FSMakeSym is to create, rename or link a symbolic link.
	FSMakeSym
	// FSRefer is to link or rename a file from or to another directory (ABI 2). The kernel denies this by
	// default in every ruleset that handles a file system right, whether FSRefer is handled or not, and
	// even on ABI 1, where it cannot be granted.
	FSRefer
	// FSTruncate is truncate, ftruncate, creat and open with O_TRUNC (ABI 3).
	FSTruncate
	// FSIoctlDev is ioctl on a character or block device opened after the restriction (ABI 5).
	FSIoctlDev
	// FSResolveUnix is to connect or send to a UNIX socket by path whose server is outside the domain (ABI 9).
	FSResolveUnix

	// FSAll is every file system right this package knows.
	FSAll AccessFS = 1<<iota - 1
)

// Named groups of file system rights. None of them holds FSRefer, FSIoctlDev, FSResolveUnix or the making of
// device nodes: those are always written out.
const (
	// FSRead is to read files and list directories.
	FSRead = FSReadFile | FSReadDir
	// FSReadExecute is FSRead and to execute files.
	FSReadExecute = FSRead | FSExecute
	// FSWrite is to write and truncate files, and to create and remove anything but device nodes.
	FSWrite = FSWriteFile | FSTruncate | FSRemoveDir | FSRemoveFile | FSMakeDir | FSMakeReg | FSMakeSock | FSMakeFifo | FSMakeSym
	// FSReadWrite is FSReadExecute and FSWrite: all ordinary work within one directory at a time.
	FSReadWrite = FSReadExecute | FSWrite
	// FSMakeDevice is to create device nodes, which also needs CAP_MKNOD.
	FSMakeDevice = FSMakeChar | FSMakeBlock
	// FSFile is the rights that a rule on something that is not a directory may hold; the kernel refuses
	// others there with EINVAL (ACCESS_FILE in security/landlock/fs.c).
	FSFile = FSExecute | FSWriteFile | FSReadFile | FSTruncate | FSIoctlDev | FSResolveUnix
)

// ForFile returns a without the rights that only directories have, so that a rule on a file can hold it.
// Nothing that a file could use is lost. The result may be empty, and such a rule is refused by [Build].
func (a AccessFS) ForFile() AccessFS { return a & FSFile }

// AccessNet is a set of network rights, with the kernel's values (LANDLOCK_ACCESS_NET_*). Zero is no right.
type AccessNet uint64

// The network rights. They say nothing of addresses, only of ports.
const (
	// NetBindTCP is to bind a TCP socket to the rule's port (ABI 4). Port 0 is the ephemeral range.
	NetBindTCP AccessNet = 1 << iota
	// NetConnectTCP is to connect a TCP socket to the rule's port (ABI 4).
	NetConnectTCP
	// NetBindUDP is to bind a UDP socket to the rule's port (ABI 10). Port 0 is the ephemeral range and
	// covers the implicit bind of a first send.
	NetBindUDP
	// NetConnectSendUDP is to connect a UDP socket, or send, to the rule's port (ABI 10).
	NetConnectSendUDP

	// NetAll is every network right this package knows.
	NetAll AccessNet = 1<<iota - 1
)

// Scope is a set of ways out of the domain that are closed, with the kernel's values (LANDLOCK_SCOPE_*).
type Scope uint64

// The scopes. There are no rules that open them again.
const (
	// ScopeAbstractUnixSocket refuses to connect or send to an abstract UNIX socket made outside (ABI 6).
	ScopeAbstractUnixSocket Scope = 1 << iota
	// ScopeSignal refuses to signal a process outside (ABI 6).
	ScopeSignal

	// ScopeAll is every scope this package knows.
	ScopeAll Scope = 1<<iota - 1
)

// Flags are the flags of landlock_restrict_self(2), with the kernel's values (LANDLOCK_RESTRICT_SELF_*).
type Flags uint32

// The flags. The three first change what is logged to audit and nothing else.
const (
	// LogSameExecOff logs no denial of this program before it executes another (ABI 7).
	LogSameExecOff Flags = 1 << iota
	// LogNewExecOn logs denials of programs executed later (ABI 7).
	LogNewExecOn
	// LogSubdomainsOff logs no denial by rulesets stacked on this one (ABI 7).
	LogSubdomainsOff
	// TSync restricts every thread of the process at once (ABI 8).
	TSync
	// NoNewPrivs sets no_new_privs if and only if the restriction succeeds (ABI 11).
	NoNewPrivs

	// FlagsAll is every flag this package knows.
	FlagsAll Flags = 1<<iota - 1
)
