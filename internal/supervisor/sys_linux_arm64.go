package supervisor

import "syscall"

const (
	sysFstatat = syscall.SYS_FSTATAT
	sysRename  = 276 // renameat2
	sysReadv   = 270 // process_vm_readv

	sysGetrandom = 278
	sysStatx     = 291
	sysGetcpu    = 168

	// arm64 has the *at forms alone: these numbers are never seen.
	nrOpen      = -1
	nrCreat     = -2
	nrMkdir     = -3
	nrMknod     = -4
	nrRename    = -5
	nrRenameat  = syscall.SYS_RENAMEAT
	nrLink      = -6
	nrSymlink   = -7
	nrUnlink    = -8
	nrRmdir     = -9
	nrChmod     = -10
	nrFchmodat2 = 452

	nrStatx    = 291
	nrExecveat = 281

	nrStat, nrLstat, nrAccess = -16, -17, -18

	nrChown, nrLchown, nrUtime, nrUtimes, nrFutimesat = -11, -12, -13, -14, -15
)
