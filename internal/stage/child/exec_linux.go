package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// execTool executes the first of the tool's paths that can be, as execvp(3) goes
// through PATH, and returns why none could. The supervisor's filter knows these calls by their mark: init cannot answer for them.
//
//go:norace
//go:nocheckptr
func execTool() uintptr {
	h := st.hdr
	if h.Exe > 0 {
		const emptyPath = 0x1000
		exe := uintptr(st.reg[(wire.RegGiven+h.Exe-1)&(wire.MaxRegisters-1)])
		if h.Flags&wire.FlagCommand != 0 {
			exe = uintptr(h.Extra - 1)
		}
		_, errno := sys.Call(sysExecveat, exe, text("\x00"), st.base+uintptr(h.Argv.Off), st.base+uintptr(h.Envp.Off), emptyPath, supervisor.ExecMark)
		return errno
	}
	path, denied, errno := h.Path, false, uintptr(0)
	for range h.Paths {
		_, errno = sys.Call(syscall.SYS_EXECVE, st.base+uintptr(path), st.base+uintptr(h.Argv.Off), st.base+uintptr(h.Envp.Off), 0, 0, supervisor.ExecMark)
		switch syscall.Errno(errno) {
		case syscall.EACCES:
			denied = true
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ESTALE:
		default:
			return errno
		}
		path += length(path) + 1
	}
	if denied {
		return uintptr(syscall.EACCES)
	}
	return errno
}

// enterDir enters the first of the run's directories that is there, and makes
// the tool's environment say which.
//
//go:norace
//go:nocheckptr
func enterDir() uintptr {
	errno := uintptr(0)
	for i := range st.hdr.Dirs.Len {
		dir := (*wire.Dir)(at(st.hdr.Dirs.Off + i*uint32(unsafe.Sizeof(wire.Dir{}))))
		if _, errno = sys.Call(syscall.SYS_CHDIR, st.base+uintptr(dir.Path), 0, 0, 0, 0, 0); errno == 0 {
			switch {
			case st.hdr.DirSlot == 0:
			case dir.Variable == 0:
				*(*uint64)(at(st.hdr.DirSlot)) = 0 // the slot is the last: the environment ends before it
			default:
				*(*uint64)(at(st.hdr.DirSlot)) = uint64(st.base) + uint64(dir.Variable)
			}
			return 0
		}
	}
	return errno
}
