package sandbox

import (
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// pauseAttacks are what tools do in a session that is to be paused. Each counts in a file, on and on.
var pauseAttacks = map[string]func(fd uintptr){
	"counts": func(fd uintptr) { count(fd) },
	"spins": func(fd uintptr) {
		go count(fd)
		for n := 0; ; n++ {
		}
	},
	"has threads": func(fd uintptr) {
		for range 3 {
			go func() {
				runtime.LockOSThread()
				count(fd)
			}()
		}
		count(fd)
	},
	"has a child of its group": func(fd uintptr) {
		startCounting(&syscall.SysProcAttr{}, fd)
		count(fd)
	},
	"has a child that leads a session": func(fd uintptr) {
		startCounting(&syscall.SysProcAttr{Setsid: true}, fd)
		select {}
	},
	"ignores a hangup": func(fd uintptr) {
		signal.Ignore(syscall.SIGHUP)
		count(fd)
	},
	"stops its warden": func(fd uintptr) {
		continued, warden := make(chan os.Signal, 1), unix.Getppid() // its next parent is init, whose stop ends the session
		signal.Notify(continued, syscall.SIGCONT)
		again(fd)
		<-continued
		for {
			unix.Kill(warden, unix.SIGSTOP)
		}
	},
	"catches what it can": func(fd uintptr) {
		signal.Notify(make(chan os.Signal, 1))
		count(fd)
	},
	"prints": func(fd uintptr) {
		go count(fd)
		for {
			os.Stdout.WriteString("on and on\n")
			time.Sleep(time.Millisecond)
		}
	},
	"continues all": func(fd uintptr) {
		go count(fd)
		for {
			unix.Kill(-1, unix.SIGCONT)
			time.Sleep(100 * time.Microsecond)
		}
	},
	"traces its child": func(fd uintptr) {
		child := startCounting(&syscall.SysProcAttr{}, fd)
		if err := syscall.PtraceAttach(child); err != nil {
			count(fd) // the profile refuses that
		}
		for {
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(child, &status, 0, nil); err == nil && status.Stopped() {
				syscall.PtraceCont(child, 0) // no signal reaches it
			}
		}
	},
	"forks":                   func(fd uintptr) { fork(fd, 0, false) },
	"forks and ends":          func(fd uintptr) { fork(fd, 0, true) },
	"forks siblings and ends": func(fd uintptr) { fork(fd, unix.CLONE_PARENT, true) },
	"waits for the execve of its child": func(fd uintptr) {
		runtime.GOMAXPROCS(2)
		go func() {
			runtime.LockOSThread()
			blockSignals()
			count(fd)
		}()
		vforkForever()
	},
	"waits for an execve, as its children do": func(fd uintptr) {
		blockSignals()
		vforkDeep(fd, vforkDepth)
	},
}

// vforkDepth is so deep that Pause fails if it waits for longSleep at each (internal/runner).
const vforkDepth = 240

var _ = offer(programs, "pause attack", func(args []string) {
	f, err := os.Create(args[1])
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	fd := f.Fd()
	if args[0] == "group" {
		startCounting(&syscall.SysProcAttr{Setpgid: true}, fd)
		select {}
	}
	runtime.LockOSThread()
	pauseAttacks[args[0]](fd)
})

// startCounting starts a process that counts.
func startCounting(attr *syscall.SysProcAttr, fd uintptr) (pid int) {
	exe, _ := os.Executable()
	c := exec.Command(exe)
	c.Args, c.SysProcAttr, c.ExtraFiles, c.Stderr = []string{attackTool, "pause counter"}, attr, []*os.File{os.NewFile(fd, "")}, os.Stderr
	if err := c.Start(); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	return c.Process.Pid
}

var _ = offer(programs, "pause counter", func([]string) {
	signal.Ignore(syscall.SIGHUP)
	count(3)
})

// counted is what count and fork write, and shortly how long they sleep in between: the machine has other work, and as many numbers as zombies.
var (
	counted [1]uint64
	shortly = [2]int64{0, 1_000_000} // struct timespec
)

// count counts in a file, for ever.
//
//go:norace
func count(fd uintptr) {
	for {
		again(fd)
	}
}

//go:norace
//go:nosplit
func again(fd uintptr) {
	counted[0]++
	unix.RawSyscall6(unix.SYS_PWRITE64, fd, uintptr(unsafe.Pointer(&counted)), 8, 0, 0, 0)
	unix.RawSyscall6(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&shortly)), 0, 0, 0, 0, 0)
}

// fork forks for ever, and counts. With ends each process lives until it has made the next one. A process made so has one thread, and no runtime: a check of
// the stack's size would not return if the runtime had asked the goroutine to yield before the fork.
//
//go:norace
//go:nosplit
func fork(fd, flags uintptr, ends bool) {
	for {
		again(fd)
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, flags|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno == 0 && (pid == 0) != ends {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if !ends {
			unix.RawSyscall6(unix.SYS_WAIT4, pid, 0, 0, 0, 0, 0)
		}
	}
}

// blockSignals blocks all signals of the calling thread, those with which Go's scheduler interrupts threads among them.
func blockSignals() {
	all := unix.Sigset_t{}
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
		panic(err)
	}
}

// vforkForever suspends the calling thread, which leads the process: its child never executes. The kernel gives it the SIGSTOP of the process, which it
// takes when the child has executed; no other thread has a signal pending.
//
//go:norace
func vforkForever() {
	if unix.Gettid() != unix.Getpid() {
		panic("not the thread that leads the process")
	}
	blockSignals()
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_VFORK|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid == 0 {
		for {
			unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
		}
	}
}

// vforkDeep suspends the calling thread for a child that does the same, and so on; the last one counts. They share one memory: the last alone uses it.
//
//go:norace
//go:nosplit
func vforkDeep(fd uintptr, depth int) {
	for ; depth > 0; depth-- {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, unix.CLONE_VFORK|unix.CLONE_VM|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 || pid != 0 {
			unix.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
		}
	}
	for {
		again(fd)
	}
}

// TestKernelAttackAPause: whatever the tools do, in a pause they do nothing, and go on after it.
func TestKernelAttackAPause(t *testing.T) {
	kerneltest.Long(t)
	inPause(t, []walls{sessionWalls[0], sessionWalls[1], sharedPIDs, bareSets[1]}, func(t *testing.T, s *Session, dir string, w walls) {
		attacks := maps.Clone(pauseAttacks)
		delete(attacks, "stops its warden")
		if w.bare() || w.name == sharedPIDs.name { // without a pid namespace a chain of forks may be an error
			delete(attacks, "forks and ends")
			delete(attacks, "forks siblings and ends")
		}
		out, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		held := map[string][]byte{}
		for name := range attacks {
			c := s.program("pause attack", name, filepath.Join(dir, name))
			c.Stdout = write
			begin(t, c)
		}
		write.Close()
		var reading sync.WaitGroup
		reading.Go(func() { io.Copy(io.Discard, out) })
		init := firstOf(t, s)
		for name := range attacks {
			held[name] = awaitChange(t, filepath.Join(dir, name), nil)
		}
		pauseNow(t, s, init, dir, 1+vforkDepth)
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		for name := range attacks {
			awaitChange(t, filepath.Join(dir, name), held[name])
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		reading.Wait()
	})
}

// TestKernelAToolStopsItsWardenAfterAPause: init kills a stopped warden as before, and none that the pause has stopped.
func TestKernelAToolStopsItsWardenAfterAPause(t *testing.T) {
	inPause(t, append(sessionWalls[:2:2], bareSets[1]), func(t *testing.T, s *Session, dir string, w walls) {
		begin(t, s.program("pause attack", "counts", dir+"/count"))
		held := awaitChange(t, dir+"/count", nil)
		for n := range kerneltest.Amount(t, 1, 2, 4) {
			name := fmt.Sprint(dir, "/", n)
			doomed := begin(t, s.program("pause attack", "stops its warden", name))
			awaitChange(t, name, nil)
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			if err := doomed.Wait(); err == nil {
				t.Error("ESCAPE: a command whose warden was stopped did not fail")
			}
			held = awaitChange(t, dir+"/count", held)
		}
	})
}
