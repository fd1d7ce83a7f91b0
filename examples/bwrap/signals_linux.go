package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// catch collects the signals that have to reach the command, from when there is
// nothing left to wait for but its execve. Until then they end this program, as
// they end bubblewrap, and everything inside ends with it. Those that stop and
// continue are left alone: the stage does the same as the command.
func catch(cmd *sandbox.Cmd) chan os.Signal {
	signals := make(chan os.Signal, 16)
	built := cmd.Built
	cmd.Built = func(pid int) error {
		if built != nil {
			if err := built(pid); err != nil {
				return err
			}
		}
		signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM)
		return nil
	}
	return signals
}

// relay passes signals on. A terminal sends SIGINT and SIGQUIT to its whole
// foreground, where the command is too, unless it has a session of its own.
func relay(signals chan os.Signal, command *os.Process, ownSession bool) {
	shared := !ownSession && hasTerminal()
	for s := range signals {
		if !shared || s != syscall.SIGINT && s != syscall.SIGQUIT {
			command.Signal(s) // one that has just ended does not mind
		}
	}
}

func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	tty.Close()
	return true
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	return err == nil
}

// A caller is the process that started this one, held by a descriptor: prctl's
// signal at a parent's death comes when its thread ends, and its number may be
// another process's by then.
type caller struct{ pidfd int }

// parent holds the caller for --die-with-parent; nil: it is not asked for.
func (o *options) parent() (*caller, error) {
	if !o.dieWithParent {
		return nil, nil
	}
	pid := os.Getppid()
	fd, err := unix.PidfdOpen(pid, 0)
	if pid == 0 { // it lives in another pid namespace, and init there ends with it
		return nil, nil
	}
	if err != nil || os.Getppid() != pid {
		return nil, because(unix.ESRCH, "The parent has ended already")
	}
	return &caller{fd}, nil
}

// await calls end when the caller is dead.
func (c *caller) await(end func()) {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(c.pidfd), Events: unix.POLLIN}}, -1)
		if n > 0 {
			end()
			return
		}
		if err != nil && err != unix.EINTR {
			return
		}
	}
}
