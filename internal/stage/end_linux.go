package stage

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// AtEnd takes over what the harness keeps of the sandbox's mounts. The function that it returns lets go of them, which ends them, as soon as init is dead, or
// after Close; any goroutine may call it. That takes the kernel some time. Before, last gets the private tmpfs, or what nothing can be opened in. AtEnd is called
// once AwaitEvidence, or of a session AwaitStart, has returned.
func (c *Control) AtEnd(last func(scratch *os.File)) (release func()) {
	mounts, init := c.mounts, c.init
	c.mounts = nil
	return func() {
		if raw, err := init.SyscallConn(); err == nil {
			raw.Read(ended)
		}
		last(mounts)
		mounts.Close() // a nil one does not mind
	}
}

// KillInit kills the sandbox's first process, and with it everything inside,
// when that is known already.
func (c *Control) KillInit() {
	if c.init == nil {
		return
	}
	if raw, err := c.init.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) })
	}
	killLater(c.init, c.KillBelow)
}

// killLater kills what is below a process that was killed, every second until that has ended or the Control is closed: it may sleep, where no
// signal ends that, for a lock that a process below it holds. Who has seen it end stops the timer.
func killLater(pidfd *os.File, killBelow func(pid int, lives func() bool)) *time.Timer {
	if killBelow == nil {
		return nil
	}
	return time.AfterFunc(time.Second, func() {
		raw, err := pidfd.SyscallConn()
		if err != nil {
			return
		}
		raw.Control(func(fd uintptr) {
			lives := func() bool { return !ended(fd) }
			if lives() {
				killBelow(PIDOf(fd), lives)
				killLater(pidfd, killBelow)
			}
		})
	})
}

// MostEnd is how long a sandbox is waited for that was killed. The stage waits as
// long for init.
const MostEnd = 30 * time.Second

// AwaitEmpty returns when every process of the sandbox is dead: a pidfd becomes
// readable when its process is a zombie, and the kernel lets pid 1 of a
// namespace become one only after all the others are gone (zap_pid_ns_processes).
// Without one the keeper ends last. From when over is closed, or at once if it is nil,
// it waits for most at the longest: then Stuck says who is left.
func (c *Control) AwaitEmpty(over <-chan struct{}, most time.Duration) {
	for _, pidfd := range [...]*os.File{c.init, c.keeper} {
		if pidfd != nil && c.Stuck == 0 {
			c.awaitEnd(pidfd, over, most)
		}
	}
}

func (c *Control) awaitEnd(pidfd *os.File, over <-chan struct{}, most time.Duration) {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return
	}
	var limiting sync.WaitGroup
	dead, late := make(chan struct{}), (*time.Timer)(nil)
	limit := func() {
		pidfd.SetReadDeadline(time.Now().Add(most))
		late = killLater(pidfd, c.KillBelow)
	}
	if over == nil {
		limit()
	} else {
		limiting.Go(func() {
			select {
			case <-over:
				limit()
			case <-dead:
			}
		})
	}
	err = raw.Read(ended)
	close(dead)
	limiting.Wait()
	if late != nil {
		late.Stop()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.Stuck = max(c.PID(), 1)
	}
}

// ended reports whether the process of a pidfd has ended.
func ended(pidfd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(p, 0)
	return n > 0 || err != nil && err != unix.EINTR
}
