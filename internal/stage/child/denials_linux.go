package child

import (
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/internal/sys"
)

// makeDenials makes the memory in which the supervisor records what it refuses, and returns its descriptor, which the harness
// gets; -1: there is no supervisor, or no memory for it, and nothing is recorded. It is called once the tool has been executed,
// so that no descriptor table is shared with the tool's any more (execve(2)); init's own memory is not the tool's to read.
//
//go:norace
//go:nocheckptr
func makeDenials() int32 {
	const noExec = 8 // MFD_NOEXEC_SEAL, Linux 6.3; vm.memfd_noexec can ask for it
	if st.supervisor == nil {
		return -1
	}
	name := text("holdfast denials\x00")
	fd, errno := sys.Call(sysMemfdCreate, name, 1|noExec, 0, 0, 0, 0)
	if errno == uintptr(syscall.EINVAL) {
		fd, errno = sys.Call(sysMemfdCreate, name, 1, 0, 0, 0, 0)
	}
	if errno != 0 {
		return -1
	}
	size := supervisor.TableBytes(st.supervisor)
	_, errno = sys.Call(syscall.SYS_FTRUNCATE, fd, size, 0, 0, 0, 0)
	if errno == 0 {
		var at uintptr
		at, errno = sys.Call(syscall.SYS_MMAP, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED, fd, 0)
		if errno == 0 {
			supervisor.Record(st.supervisor, at)
			return int32(fd)
		}
	}
	sys.Call(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
	return -1
}
