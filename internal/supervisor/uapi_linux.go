package supervisor

// notification is the kernel's struct seccomp_notif, with the seccomp_data in it.
type notification struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

type addFD struct {
	id         uint64
	flags      uint32
	srcFD      uint32
	newFD      uint32
	newFDFlags uint32
}

type openHow struct{ flags, mode, resolve uint64 }

type timespec struct{ sec, nsec int64 }

type iovec struct{ base, size uintptr }

type pollFD struct {
	fd              int32
	events, revents int16
}

// msghdr and cmsgFD are the kernel's struct msghdr, and a control message with a descriptor.
type msghdr struct {
	name       uintptr
	nameSize   uintptr
	iov        uintptr
	iovs       uintptr
	control    uintptr
	controlLen uintptr
	flags      uintptr
}

type cmsgFD struct {
	size       uintptr
	level, typ int32
	fd         int32
	_          int32
}

// The bits by which others than the owner write.
const (
	writeGroup  = 0o020
	writeOthers = 0o002
)
