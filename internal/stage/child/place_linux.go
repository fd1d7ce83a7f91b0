package child

import (
	"syscall"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// A place of an explicit layout may lie in a tree that a hostile tool has
// written. Every lookup is made by openat2 below the new root, whose symbolic
// links, absolute ones too, then lead to places of that root (RESOLVE_IN_ROOT);
// every name is made in a directory that was opened so, by its last component,
// which no call here follows. bubblewrap 0.11.1 makes names by path and follows
// links to the host (CVE-2026-87766).

const (
	resolveNoMagic = 0x02
	resolveNoLinks = 0x04
	resolveInRoot  = 0x10
	lookUp         = sys.O_PATH | syscall.O_CLOEXEC
)

// layoutOp runs the ops that only explicit layouts have.
//
//go:norace
//go:nocheckptr
func layoutOp(nr uint32, a, b uintptr) (uintptr, uintptr) {
	switch nr {
	case wire.OpPlace:
		return makePath(a, b)
	case wire.OpIsFile:
		return isFile(a, b)
	case wire.OpCover:
		return 0, cover(a, b)
	case wire.OpMode:
		return setMode(a, b)
	case wire.OpNoUsers:
		return noUsers()
	case wire.OpGate:
		return gate(a)
	case wire.OpPass:
		return pass(a, b)
	case wire.OpErrno:
		return 0, uintptr(-**(**int32)(unsafe.Pointer(&a)))
	case wire.OpRegular:
		return 0, regular(a)
	case wire.OpNumber:
		return number(a, b)
	case wire.OpLoad32:
		return uintptr(**(**uint32)(unsafe.Pointer(&a))), 0
	}
	return 0, uintptr(syscall.ENOSYS)
}

// makePath carries out OpPlace: root is a descriptor, addr the address of a Place.
//
//go:norace
//go:nocheckptr
func makePath(root, addr uintptr) (uintptr, uintptr) {
	p := *(**wire.Place)(unsafe.Pointer(&addr))
	st.how[2] = resolveInRoot | resolveNoMagic
	if p.Plain != 0 {
		st.how[2] |= resolveNoLinks
	}
	flags := uintptr(lookUp)
	switch p.Make {
	case wire.MakeLink:
		return makeLink(root, p)
	case wire.MakeDir:
		flags |= syscall.O_DIRECTORY
	case wire.MakeWrite:
		return makeWrite(root, p)
	}
	fd, errno := openIn(root, p.Path, flags, 0)
	if errno != uintptr(syscall.ENOENT) || p.Make == wire.MakeNothing {
		return fd, errno
	}
	dir, _, errno := makeParents(root, p)
	if errno != 0 || p.Make == wire.MakeDir {
		return dir, errno
	}
	closeUnless(dir, root)
	return openIn(root, p.Path, syscall.O_CREAT|syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, uintptr(p.Mode))
}

// makeWrite opens or makes a regular file to write. A fifo that a tool has put
// there is refused, and not waited for (fifo(7): ENXIO, or it is no regular file).
//
//go:norace
//go:nocheckptr
func makeWrite(root uintptr, p *wire.Place) (uintptr, uintptr) {
	const flags = syscall.O_CREAT | syscall.O_WRONLY | syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC
	fd, errno := openIn(root, p.Path, flags, uintptr(p.Mode))
	if errno == uintptr(syscall.ENOENT) {
		dir := uintptr(0)
		if dir, _, errno = makeParents(root, p); errno != 0 {
			return 0, errno
		}
		closeUnless(dir, root)
		fd, errno = openIn(root, p.Path, flags, uintptr(p.Mode))
	}
	if errno != 0 {
		return 0, errno
	}
	if errno = regular(fd); errno == 0 {
		_, errno = sys.Call(syscall.SYS_FTRUNCATE, fd, 0, 0, 0, 0, 0)
	}
	if errno != 0 {
		closeUnless(fd, root)
		return 0, errno
	}
	return fd, 0
}

// regular carries out OpRegular.
//
//go:norace
//go:nocheckptr
func regular(fd uintptr) uintptr {
	if _, errno := sys.Call(syscall.SYS_FSTAT, fd, sys.Addr(&st.stat), 0, 0, 0, 0); errno != 0 {
		return errno
	}
	if st.stat.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return uintptr(syscall.EINVAL)
	}
	return 0
}

// openIn opens the path at off below root. The kernel asks to try again when
// something is renamed on the way (openat2(2), EAGAIN), which must not go on for as
// long as a tool likes.
//
//go:norace
//go:nocheckptr
func openIn(root uintptr, off uint32, flags, mode uintptr) (uintptr, uintptr) {
	st.how[0], st.how[1] = uint64(flags), uint64(mode)
	for tries := 0; ; tries++ {
		fd, errno := sys.Call(sys.SYS_OPENAT2, root, st.planBase+uintptr(off), sys.Addr(&st.how), unsafe.Sizeof(st.how), 0, 0)
		if errno != uintptr(syscall.EAGAIN) || tries == mostTries {
			return fd, errno
		}
	}
}

const mostTries = 10_000

// makeParents makes the directories that lead to p, and p itself if it is to be
// one. It returns a descriptor of p then, and otherwise of the directory that holds
// p's last name, which may be root itself; and where that name begins.
//
//go:norace
//go:nocheckptr
func makeParents(root uintptr, p *wire.Place) (dir uintptr, last uint32, errno uintptr) {
	dir, last = root, p.Path
	for i := p.Path; ; i++ {
		c := (*byte)(atPlan(i))
		if *c != 0 && *c != '/' {
			continue
		}
		end := *c == 0
		if end && p.Make != wire.MakeDir {
			return dir, last, 0
		}
		// The path lies in the program's private copy: it is cut here for a moment.
		*c = 0
		mode := uintptr(p.Parents)
		if end {
			mode = uintptr(p.Mode)
		}
		_, errno = sys.Call(syscall.SYS_MKDIRAT, dir, st.planBase+uintptr(last), mode, 0, 0, 0)
		next := dir
		if errno == uintptr(syscall.EEXIST) || errno == 0 {
			next, errno = openIn(root, p.Path, lookUp|syscall.O_DIRECTORY, 0)
		}
		if errno != 0 {
			closeUnless(dir, root)
			return 0, 0, errno
		}
		closeUnless(dir, root)
		if end {
			return next, last, 0
		}
		*c = '/'
		dir, last = next, i+1
	}
}

//go:norace
//go:nocheckptr
func closeUnless(fd, root uintptr) {
	if fd != root {
		sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	}
}

// makeLink makes a symbolic link. One that is there and says the same is as
// good; what another says goes to the harness.
//
//go:norace
//go:nocheckptr
func makeLink(root uintptr, p *wire.Place) (uintptr, uintptr) {
	dir, last, errno := makeParents(root, p)
	if errno != 0 {
		return 0, errno
	}
	_, errno = sys.Call(syscall.SYS_SYMLINKAT, st.planBase+uintptr(p.Target), dir, st.planBase+uintptr(last), 0, 0, 0)
	if errno == uintptr(syscall.EEXIST) {
		n, e := sys.Call(syscall.SYS_READLINKAT, dir, st.planBase+uintptr(last), sys.Addr(&st.evidence), maxLink, 0, 0)
		switch {
		case e != 0:
			errno = e // EINVAL: it is no link
		case sameText(p.Target, n):
			errno = 0
		default:
			st.used = n
		}
	}
	closeUnless(dir, root)
	return 0, errno
}

const maxLink = 4096

// sameText reports whether the first n bytes of the evidence are the text at off.
//
//go:norace
//go:nocheckptr
func sameText(off uint32, n uintptr) bool {
	for i := range uint32(n) {
		c := *(*byte)(atPlan(off + i))
		if c == 0 || c != *(*byte)(unsafe.Add(unsafe.Pointer(&st.evidence), uintptr(i))) {
			return false
		}
	}
	return *(*byte)(atPlan(off + uint32(n))) == 0
}

// cover carries out OpCover. What lies at the path may be a tree that a hostile tool has written: a symbolic link on the
// way is refused, never followed (CVE-2026-87766 in bubblewrap). What is renamed over or removed once it is open takes no
// mount (ENOENT): the path is opened anew, so that ENOENT means that nothing is there.
//
//go:norace
//go:nocheckptr
func cover(tree, path uintptr) uintptr {
	const emptyPaths = 0x44 // MOVE_MOUNT_F_EMPTY_PATH|MOVE_MOUNT_T_EMPTY_PATH
	for range mostTries {
		st.how = [3]uint64{lookUp, 0, resolveInRoot | resolveNoMagic | resolveNoLinks}
		fd, errno := sys.Call(sys.SYS_OPENAT2, uintptr(st.reg[wire.RegRoot]), path, sys.Addr(&st.how), unsafe.Sizeof(st.how), 0, 0)
		if errno != 0 {
			return errno
		}
		empty := sys.Addr(&st.how[1]) // a zero byte
		_, errno = sys.Call(sys.SYS_MOVE_MOUNT, tree, empty, fd, empty, emptyPaths, 0)
		closeLater(fd)
		if errno != uintptr(syscall.ENOENT) {
			return errno
		}
	}
	return uintptr(syscall.EAGAIN)
}

// isFile carries out OpIsFile.
//
//go:norace
//go:nocheckptr
func isFile(fd, addr uintptr) (uintptr, uintptr) {
	want := *(**[2]uint64)(unsafe.Pointer(&addr))
	if _, errno := sys.Call(syscall.SYS_FSTAT, fd, sys.Addr(&st.stat), 0, 0, 0, 0); errno != 0 {
		return 0, errno
	}
	if uint64(st.stat.Dev) != want[0] || st.stat.Ino != want[1] {
		return 0, uintptr(syscall.ESTALE)
	}
	return 0, 0
}

// setMode carries out OpMode. fchmod(2) refuses a descriptor of O_PATH; Linux 6.6
// has a call that does not, and before it there is the link in /proc, which at
// this point of the way is still the harness's.
//
//go:norace
//go:nocheckptr
func setMode(fd, mode uintptr) (uintptr, uintptr) {
	const sysFchmodat2, emptyPath, dir = 452, 0x1000, "/proc/self/fd/"
	const empty = "\x00"
	r, errno := sys.Call(sysFchmodat2, fd, text(empty), mode, emptyPath, 0, 0)
	if errno != uintptr(syscall.ENOSYS) {
		return r, errno
	}
	n := uintptr(0)
	for ; n < uintptr(len(dir)); n++ {
		st.path[n&63] = dir[n]
	}
	for d := decimal(&st.digits, fd); d < uintptr(len(st.digits)); d++ {
		st.path[n&63] = st.digits[d]
		n++
	}
	st.path[n&63] = 0
	return sys.Call(syscall.SYS_FCHMODAT, atCwd, sys.Addr(&st.path), mode, 0, 0, 0)
}

// number carries out OpNumber. The text at addr ends in a zero byte and has room for
// the number, see compiler.numbers in package stage.
//
//go:norace
//go:nocheckptr
func number(fd, addr uintptr) (uintptr, uintptr) {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	if *(*byte)(p) != 0 {
		for *(*byte)(p) != 0 {
			p = unsafe.Add(p, 1)
		}
		*(*byte)(p) = ':'
		p = unsafe.Add(p, 1)
	}
	for d := decimal(&st.digits, fd); d < uintptr(len(st.digits)); d++ {
		*(*byte)(p) = st.digits[d]
		p = unsafe.Add(p, 1)
	}
	*(*byte)(p) = 0
	return 0, 0
}

// noUsers carries out OpNoUsers: init is one thread, so it can ask.
//
//go:norace
//go:nocheckptr
func noUsers() (uintptr, uintptr) {
	if _, errno := sys.Call(syscall.SYS_UNSHARE, sys.CLONE_NEWUSER, 0, 0, 0, 0, 0); errno == 0 {
		return 0, uintptr(syscall.EEXIST)
	}
	return 0, 0
}

// gate carries out OpGate: it tells the harness that it is reached, and waits.
//
//go:norace
//go:nocheckptr
func gate(which uintptr) (uintptr, uintptr) {
	if st.hdr.Flags&(wire.FlagBorn<<which) == 0 {
		return 0, 0
	}
	st.message = wire.Message{Kind: wire.MsgGate, Value: int64(which)}
	send(0)
	for {
		n, errno := sys.Call(syscall.SYS_RECVFROM, st.control, sys.Addr(&st.digits), 1, 0, 0, 0)
		if errno == uintptr(syscall.EINTR) {
			continue
		}
		if errno == 0 && n != 1 {
			errno = uintptr(syscall.ECANCELED) // the harness is gone, or will not
		}
		return 0, errno
	}
}
