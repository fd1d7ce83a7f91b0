package sys

// Numbers shared by amd64 and arm64: every system call added since the tables
// were unified (Linux 5.1, include/uapi/asm-generic/unistd.h).
const (
	SYS_PIDFD_SEND_SIGNAL       = 424
	SYS_OPEN_TREE               = 428
	SYS_MOVE_MOUNT              = 429
	SYS_FSOPEN                  = 430
	SYS_FSCONFIG                = 431
	SYS_FSMOUNT                 = 432
	SYS_PIDFD_OPEN              = 434
	SYS_CLOSE_RANGE             = 436
	SYS_OPENAT2                 = 437
	SYS_MOUNT_SETATTR           = 442
	SYS_LANDLOCK_CREATE_RULESET = 444
	SYS_LANDLOCK_ADD_RULE       = 445
	SYS_LANDLOCK_RESTRICT_SELF  = 446
)

// Flags of clone(2).
const (
	CLONE_VM        = 0x100
	CLONE_FILES     = 0x400
	CLONE_PIDFD     = 0x1000
	CLONE_VFORK     = 0x4000
	CLONE_NEWNS     = 0x20000
	CLONE_NEWCGROUP = 0x2000000
	CLONE_NEWUTS    = 0x4000000
	CLONE_NEWIPC    = 0x8000000
	CLONE_NEWUSER   = 0x10000000
	CLONE_NEWPID    = 0x20000000
	CLONE_NEWNET    = 0x40000000

	SIOCGSKNS = 0x894c // linux/sockios.h
)

// Options of prctl(2).
const (
	PR_SET_PDEATHSIG       = 1
	PR_SET_DUMPABLE        = 4
	PR_SET_NAME            = 15
	PR_CAPBSET_DROP        = 24
	PR_SET_CHILD_SUBREAPER = 36
	PR_SET_NO_NEW_PRIVS    = 38
	PR_GET_NO_NEW_PRIVS    = 39
	PR_CAP_AMBIENT         = 47
)

// What else the stage needs of poll(2), fcntl(2), wait4(2) and signals.
const (
	POLLIN        = 1
	POLLERR       = 8
	POLLHUP       = 16
	POLLNVAL      = 32
	F_GETFD       = 1
	F_GET_SEALS   = 1034
	SEAL_ALL      = 1 | 2 | 4 | 8 // F_SEAL_SEAL, SHRINK, GROW, WRITE
	WNOHANG       = 1
	WUNTRACED     = 2
	WCONTINUED    = 8
	WALL          = 0x40000000
	SIG_BLOCK     = 0
	SIG_SETMASK   = 2
	SA_SIGINFO    = 4
	SA_RESTORER   = 0x04000000
	SA_ONSTACK    = 0x08000000
	SA_RESTART    = 0x10000000
	AT_SECURE     = 23
	AT_EXECFN     = 31
	O_PATH        = 0x200000
	MSG_NOSIGNAL  = 0x4000
	MSG_DONTWAIT  = 0x40
	TFD_CLOEXEC   = 0x80000
	SFD_CLOEXEC   = 0x80000
	SFD_NONBLOCK  = 0x800
	SCM_RIGHTS    = 1
	MaxCapability = 63 // PR_CAPBSET_DROP answers EINVAL above the kernel's last
)

// PollFD is struct pollfd.
type PollFD struct {
	FD      int32
	Events  int16
	Revents int16
}

// SigAction is the kernel's struct sigaction on amd64 and arm64.
type SigAction struct {
	Handler  uintptr
	Flags    uint64
	Restorer uintptr
	Mask     uint64
}
