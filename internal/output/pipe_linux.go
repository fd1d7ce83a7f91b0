package output

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipe is os.Pipe, with an end to write that the runtime does not poll: it is for a process, and a thread would be woken by it at once.
func pipe() (r, w *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		unix.Close(ends[0])
		unix.Close(ends[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(ends[0]), "|0"), os.NewFile(uintptr(ends[1]), "|1"), nil
}

// readNow reads what is there: EAGAIN is nothing, and 0 without an error the end.
func readNow(fd uintptr, p []byte) (int, error) { return unix.Read(int(fd), p) }
