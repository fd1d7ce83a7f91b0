package supervisor

import (
	"syscall"
	"unsafe"

	kernel "github.com/holdfast-dev/holdfast/internal/sys"
)

// Numbers and flags that are the same on amd64 and arm64, from the kernel's uapi headers.
const (
	atFDCWD        = -100
	atNoFollow     = 0x100
	atRemoveDir    = 0x200
	atFollow       = 0x400
	atEmptyPath    = 0x1000
	oPath          = 0x200000
	oTmpfileBit    = 0x400000
	resolveNoLinks = 0x04

	renameNoReplace = 1
	renameExchange  = 2

	magicProc     = 0x9fa0
	stNoSymfollow = 0x2000

	ioctlRecv    = 0xc0502100
	ioctlSend    = 0xc0182101
	ioctlIDValid = 0x40082102
	ioctlAddFD   = 0x40182103
	ioctlFlags   = 0x40082104

	syncWake = 1

	notifyContinue = 1 // SECCOMP_USER_NOTIF_FLAG_CONTINUE
	pollIn         = 1

	sysOpenat2    = 437
	sysFaccessat2 = 439
	sysPidfdOpen  = 434
	sysPidfdGet   = 438

	atDontSync = 0x4000 // AT_STATX_DONT_SYNC
	statxBasic = 0x7ff
	statxBirth = 0x800  // STATX_BTIME
	statxMount = 0x5000 // STATX_MNT_ID, Linux 5.8; STATX_MNT_ID_UNIQUE, Linux 6.8: before it a mount that is gone leaves its number to another

	pidfdThread = 0x80 // PIDFD_THREAD, which is O_EXCL

	eINVAL = int(syscall.EINVAL)
	eACCES = int(syscall.EACCES)
	eNOENT = int(syscall.ENOENT)
	eEXIST = int(syscall.EEXIST)
	eLOOP  = int(syscall.ELOOP)
	eLONG  = int(syscall.ENAMETOOLONG)
	eISDIR = int(syscall.EISDIR)
)

// sys makes one system call; the result is negative for an errno.
//
//go:norace
//go:noinline
func sys(nr, a, b, c, d, e uintptr) int {
	return kernel.Raw(nr, a, b, c, d, e, 0)
}

//go:norace
func closeFD(fd int) {
	if fd >= 0 {
		sys(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0)
	}
}

//go:norace
func openat(dir int, name *byte, flags, mode int) int {
	return sys(syscall.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(flags|syscall.O_CLOEXEC), uintptr(mode), 0)
}

// lstatat fills st for the name itself, never what a link points to.
//
//go:norace
func lstatat(dir int, name *byte, st *syscall.Stat_t) int {
	return sys(sysFstatat, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(st)), atNoFollow|atEmptyPath, 0)
}
