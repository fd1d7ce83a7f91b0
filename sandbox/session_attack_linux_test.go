package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// harnessLines is how often "session harness" says how far it is.
const harnessLines = 5

var _ = offer(programs, "session harness", func(args []string) {
	p := Workspace(os.TempDir())
	p.Files = Files{Read: []string{"/usr", "/bin", "/lib", "/lib64"}, Private: []string{"/tmp"}}
	for _, b := range strings.Fields(args[0]) {
		p.May = append(p.May, Bound(b))
	}
	s, err := New(p)
	if err != nil {
		panic(err)
	}
	live, err := s.Open(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println("open")
	left := live.sh("sleep 1000 >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 &")
	left.Run()
	fmt.Println("left")
	c := live.sh("setsid sleep 1000 & sleep 1000")
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Println("started")
	if _, err := live.Files().ReadFile("/usr"); err == nil {
		panic("a directory was read")
	}
	left.Cancel()
	fmt.Println("cancelled")
	go live.sh("setsid sleep 1000").Run()
	go c.Process.Kill()
	go live.Close()
	fmt.Println("closing")
	forever()
})

// TestKernelASessionEndsWithItsHarness: it is killed, and nothing is left.
func TestKernelASessionEndsWithItsHarness(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		adoptOrphans(t)
		for n := range kerneltest.Amount(t, 1, 2, harnessLines) {
			dir := t.TempDir()
			c, lines := startHarness(t, dir, "session harness", strings.Join(boundNames(w.may), " "))
			for range 1 + n%harnessLines {
				if !lines.Scan() {
					t.Fatalf("the harness ended: %v", lines.Err())
				}
			}
			for range n * 1000 { // somewhere between two lines
				runtime.Gosched()
			}
			c.Process.Kill()
			c.Wait()
			reapAll(t, n)
			if list, err := os.ReadDir(dir); len(list) > 0 || err != nil {
				t.Fatalf("%d: %v is left, %v", n, list, err)
			}
		}
	})
}

func boundNames(list []Bound) (names []string) {
	for _, b := range list {
		names = append(names, string(b))
	}
	return names
}

// adoptOrphans has processes that have lost their parents become this one's children.
func adoptOrphans(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
}

// reapAll waits until no process is left of which this one is the parent or the subreaper.
func reapAll(t *testing.T, killedAt any) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.ECHILD:
			return
		case err != nil && err != unix.EINTR:
			t.Fatal(err)
		case pid == 0 && time.Now().After(end):
			list, _ := os.ReadFile("/proc/thread-self/children")
			t.Fatalf("killed at %v: processes are left: %s", killedAt, list)
		case pid == 0:
			time.Sleep(time.Millisecond)
		}
	}
}

// TestKernelManyCommandsOfASessionLeaveNothing in the harness, nor in the session.
func TestKernelManyCommandsOfASessionLeaveNothing(t *testing.T) {
	kerneltest.Long(t)
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		many := func(n, atOnce int) {
			var wait sync.WaitGroup
			for range atOnce {
				wait.Go(func() {
					for range n {
						if err := s.sh("true").Run(); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wait.Wait()
		}
		count := func() (descriptors, goroutines, inside int) {
			fds, _ := os.ReadDir("/proc/self/fd")
			if w.bare() {
				own, _ := os.ReadDir(outputOf(t, s.sh("dirname $TMPDIR")))
				return len(fds), runtime.NumGoroutine(), len(own)
			}
			text := outputOf(t, s.sh("echo $(($(wc -l < /proc/self/mountinfo) + $(ls -d /proc/[0-9]* | wc -l))); ls /proc/sysvipc >/dev/null"))
			inside, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return len(fds), runtime.NumGoroutine(), inside
		}
		many(1, 20)
		awaitNone(t, s)
		fds, goroutines, inside := count()
		many(kerneltest.Amount(t, 20, 50, 100), 1)
		many(kerneltest.Amount(t, 3, 10, 20), 20)
		awaitNone(t, s)
		end := time.Now().Add(time.Minute)
		for {
			f, g, i := count()
			if f <= fds+2 && g <= goroutines+2 && i <= inside { // a warden may have been on its way out before
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d descriptors and %d goroutines, %d and %d before; inside %d, %d before", f, g, fds, goroutines, i, inside)
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// awaitNone waits until no command of a session has a process.
func awaitNone(t *testing.T, s *Session) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		list, err := s.Processes()
		if err == nil && len(list) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v, %v", list, err)
		}
	}
}

// Attacks of one command on the sandbox's own processes: what they gain is the end of commands, which a command can have by a signal to a
// tool as well. The victim is always a command that has a daemon.
func TestKernelAttackTheWardens(t *testing.T) {
	kerneltest.Long(t)
	for _, test := range []struct {
		name, attack string
		lost         bool // the victim's harness learns that its warden was killed
	}{
		{"a warden is killed", "kill -9 $(cat ${TMPDIR:-/tmp}/warden)", true},
		{"a warden is stopped", "kill -STOP $(cat ${TMPDIR:-/tmp}/warden)", true},
		{"everything is killed", "kill -9 -1", true},
		{"every group is killed", "for p in /proc/[0-9]*; do kill -9 -- -${p#/proc/} 2>/dev/null; done; kill -9 $(cat ${TMPDIR:-/tmp}/warden)", true},
		{"a warden is terminated", "for s in 1 2 3 6 10 12 13 14 15 17 18 20 21 22 29 31; do kill -$s $(cat ${TMPDIR:-/tmp}/warden) 1; done; kill -9 $(cat ${TMPDIR:-/tmp}/tool)", false},
		{"init is killed", "kill -9 1; kill -STOP 1; kill -9 $(cat ${TMPDIR:-/tmp}/tool)", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inSessions(t, sessionWalls[:1], func(t *testing.T, s *Session, _ walls) {
				victim := s.sh("echo $PPID > ${TMPDIR:-/tmp}/warden; setsid sleep 1000 & echo $$ > ${TMPDIR:-/tmp}/tool; exec sleep 1000")
				if err := victim.Start(); err != nil {
					t.Fatal(err)
				}
				list := awaitProcesses(t, s, 2, "sleep")
				if len(list) != 2 {
					t.Fatal(list)
				}
				s.sh(test.attack).Run()
				err := victim.Wait()
				var lost *ProcessError
				if is := errors.As(err, &lost) && lost.Process == "warden"; is != test.lost || endedBy(err) != syscall.SIGKILL {
					t.Errorf("the victim's end: %v", err)
				}
				for _, p := range list {
					if test.lost && !isDead(p.Outside) {
						t.Errorf("ESCAPE: %v outlives its warden", p.Args)
					}
				}
				outputOf(t, s.sh("true"))
				if r := victim.Report(); r == nil {
					t.Error("no report")
				}
			})
		})
	}
}

var _ = offer(programs, "session spy", func(args []string) {
	for _, file := range []string{"mem", "environ", "maps", "fd/0", "cwd", "root", "exe"} {
		for _, pid := range args {
			_, err := os.Open("/proc/" + pid + "/" + file)
			fmt.Println(pid, file, err != nil)
		}
	}
	for _, pid := range args {
		n, _ := strconv.Atoi(pid)
		fmt.Println(pid, "ptrace", unix.PtraceSeize(n) != nil)
		fd, err := unix.PidfdOpen(n, 0)
		if err == nil {
			_, err = unix.PidfdGetfd(fd, 0, 0)
		}
		fmt.Println(pid, "getfd", err != nil)
		local := []unix.Iovec{{Base: new(byte), Len: 1}}
		_, err = unix.ProcessVMReadv(n, local, []unix.RemoteIovec{{Base: 0x400000, Len: 1}}, 0)
		fmt.Println(pid, "readv", err != nil)
	}
})

// TestKernelAttackTheMemoryOfASessionsProcesses: that of init, of the wardens, and of other commands' tools is closed.
func TestKernelAttackTheMemoryOfASessionsProcesses(t *testing.T) {
	inSessions(t, append(sessionWalls, bareSets[1]), func(t *testing.T, s *Session, _ walls) {
		victim := s.sh("echo $PPID $$ $(cut -d ' ' -f 4 /proc/$PPID/stat) > ${TMPDIR:-/tmp}/pids; echo ready; exec sleep 1000")
		out, err := victim.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		pids := strings.Fields(outputOf(t, s.sh("cat ${TMPDIR:-/tmp}/pids")))
		spied := outputOf(t, s.program(append([]string{"session spy"}, pids...)...))
		for line := range strings.Lines(spied) {
			if strings.HasSuffix(line, "false\n") {
				t.Errorf("ESCAPE: %s", line)
			}
		}
		if n := strings.Count(spied, "true"); n < 30-1 {
			t.Errorf("%d tries: %s", n, spied)
		}
		victim.Process.Kill()
		victim.Wait()
	})
}

// TestKernelAttackACommandThatIsBeingCancelled forks as fast as it can, each child in a session of its own.
func TestKernelAttackACommandThatIsBeingCancelled(t *testing.T) {
	kerneltest.Long(t)
	inSession(t, func(t *testing.T, s *Session) {
		c := s.program("session bomb")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, 64))
		c.Process.Kill()
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case err := <-done:
			if endedBy(err) != syscall.SIGKILL {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("it does not end")
		}
		if list, err := s.Processes(); len(list) != 0 || err != nil {
			t.Errorf("ESCAPE: %v, %v", list, err)
		}
		outputOf(t, s.sh("true"))
	})
}

var _ = offer(programs, "session bomb", func([]string) {
	b := []byte{'.'}
	if pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0); pid != 0 {
		forever()
	}
	for {
		// Each generation leaves its parent at once, and says so.
		pid, _, _ := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if pid == 0 {
			unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
			unix.RawSyscall(unix.SYS_WRITE, 1, pointerTo(&b[0]), 1)
			continue
		}
		unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
})

var _ = offer(programs, "session stopper", func([]string) {
	fmt.Println("ready")
	var init int
	fmt.Scan(&init)
	own := os.Getpid()
	for {
		for pid := max(2, own-300); pid < own+300; pid++ {
			if pid != own && pid != os.Getppid() && pid != init {
				unix.Kill(pid, unix.SIGSTOP)
			}
		}
	}
})

// TestKernelAttackCommandsThatStart stops whatever process it finds, tools that are not executed yet and their wardens among them: each
// command can be cancelled all the same, and the session goes on when the attacker is gone. It spares init, whose end would be that of a
// session without namespaces (TestKernelAttackTheProcessesOfABareSession).
func TestKernelAttackCommandsThatStart(t *testing.T) {
	kerneltest.Long(t)
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, w walls) {
		attacker := s.program("session stopper")
		out, err := attacker.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		in, err := attacker.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := attacker.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		init := 1
		if w.bare() {
			list, err := s.Processes()
			if len(list) != 1 {
				t.Fatal(list, err)
			}
			init = parentOf(t, parentOf(t, list[0].Outside))
		}
		fmt.Fprintln(in, init)
		ended := make(chan struct{})
		go func() {
			for range kerneltest.Amount(t, 3, 10, 50) {
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				c := s.CommandContext(ctx, "/bin/sh", "-c", "setsid true & exit")
				c.Dir = "/"
				c.Run() // whatever becomes of it
				cancel()
			}
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(2 * time.Minute):
			t.Fatal("a command does not end")
		}
		attacker.Process.Kill()
		attacker.Wait()
		outputOf(t, s.sh("true"))
	})
}
