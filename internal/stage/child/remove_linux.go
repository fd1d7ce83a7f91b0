package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

const (
	atRemoveDir = 0x200

	// removeDepth bounds the descent: each level holds a descriptor and a frame.
	removeDepth = 512
)

// removeOwn removes the run's own directory, where there is one, once no process is
// left inside.
//
//go:norace
//go:nocheckptr
func removeOwn() {
	if off := st.hdr.Own; off != 0 && *(*byte)(at(off)) == '/' {
		removeAll(atCwd, st.base+uintptr(off), removeDepth)
	}
}

// removeAll removes what the null-terminated name at dir names, and everything
// below, without following a symbolic link.
//
//go:norace
//go:nocheckptr
func removeAll(dir, name uintptr, depth int) {
	if _, errno := sys.Call(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0); errno == 0 || depth == 0 {
		return
	}
	sys.Call(syscall.SYS_FCHMODAT, dir, name, 0o700, 0, 0, 0) // a directory: a link has been unlinked above
	fd, errno := sys.Call(syscall.SYS_OPENAT, dir, name, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0, 0, 0)
	if errno != 0 {
		return
	}
	var buf [1024]byte // several entries, of which none is longer than 280 bytes (getdents64(2))
	for {
		n, errno := sys.Call(syscall.SYS_GETDENTS64, fd, sys.Addr(&buf), unsafe.Sizeof(buf), 0, 0, 0)
		if errno != 0 || n == 0 {
			break
		}
		for at := uintptr(0); at < n; {
			entry := unsafe.Add(unsafe.Pointer(&buf), at)
			name := (*[3]byte)(unsafe.Add(entry, direntName))
			if dots := name[0] == '.' && (name[1] == 0 || name[1] == '.' && name[2] == 0); !dots {
				removeAll(fd, sys.Addr(name), depth-1)
			}
			at += uintptr(*(*uint16)(unsafe.Add(entry, direntSize)))
		}
	}
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	sys.Call(syscall.SYS_UNLINKAT, dir, name, atRemoveDir, 0, 0, 0)
}

// Offsets in struct linux_dirent64.
const (
	direntSize = 16
	direntName = 19
)
