package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// execTool executes the first of the tool's paths that can be, as execvp(3) goes
// through PATH, and returns why none could.
//
//go:norace
//go:nocheckptr
func execTool() uintptr {
	h := st.hdr
	path, denied, errno := h.Path, false, uintptr(0)
	for range h.Paths {
		_, errno = sys.Call(syscall.SYS_EXECVE, st.base+uintptr(path), st.base+uintptr(h.Argv.Off), st.base+uintptr(h.Envp.Off), 0, 0, 0)
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
	list := unsafe.Slice((*wire.Dir)(at(st.hdr.Dirs.Off)), st.hdr.Dirs.Len)
	errno := uintptr(0)
	for i := range list {
		if _, errno = sys.Call(syscall.SYS_CHDIR, st.base+uintptr(list[i].Path), 0, 0, 0, 0, 0); errno == 0 {
			if st.hdr.DirSlot != 0 {
				*(*uint64)(at(st.hdr.DirSlot)) = uint64(st.base) + uint64(list[i].Variable)
			}
			return 0
		}
	}
	return errno
}
