package runner

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stageEnded waits so many milliseconds, or with -1 for ever, until a stage has ended, and leaves its status to os/exec. A nil one is that
// of a copy of the exec.Cmd, which finds no program and ends.
func stageEnded(p *os.Process, wait int) (ended bool) {
	if p == nil {
		return true
	}
	err := p.WithHandle(func(pidfd uintptr) {
		for err := error(unix.EINTR); err == unix.EINTR; {
			n := 0
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, wait)
			ended = n > 0
		}
	})
	return ended || errors.Is(err, os.ErrProcessDone) // it was waited for
}

// awaitStage calls ended when the stage has ended, and leaves its status to os/exec, unless what it returns is closed before. It waits in Go's poller: a thread for each
// command would be one more that the kernel makes, wakes and holds. Its pidfd is no copy of os.Process's: that would get O_NONBLOCK with it, and os.Process.Wait EAGAIN
// (PIDFD_NONBLOCK in pidfd_open(2)).
func awaitStage(p *os.Process, ended func()) (pidfd *os.File) {
	if p == nil {
		return nil
	}
	p.WithHandle(func(handle uintptr) {
		fd, err := unix.PidfdOpen(p.Pid, 0)
		if err != nil {
			return
		}
		if unix.PidfdSendSignal(int(handle), 0, nil, 0) == unix.ESRCH { // it was waited for, and the number may be another process's
			unix.Close(fd)
			return
		}
		unix.SetNonblock(fd, true)
		pidfd = os.NewFile(uintptr(fd), "pidfd of a stage")
	})
	if pidfd == nil { // for want of descriptors
		go func() {
			if stageEnded(p, -1) {
				ended()
			}
		}()
		return nil
	}
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return pidfd
	}
	go func() {
		if raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0
		}) == nil {
			ended()
		}
	}()
	return pidfd
}
