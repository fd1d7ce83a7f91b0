package supervisor

import (
	"syscall"
	"unsafe"

	kernel "github.com/holdfast-dev/holdfast/internal/sys"
)

// readMem copies size bytes of the tool's memory to dst; 0 or a negative errno. Two attempts that the tool
// overlaps with its own writes may see two contents: what was read is what is checked and what is done.
//
//go:norace
func (s *State) readMem(dst unsafe.Pointer, addr uint64, size uint) int {
	r := 0
	if s.m.rb(offFlags)&flagMemFile != 0 {
		r = s.readFile(dst, addr, size)
	} else {
		s.iov[0] = iovec{uintptr(dst), uintptr(size)}
		s.iov[1] = iovec{uintptr(addr), uintptr(size)}
		r = kernel.Raw(sysReadv, uintptr(s.req.pid), uintptr(unsafe.Pointer(&s.iov[0])), 1,
			uintptr(unsafe.Pointer(&s.iov[1])), 1, 0)
	}
	switch {
	case r == -int(syscall.EFAULT):
		return r
	case r == -int(syscall.ESRCH):
		return -eACCES // it is gone
	case r < 0:
		return s.unreadable(ReasonMemory) // so its path cannot be known
	case uint(r) != size:
		return -int(syscall.EFAULT)
	}
	return 0
}

// mem returns the descriptor of the tool's memory for the call in hand, opened once.
//
//go:norace
func (s *State) mem() int {
	if s.memory < 0 {
		s.literal("mem")
		s.memory = openat(s.task, &s.num[0], syscall.O_RDONLY, 0)
	}
	return s.memory
}

// readFile is readMem by /proc/PID/mem.
//
//go:norace
func (s *State) readFile(dst unsafe.Pointer, addr uint64, size uint) int {
	fd := s.mem()
	if fd < 0 {
		return fd
	}
	r := sys(syscall.SYS_PREAD64, uintptr(fd), uintptr(dst), uintptr(size), uintptr(addr), 0)
	if r == -int(syscall.EIO) {
		return -int(syscall.EFAULT)
	}
	if r == 0 {
		return -int(syscall.ESRCH) // proc_pid_mem(5): its address space is gone
	}
	return r
}

// closeMemory ends what mem has opened: what is read of the next call's memory, after an execve(2) perhaps, is opened anew.
//
//go:norace
func (s *State) closeMemory() {
	closeFD(s.memory)
	s.memory = -1
}

// readPath copies the tool's string at addr to path k, page by page, so that a string that ends before an
// unmapped page is read whole.
//
//go:norace
func (s *State) readPath(k int, addr uint64) int {
	k &= 1
	n := uint(0)
	for n < pathMax {
		size := pathMax - uint(addr+uint64(n))&(pathMax-1)
		if size > 256 && n == 0 {
			size = 256 // most paths are short
		}
		if size > pathMax-n {
			size = pathMax - n
		}
		if r := s.readMem(unsafe.Pointer(&s.path[k][n&(pathRoom-1)]), addr+uint64(n), size); r < 0 {
			return r
		}
		for ; size > 0; size-- {
			if s.path[k][n&(pathRoom-1)] == 0 {
				s.plen[k] = n
				return 0
			}
			if n++; n >= pathMax {
				break
			}
		}
	}
	return -eLONG
}

// alive asks the kernel whether the tool still waits for this answer. What was read of it by its number is
// its own only if so.
//
//go:norace
func (s *State) alive() int {
	return sys(syscall.SYS_IOCTL, uintptr(s.listener), ioctlIDValid, uintptr(unsafe.Pointer(&s.req.id)), 0, 0)
}

// enter makes s.task the caller's /proc directory and checks that it shares the supervisor's mounts: a path
// means something else in another mount namespace.
//
//go:norace
func (s *State) enter() int {
	if s.req.pid == s.taskID && s.task >= 0 && s.mounts() == 0 {
		return 0
	}
	closeFD(s.task)
	closeFD(s.taskStatus)
	s.taskStatus = -1
	s.taskID = s.req.pid
	s.number("", uint(s.req.pid))
	if s.task = openat(s.procRoot, &s.num[0], oPath|syscall.O_DIRECTORY, 0); s.task < 0 {
		return -eACCES
	}
	s.why = ReasonNone
	return s.mounts()
}

// mounts compares the names of the mount namespaces: reading the link's text costs a fifth of following it.
//
//go:norace
func (s *State) mounts() int {
	s.literal("ns/mnt")
	n := s.nsName(s.task)
	for i := 0; i < n; i++ {
		if s.small[i&511] != s.mountNS[i&63] {
			return s.unreadable(ReasonMounts)
		}
	}
	switch {
	case n == -eACCES:
		return s.unreadable(ReasonMemory) // proc(5), "ns": ptrace access mode
	case n <= 0:
		return -eACCES
	case s.mountNS[n&63] != 0:
		return s.unreadable(ReasonMounts)
	}
	return 0
}

// status reads the head of the caller's /proc/<tid>/status into s.small: its length, or a negative errno.
//
//go:norace
func (s *State) status() int {
	if s.taskStatus < 0 {
		s.literal("status")
		if s.taskStatus = openat(s.task, &s.num[0], syscall.O_RDONLY, 0); s.taskStatus < 0 {
			return -eACCES
		}
	}
	return sys(syscall.SYS_PREAD64, uintptr(s.taskStatus), uintptr(unsafe.Pointer(&s.small[0])), 256, 0, 0)
}

// field returns where the value of a line of s.small begins, or 0.
//
//go:norace
func (s *State) field(name string, n int) uint {
	for i := 0; i < n && i < 256; i++ {
		if i > 0 && s.small[(i-1)&511] != '\n' {
			continue
		}
		j := 0
		for j < len(name) && s.small[(i+j)&511] == name[j] {
			j++
		}
		if j == len(name) {
			return uint(i + j)
		}
	}
	return 0
}

// takeUmask makes the caller's umask the supervisor's own, for the call that follows. What it makes of a git directory no other user can write.
//
//go:norace
func (s *State) takeUmask() int {
	n := s.status()
	if n < 0 {
		return -eACCES
	}
	at := s.field("Umask:\t", n)
	if at == 0 {
		return -eACCES
	}
	mask := uint(0)
	for ; at < 256 && s.small[at&511] >= '0' && s.small[at&511] <= '7'; at++ {
		mask = mask<<3 | uint(s.small[at&511]-'0')
	}
	if sp := &s.resolved[0]; sp.git.inside || sp.hit&hitGitFile != 0 {
		mask |= writeOthers
	}
	if mask != s.umask {
		sys(syscall.SYS_UMASK, uintptr(mask), 0, 0, 0, 0)
		s.umask = mask
	}
	return 0
}

// leader returns the caller's process id, 0 when it cannot be told.
//
//go:norace
func (s *State) leader() uint {
	n := s.status()
	if n < 0 {
		return 0
	}
	pid := uint(0)
	at := s.field("Tgid:\t", n)
	for ; at > 0 && at < 256 && s.small[at&511] >= '0' && s.small[at&511] <= '9'; at++ {
		pid = pid*10 + uint(s.small[at&511]-'0')
	}
	return pid
}
