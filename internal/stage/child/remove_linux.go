package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

const (
	atRemoveDir = 0x200
	atCwd       = ^uintptr(99) // AT_FDCWD
)

// removeOwn removes the run's own directory, where there is one, once nobody is
// left inside. It runs in the stage, where there is a Go runtime.
func removeOwn() {
	if off := st.hdr.Own; off != 0 && *(*byte)(at(off)) == '/' {
		removeAll(atCwd, st.base+uintptr(off))
	}
}

// removeAll removes what the null-terminated name at dir names, and everything
// below, without following a symbolic link.
func removeAll(dir, name uintptr) {
	if _, errno := sys.Call(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0); errno == 0 {
		return
	}
	sys.Call(syscall.SYS_FCHMODAT, dir, name, 0o700, 0, 0, 0) // a directory: a link has been unlinked above
	fd, errno := sys.Call(syscall.SYS_OPENAT, dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return
	}
	buf := make([]byte, 8192)
	for {
		n, errno := sys.Call(syscall.SYS_GETDENTS64, fd, sys.Addr(&buf[0]), uintptr(len(buf)), 0, 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		_, _, names := syscall.ParseDirent(buf[:n], -1, nil)
		for _, entry := range names {
			path := append([]byte(entry), 0)
			removeAll(fd, sys.Addr(&path[0]))
		}
	}
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_UNLINKAT, dir, name, atRemoveDir, 0, 0, 0)
}
