package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A shell that waits for its job and sees it stop says so.
var _ = offer(programs, "session job", func([]string) {
	child, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{})
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	var status syscall.WaitStatus
	for err = syscall.EINTR; err == syscall.EINTR; {
		_, err = syscall.Wait4(child.Pid, &status, syscall.WUNTRACED, nil)
	}
	fmt.Println("stopped:", status.Stopped(), "signal:", status.Signal())
})

// inPause is inSessions with a directory that the session writes and the test reads.
func inPause(t *testing.T, sets []walls, body func(t *testing.T, s *Session, dir string, w walls)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sets, func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		base := t.TempDir()
		for _, d := range []string{"read", "write"} {
			if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		s, err := attackSandbox(t, attackPolicy(t, base, w), w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s, filepath.Join(base, "write"), w)
	})
}

// statOf returns the fields of proc_pid_stat(5) from the third on, the state.
func statOf(pid int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return append(strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])), make([]string, 50)...)
}

// firstOf returns the number outside of a session's init: the parent of the warden of a command that it starts.
func firstOf(t *testing.T, s *Session) int {
	t.Helper()
	begin(t, s.sh("exec tail -f /dev/null"))
	list := awaitProcesses(t, s, 1, "tail")
	if len(list) != 1 {
		t.Fatal(list)
	}
	return parentOf(t, parentOf(t, list[0].Outside))
}

// below says of each process below another what it is, in which state, and how much processor time it has used.
func below(pid int) (list []string) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(word)
			f := statOf(child)
			if f[0] == "Z" { // it executes nothing; init may reap it at any time
				continue
			}
			name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
			under := below(child)
			if f[0] == "D" && slices.ContainsFunc(under, func(p string) bool { return strings.Contains(p, " state T ") || strings.Contains(p, " state vfork ") }) {
				f[0] = "vfork" // it sleeps until its child executes or ends, which is stopped
			}
			list = append(list, fmt.Sprintf("%d %s began %s state %s user %s system %s", child, strings.TrimSpace(string(name)), f[19], f[0], f[11], f[12]))
			list = append(list, under...)
		}
	}
	return list
}

// filesOf is what the files of a directory hold.
func filesOf(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		list = append(list, fmt.Sprintf("%s %x", e.Name(), text))
	}
	return list
}

// pauseNow pauses the session, and fails the test if anything of it goes on, or is in another state than stopped. So many processes may sleep in the kernel;
// what else does, for a disk that is slow, is waited for.
func pauseNow(t *testing.T, s *Session, init int, dir string, asleep int) {
	t.Helper()
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	in := func(list []string, states ...string) (n int) {
		for _, p := range list {
			if slices.ContainsFunc(states, func(state string) bool { return strings.Contains(p, " state "+state+" ") }) {
				n++
			}
		}
		return n
	}
	processes := below(init)
	for end := time.Now().Add(2 * time.Minute); in(processes, "D") > asleep && time.Now().Before(end); processes = below(init) {
		time.Sleep(time.Millisecond)
	}
	// Who has a stopped child may sleep for a disk all the same, which ends soon.
	for end := time.Now().Add(time.Second); in(processes, "vfork") > 0 && time.Now().Before(end); processes = below(init) {
		time.Sleep(time.Millisecond)
	}
	if in(processes, "T", "t", "D", "vfork") < len(processes) || in(processes, "D") > asleep {
		t.Errorf("ESCAPE: not all is stopped:\n%s", strings.Join(processes, "\n"))
	}
	files := filesOf(t, dir)
	for range 3 {
		time.Sleep(20 * time.Millisecond) // what has escaped has time to show
		if now := below(init); !slices.Equal(now, processes) {
			t.Fatalf("ESCAPE: after Pause\n%s\nand then\n%s", strings.Join(processes, "\n"), strings.Join(now, "\n"))
		}
		if now := filesOf(t, dir); !slices.Equal(now, files) {
			t.Fatalf("ESCAPE: after Pause\n%s\nand then\n%s", files, now)
		}
	}
}

// awaitChange waits until a file is there that holds something else than before.
func awaitChange(t *testing.T, name string, before []byte) (now []byte) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		text, err := os.ReadFile(name)
		if err == nil && len(text) > 0 && string(text) != string(before) {
			return text
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not change: %x, %v", name, text, err)
		}
	}
}

// awaitStat waits until a process is in a state.
func awaitStat(t *testing.T, pid int, want string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); statOf(pid)[0] != want; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d is in state %q, not %s", pid, statOf(pid)[0], want)
		}
	}
}

// begin starts a command.
func begin(t *testing.T, c *Cmd) *Cmd {
	t.Helper()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// sleeps waits until the session runs a sleep with each of the arguments.
func sleeps(t *testing.T, s *Session, arguments ...string) map[string]policy.Process {
	t.Helper()
	list := awaitProcesses(t, s, len(arguments), "sleep")
	named := map[string]policy.Process{}
	for _, p := range list {
		named[p.Args[1]] = p
	}
	if len(named) != len(arguments) {
		t.Fatal(list)
	}
	return named
}

// TestKernelPauseStopsWhatRuns until Resume. What had been stopped stays so, no process sees another stop, and what is asked of the session meanwhile is refused.
func TestKernelPauseStopsWhatRuns(t *testing.T) {
	inPause(t, append(sessionWalls[:2:2], bareSets[1]), func(t *testing.T, s *Session, dir string, w walls) {
		begin(t, s.sh("sleep 3000 & until [ \"$(tr '\\0' ' ' </proc/$!/cmdline)\" = 'sleep 3000 ' ]; do :; done; kill -STOP $!; n=0; while :; do n=$((n+1)); echo $n >"+dir+"/count; done"))
		var printed strings.Builder
		job := s.program("session job")
		job.Stdout = &printed
		begin(t, job)
		named := sleeps(t, s, "1000", "3000")
		awaitStat(t, named["3000"].Outside, "T")
		init, count := firstOf(t, s), []byte(nil)
		for range 3 {
			count = awaitChange(t, dir+"/count", count)
			if err := s.Files().WriteFile(dir+"/file", nil, 0o600); err != nil {
				t.Errorf("files before a pause: %v", err)
			}
			pauseNow(t, s, init, dir, 0)
			if err := s.Pause(); err != nil {
				t.Errorf("a second Pause: %v", err)
			}
			for what, err := range map[string]error{"a command": s.sh("true").Run(), "a signal": s.Signal(named["1000"].PID, syscall.SIGCONT), "a file": s.Files().WriteFile(dir+"/file", nil, 0o600)} {
				var paused *policy.SessionError
				if !errors.As(err, &paused) || !errors.Is(err, policy.ErrPaused) || !strings.Contains(err.Error(), "call Resume") {
					t.Errorf("%s while the session is paused: %v", what, err)
				}
			}
			if list, err := s.Processes(); err != nil || len(list) < 4 {
				t.Errorf("Processes: %v, %v", list, err)
			}
			if err := job.Process.Signal(syscall.SIGCONT); err != nil { // it waits for Resume
				t.Error(err)
			}
			pauseNow(t, s, init, dir, 0)
			if err := errors.Join(s.Resume(), s.Resume()); err != nil {
				t.Fatal(err)
			}
			count = awaitChange(t, dir+"/count", count)
			if f := statOf(named["3000"].Outside); f[0] != "T" {
				t.Errorf("what had been stopped before is in state %s after Resume", f[0])
			}
			outputOf(t, s.sh("true"))
		}
		if err := errors.Join(s.Signal(named["3000"].PID, syscall.SIGCONT), s.Signal(named["1000"].PID, syscall.SIGTERM)); err != nil {
			t.Error(err)
		}
		awaitStat(t, named["3000"].Outside, "S")
		if err := job.Wait(); err != nil || printed.String() != "stopped: false signal: terminated\n" {
			t.Errorf("a process that waits for another: %q, %v", printed.String(), err)
		}
	})
}

// TestKernelAPausedSessionStopsWhatTheKernelContinues: a stopped process group whose last link to its session ends.
func TestKernelAPausedSessionStopsWhatTheKernelContinues(t *testing.T) {
	inPause(t, sessionWalls[:2], func(t *testing.T, s *Session, dir string, w walls) {
		begin(t, s.program("pause attack", "group", dir+"/group"))
		awaitChange(t, dir+"/group", nil)
		list, err := s.Processes()
		init := firstOf(t, s)
		if err != nil || len(list) != 2 || list[1].Parent != list[0].PID {
			t.Fatal(list, err)
		}
		pauseNow(t, s, init, dir, 0)
		if err := unix.Kill(list[0].Outside, unix.SIGKILL); err != nil { // as the kernel does for want of memory
			t.Fatal(err)
		}
		for end := time.Now().Add(2 * time.Minute); parentOf(t, list[1].Outside) == list[0].Outside; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the group is not orphaned")
			}
		}
		awaitStat(t, list[1].Outside, "T") // the kernel has continued it as it got another parent
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		now, _ := os.ReadFile(dir + "/group")
		awaitChange(t, dir+"/group", now)
	})
}

// TestKernelAPausedSessionWhoseTerminalIsHungUp: the kernel continues the process that leads the terminal's session.
func TestKernelAPausedSessionWhoseTerminalIsHungUp(t *testing.T) {
	inPause(t, sessionWalls[:2], func(t *testing.T, s *Session, dir string, w walls) {
		ours, tools := terminal(t)
		c := s.program("pause attack", "ignores a hangup", dir+"/count")
		c.Stdin, c.SysProcAttr = tools, &syscall.SysProcAttr{Setsid: true, Setctty: true}
		begin(t, c)
		awaitChange(t, dir+"/count", nil)
		list, err := s.Processes()
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		pauseNow(t, s, firstOf(t, s), dir, 0)
		if err := errors.Join(tools.Close(), ours.Close()); err != nil {
			t.Fatal(err)
		}
		awaitStat(t, list[0].Outside, "T")
		now, _ := os.ReadFile(dir + "/count")
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		awaitChange(t, dir+"/count", now)
	})
}

// TestKernelTheEndsOfAPausedSession are those of any other.
func TestKernelTheEndsOfAPausedSession(t *testing.T) {
	kerneltest.Long(t)
	for _, test := range []struct {
		name string
		end  func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd)
		all  bool // the session ends
	}{
		{"a context ends", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) { cancel() }, false},
		{"a command is killed", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) { doomed.Process.Kill() }, false},
		{"its warden is killed", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) {
			list, _ := s.Processes()
			i := slices.IndexFunc(list, func(p policy.Process) bool { return slices.Equal(p.Args, []string{"sleep", "2000"}) })
			unix.Kill(parentOf(t, list[i].Outside), unix.SIGKILL)
		}, false},
		{"the session is closed", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) { s.Close() }, true},
		{"its deadline comes", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) { s.Extend(time.Millisecond) }, true},
		{"init is killed", func(t *testing.T, s *Session, init int, cancel func(), doomed *Cmd) { unix.Kill(init, unix.SIGKILL) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inPause(t, sessionWalls[:2], func(t *testing.T, s *Session, dir string, w walls) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				other := begin(t, s.sh("setsid sleep 3000 & exec sleep 1000"))
				doomed := s.CommandContext(ctx, "/bin/sleep", "2000")
				doomed.Args[0], doomed.Dir = "sleep", "/"
				begin(t, doomed)
				named := sleeps(t, s, "1000", "2000", "3000")
				init := firstOf(t, s)
				pauseNow(t, s, init, dir, 0)
				test.end(t, s, init, cancel, doomed)
				if err := doomed.Wait(); endedBy(err) != syscall.SIGKILL {
					t.Errorf("the command's end: %v", err)
				}
				if !test.all {
					if state := statOf(named["1000"].Outside)[0]; state != "T" {
						t.Errorf("another command's process is in state %q", state)
					}
					if err := s.Resume(); err != nil {
						t.Error(err)
					}
					awaitStat(t, named["1000"].Outside, "S")
					awaitStat(t, named["3000"].Outside, "S")
					outputOf(t, s.sh("true"))
					s.Close()
				}
				other.Wait()
				for _, p := range named {
					if !isDead(p.Outside) {
						t.Errorf("ESCAPE: %v outlives its session", p.Args)
					}
				}
				s.Close()
				for _, err := range []error{s.Pause(), s.Resume()} {
					if over := (*policy.SessionError)(nil); !errors.As(err, &over) {
						t.Errorf("after the end: %v", err)
					}
				}
			})
		})
	}
}

// TestKernelAPauseWhileCommandsStart: each is refused, or stopped with the others.
func TestKernelAPauseWhileCommandsStart(t *testing.T) {
	inPause(t, sessionWalls[:2], func(t *testing.T, s *Session, dir string, w walls) {
		init := firstOf(t, s)
		over := make(chan struct{})
		var starting sync.WaitGroup
		for i := range 4 {
			starting.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-over:
						return
					default:
					}
					err := s.sh(fmt.Sprintf("echo %d >%s/%d", n, dir, i)).Run()
					if err != nil && !errors.Is(err, policy.ErrPaused) {
						t.Errorf("a command that started while a pause began or ended: %v", err)
						return
					}
				}
			})
		}
		for range kerneltest.Amount(t, 1, 2, 3) {
			pauseNow(t, s, init, dir, 0)
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
			outputOf(t, s.sh("true"))
		}
		close(over)
		starting.Wait()
	})
}
