package supervisor

import "syscall"

const (
	sysFstatat = syscall.SYS_NEWFSTATAT
	sysRename  = 316 // renameat2
	sysReadv   = 310 // process_vm_readv

	sysGetrandom = 318
	sysStatx     = 332
	sysGetcpu    = 309

	nrOpen      = syscall.SYS_OPEN
	nrCreat     = syscall.SYS_CREAT
	nrMkdir     = syscall.SYS_MKDIR
	nrMknod     = syscall.SYS_MKNOD
	nrRename    = syscall.SYS_RENAME
	nrRenameat  = syscall.SYS_RENAMEAT
	nrLink      = syscall.SYS_LINK
	nrSymlink   = syscall.SYS_SYMLINK
	nrUnlink    = syscall.SYS_UNLINK
	nrRmdir     = syscall.SYS_RMDIR
	nrChmod     = syscall.SYS_CHMOD
	nrFchmodat2 = 452

	nrStat     = syscall.SYS_STAT
	nrLstat    = syscall.SYS_LSTAT
	nrAccess   = syscall.SYS_ACCESS
	nrStatx    = 332
	nrExecveat = 322

	nrChown     = syscall.SYS_CHOWN
	nrLchown    = syscall.SYS_LCHOWN
	nrUtime     = syscall.SYS_UTIME
	nrUtimes    = syscall.SYS_UTIMES
	nrFutimesat = syscall.SYS_FUTIMESAT
)
