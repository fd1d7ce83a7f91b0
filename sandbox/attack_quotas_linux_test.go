package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"golang.org/x/sys/unix"
)

var _, _ = offer(attacks, "quotas", quotaActs), offer(programs, "queue signals", queueSignals)

// quotaActs use up what the tool shares with others of its user, or make the host
// start a program.
var quotaActs = []act{
	{name: "lower the core limit to 0", tame: true, try: func(ground) error { return lowerCore(unix.Prlimit) }},
	{name: "lower the core limit to 0 by setrlimit", tame: true, try: func(ground) error {
		return lowerCore(func(_, resource int, l, _ *unix.Rlimit) error { return setrlimit(resource, l) })
	}},
	{name: "seem to lower the core limit", works: true, tame: true, try: func(ground) error { return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil) }},
	{name: "read the core limit", works: true, tame: true, try: func(ground) error { return unix.Prlimit(0, unix.RLIMIT_CORE, nil, new(unix.Rlimit)) }},
	{name: "lower the limit of descriptors", works: true, tame: true, try: func(ground) error {
		var l unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			return err
		}
		l.Max--
		l.Cur = min(l.Cur, l.Max)
		return unix.Prlimit(0, unix.RLIMIT_NOFILE, &l, nil)
	}},
	{name: "hold a lease on a file that is read-only", tame: true, try: func(f ground) error { return lease(filepath.Join(f.read, "file")) }},
	{name: "hold a lease on a file that can be written", tame: true, try: func(f ground) error { return lease(filepath.Join(f.write, "file")) }},
	{name: "lock a file", works: true, tame: true, try: func(f ground) error { return lockBoth(filepath.Join(f.write, "file")) }},
	{name: "have an inotify instance", works: true, tame: true, try: func(ground) error { return instances(1) }},
	{name: "have more than half of the user's inotify instances", tame: true, unheld: []string{noNamespaces, noUserNS, noOwnProc}, try: func(ground) error {
		return instances(setting("fs/inotify/max_user_instances")/2 + 1)
	}},
	{name: "have 64 terminals", works: true, tame: true, unheld: []string{noNamespaces}, lacks: []error{unix.EMFILE, unix.ENOSPC}, try: func(ground) error { return terminals(64) }},
	{name: "have 257 of the terminals that the machine shares out", tame: true, lacks: []error{unix.EMFILE, unix.ENOSPC}, try: func(ground) error { return terminals(257) }},
	{name: "take of the machine's number of asynchronous requests", tame: true, unheld: []string{noProfile}, lacks: []error{unix.EAGAIN}, try: func(ground) error {
		var context uintptr
		return rawCall(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&context)))
	}},
	{name: "count the machine's interrupts", tame: true, unheld: []string{noNamespaces}, try: func(ground) error { return readSome("/proc/interrupts") }},
	{name: "count the machine's soft interrupts", tame: true, unheld: []string{noNamespaces}, try: func(ground) error { return readSome("/proc/softirqs") }},
	{name: "read the kernel's slabs", asRoot: true, unheld: []string{noNamespaces}, lacks: []error{unix.ENOENT, unix.EACCES}, try: func(ground) error { return readSome("/proc/slabinfo") }},
	{name: "read the processor's name", works: true, tame: true, try: func(ground) error { return readSome("/proc/cpuinfo") }},
}

// lowerCore lowers the limit of a process of its own, and looks whether it is lower.
func lowerCore(set func(pid, resource int, l, old *unix.Rlimit) error) error {
	var l unix.Rlimit
	if err := set(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil); err != nil {
		return err
	}
	if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &l); err != nil {
		return err
	}
	if l.Max != 0 {
		return fmt.Errorf("it is %d still", l.Max)
	}
	return nil
}

func lease(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

func lockBoth(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}))
}

func instances(n int) error {
	for range n {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	return nil
}

// terminals opens n terminals at one time.
func terminals(n int) error {
	for range n {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
	}
	return nil
}

func TestKernelAttackQuotas(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		attackPlainly(t, "quotas")
		attackWith(t, "quotas", w, nil)
	})
}

// queueSignals queues to its thread what it can, and waits for its input's end.
func queueSignals([]string) {
	runtime.LockOSThread()
	all := ^uint64(0)
	rawCall(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, pointerTo(&all), 0, 8)
	info := [128]byte{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // SI_QUEUE
	n := 0
	for rawCall(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getpid()), uintptr(unix.Gettid()), 40, pointerTo(&info)) == nil {
		n++
	}
	fmt.Println(n)
	os.Stdin.Read(make([]byte, 1))
}

// One run uses up its pending signals: others still start, with a deadline, and
// others of its user still make timers.
func TestKernelAttackPendingSignals(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		s := attackSandbox(t, p, w)
		c := hostile(t, s, "queue signals")
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 20)
		n, _ := out.Read(b)
		if queued, _ := strconv.Atoi(string(bytes.TrimSpace(b[:n]))); queued < 10 {
			t.Errorf("a tool can queue %d signals", queued)
		}
		p.Limits.WallClock = 3600e9
		d := attackSandbox(t, p, w).Command("/bin/true")
		d.Dir = "/"
		if err := d.Run(); err != nil {
			t.Errorf("ESCAPE: another run with a deadline does not start: %v", err)
		}
		var timer int32
		if err := rawCall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, 0, pointerTo(&timer)); err != nil {
			t.Errorf("ESCAPE: another process of the user makes no timer: %v", err)
		}
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	})
}

// A deadline is held, and a run starts, when no signal can be queued at all.
func TestKernelDeadlineWithoutPendingSignals(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			p := attackPolicy(t, "", walls{})
			p.Limits.WallClock = 300e6
			p.Limits.Rlimits.SigPending = rlimit.At(0)
			none := unix.Rlimit{}
			if err := unix.Prlimit(0, unix.RLIMIT_SIGPENDING, &none, nil); err != nil {
				t.Fatal(err)
			}
			s := attackSandbox(t, p, walls{})
			c := s.Command("/bin/sleep", "1000")
			c.Dir = "/"
			if err := c.Run(); !errors.Is(err, ErrDeadline) {
				t.Errorf("a run that has no signal to wake it: %v", err)
			}
		})
	})
}

func pointerTo[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

func setrlimit(resource int, l *unix.Rlimit) error {
	return rawCall(unix.SYS_SETRLIMIT, uintptr(resource), pointerTo(l))
}
