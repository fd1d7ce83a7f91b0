package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/sys"
)

const (
	atRemoveDir = 0x200

	// removeDepth bounds the descent: each level holds a descriptor and a frame.
	removeDepth = 32
)

// A removal is that of a run's own directory. The tool has made what is in it, and may have made more directories in each other than there are
// descriptors: what lies deeper than removeDepth is moved up, to a name that the tool could not know.
type removal struct {
	top     uintptr // descriptor of the directory
	random  uint64
	name    [17]byte // for what is moved up
	changed bool     // something was removed, or moved up, since top was opened
}

// removeOwn removes the run's own directory, where there is one, once no process is
// left inside. It ends when nothing more can be removed: each directory is moved up once.
//
//go:norace
//go:nocheckptr
func removeOwn() {
	off := st.hdr.Own
	if off == 0 || *(*byte)(at(off)) != '/' {
		return
	}
	own := st.base + uintptr(off)
	var r removal
	sys.Call(sysGetrandom, sys.Addr(&r.random), unsafe.Sizeof(r.random), 0, 0, 0, 0)
	for {
		top, errno := openToRemove(atCwd, own)
		if errno != 0 {
			return
		}
		r.top, r.changed = top, false
		r.below(top, removeDepth)
		sys.Call(syscall.SYS_CLOSE, top, 0, 0, 0, 0, 0)
		if _, errno := sys.Call(syscall.SYS_UNLINKAT, atCwd, own, atRemoveDir, 0, 0, 0); errno == 0 || !r.changed {
			return
		}
	}
}

// openToRemove opens a directory, without following a symbolic link, and takes the right to change it. By its name that is changed only where it
// cannot be opened, which a harness with privileges can: a process that the sandbox does not hold could put a link in its place.
//
//go:norace
//go:nocheckptr
func openToRemove(dir, name uintptr) (fd, errno uintptr) {
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	if fd, errno = sys.Call(syscall.SYS_OPENAT, dir, name, flags, 0, 0, 0); errno == uintptr(syscall.EACCES) {
		sys.Call(syscall.SYS_FCHMODAT, dir, name, 0o700, 0, 0, 0)
		fd, errno = sys.Call(syscall.SYS_OPENAT, dir, name, flags, 0, 0, 0)
	}
	if errno == 0 {
		sys.Call(syscall.SYS_FCHMOD, fd, 0o700, 0, 0, 0, 0)
	}
	return fd, errno
}

// below removes what is in an open directory, depth levels of it.
//
//go:norace
//go:nocheckptr
func (r *removal) below(fd uintptr, depth int) {
	var buf [1024]byte // several entries, of which none is longer than 280 bytes (getdents64(2))
	for {
		n, errno := sys.Call(syscall.SYS_GETDENTS64, fd, sys.Addr(&buf), unsafe.Sizeof(buf), 0, 0, 0)
		if errno != 0 || n == 0 {
			return
		}
		for at := uintptr(0); at < n; {
			entry := unsafe.Add(unsafe.Pointer(&buf), at)
			name := (*[3]byte)(unsafe.Add(entry, direntName))
			if dots := name[0] == '.' && (name[1] == 0 || name[1] == '.' && name[2] == 0); !dots {
				r.entry(fd, sys.Addr(name), depth)
			}
			at += uintptr(*(*uint16)(unsafe.Add(entry, direntSize)))
		}
	}
}

// entry removes what the null-terminated name in a directory names, or moves it up.
//
//go:norace
//go:nocheckptr
func (r *removal) entry(dir, name uintptr, depth int) {
	if _, errno := sys.Call(syscall.SYS_UNLINKAT, dir, name, 0, 0, 0, 0); errno == 0 {
		r.changed = true
		return
	}
	fd, errno := openToRemove(dir, name)
	if errno == 0 && depth > 0 {
		r.below(fd, depth-1)
	}
	if errno == 0 {
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
	if _, errno := sys.Call(syscall.SYS_UNLINKAT, dir, name, atRemoveDir, 0, 0, 0); errno == 0 {
		r.changed = true
	} else if dir != r.top {
		r.moveUp(dir, name)
	}
}

// moveUp gives a directory that could not be removed a place in the first one.
//
//go:norace
//go:nocheckptr
func (r *removal) moveUp(dir, name uintptr) {
	r.random++
	for i := range uint(16) {
		r.name[i] = 'a' + byte(r.random>>(4*i))&15
	}
	if _, errno := sys.Call(syscall.SYS_RENAMEAT, dir, name, r.top, sys.Addr(&r.name), 0, 0); errno == 0 {
		r.changed = true
	}
}

// Offsets in struct linux_dirent64.
const (
	direntSize = 16
	direntName = 19
)
