package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A standing is a process as /proc/PID/stat has it.
type standing struct {
	pid, parent int
	state       string
}

// stagesIn lists the processes that are the sandbox's own or have not been executed yet.
func stagesIn() map[int]standing {
	found := map[int]standing{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		head, rest, ok := bytes.Cut(text, []byte(" (holdfast/init) "))
		if fields := strings.Fields(string(rest)); ok && len(fields) > 1 {
			pid, _ := strconv.Atoi(string(head))
			parent, _ := strconv.Atoi(fields[1])
			found[pid] = standing{pid, parent, fields[0]}
		}
	}
	return found
}

// standsReady finds a tool that stands ready in the session of this process, and its warden, and waits until there is one.
func standsReady() (tool, warden int) {
	own := os.Getppid()
	for ; ; time.Sleep(time.Millisecond) {
		all := stagesIn()
		for _, p := range all {
			if w, is := all[p.parent]; is && p.state == "S" && w.state == "S" && w.pid != own && w.parent == all[own].parent && w.parent != 0 {
				return p.pid, w.pid
			}
		}
	}
}

// "session ready" waits until a tool stands ready, and says "ready"; it sends signals to it or to its warden, and waits until both
// have ended, if they are to.
var _ = offer(programs, "session ready", func(args []string) {
	tool, warden := standsReady()
	to, ends := tool, false
	if len(args) > 0 && args[0] == "warden" {
		to = warden
	}
	for _, arg := range args[min(1, len(args)):] {
		n, _ := strconv.Atoi(arg)
		if err := unix.Kill(to, syscall.Signal(n)); err != nil {
			fmt.Println("kill:", err)
		}
		ends = ends || n == int(unix.SIGKILL) || n == int(unix.SIGSTOP)
	}
	for ; ends; time.Sleep(time.Millisecond) {
		all := stagesIn()
		_, first := all[tool]
		_, second := all[warden]
		ends = first || second
	}
	fmt.Println("ready")
})

// "session ready spy" is "session spy" of what stands ready.
var _ = offer(programs, "session ready spy", func([]string) {
	tool, warden := standsReady()
	programs["session spy"]([]string{strconv.Itoa(tool), strconv.Itoa(warden)})
})

// TestKernelAttackWhatStandsReady: what a command does to the process that stands ready for the next one does not reach that: it
// finds the process as it was made, or starts as the first command does.
func TestKernelAttackWhatStandsReady(t *testing.T) {
	kerneltest.Long(t)
	for _, test := range []struct {
		name string
		args []string
		warm bool
	}{
		{"nothing is done", nil, true},
		{"the tool is killed", []string{"tool", "9"}, false},
		{"the tool is stopped", []string{"tool", "19"}, false},
		{"the warden is killed", []string{"warden", "9"}, false},
		{"the warden is stopped", []string{"warden", "19"}, false},
		{"the tool is sent signals that end a process", []string{"tool", "1", "2", "10", "12", "14", "15", "15", "34", "34", "64"}, true},
		{"the tool is sent signals that stop and continue one", []string{"tool", "20", "21", "22", "18", "20"}, true},
		{"the warden is sent signals", []string{"warden", "1", "2", "10", "12", "15", "17", "20", "34", "18"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, _ walls) {
				attack := append([]string{"session ready"}, test.args...)
				if got := outputOf(t, s.program(attack...)); got != "ready" {
					t.Fatal(got)
				}
				next := s.sh("echo $((6*7))")
				if got := outputOf(t, next); got != "42" {
					t.Errorf("the next command: %q", got)
				}
				if cold := next.run.Account().Cold; (cold == "") != test.warm {
					t.Errorf("the next command was cold: %q", cold)
				}
				if r := next.Report(); !held(r, policy.BoundSyscalls, policy.BoundPrivileges, policy.BoundResources) {
					t.Errorf("the next command's report:\n%s", r)
				}
				outputOf(t, s.program("session ready"))
				last := s.sh("true")
				outputOf(t, last)
				if cold := last.run.Account().Cold; cold != "" {
					t.Errorf("the command after it was cold: %s", cold)
				}
			})
		})
	}
}

// TestKernelWhatStandsReadyIsMadeInABusySession: connections that init dials, each of which wakes it, do not put off the process for the next command
// while the latest one goes on.
func TestKernelWhatStandsReadyIsMadeInABusySession(t *testing.T) {
	const closed = 4321 // no tool listens there
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	eachWall(t, sessionWalls[:1], func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		p.Network.Listen = []uint16{closed}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, stop := context.WithCancel(t.Context())
		refused := make(chan int)
		go func() {
			n := 0
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if _, err := s.DialInside(ctx, closed); errors.Is(err, unix.ECONNREFUSED) {
					n++
				}
			}
			refused <- n
		}()
		within(t, "the process for the next command", func() error {
			if got := outputOf(t, s.program("session ready")); got != "ready" {
				return errors.New(got)
			}
			return nil
		})
		stop()
		if n := <-refused; n < 3 {
			t.Errorf("init was woken %d times", n)
		}
	})
}

// held reports whether a report holds these bounds.
func held(r *Report, bounds ...Bound) bool {
	return !slices.ContainsFunc(bounds, func(b Bound) bool { s := r.Bound(b).State; return s != Held && s != Partly })
}

// TestKernelTheMemoryOfWhatStandsReady is closed to commands, and so are its descriptors.
func TestKernelTheMemoryOfWhatStandsReady(t *testing.T) {
	inSessions(t, append(sessionWalls, bareSets[1]), func(t *testing.T, s *Session, _ walls) {
		spied := outputOf(t, s.program("session ready spy"))
		for line := range strings.Lines(spied) {
			if strings.HasSuffix(line, "false\n") {
				t.Errorf("ESCAPE: %s", line)
			}
		}
		if n := strings.Count(spied, "true"); n < 20-1 {
			t.Errorf("%d tries: %s", n, spied)
		}
	})
}

// TestKernelLongArgumentsOfWarmCommands: what says a command has room in the memory of the process that stands ready, or is mapped. Each length is
// tried by a process that stands ready and by one that does not.
func TestKernelLongArgumentsOfWarmCommands(t *testing.T) {
	kerneltest.Long(t)
	inSessions(t, sessionWalls[:1], func(t *testing.T, s *Session, _ walls) {
		text := strings.Repeat("0123456789abcdefghijklm", 5000)
		seen := map[bool]int{}
		lengths := []int{0, 20_000, 100_000}
		for n := 5600; n <= 8400; n += 40 { // with the rest of a program, on both sides of its room
			lengths = append(lengths, n)
		}
		for i, n := range lengths {
			if i%8 == 0 {
				outputOf(t, s.program("session ready"))
			}
			c := s.sh(`printf %s "$1"`)
			c.Args = append(c.Args, "sh", text[:n])
			if got := outputOf(t, c); got != text[:n] {
				t.Fatalf("of %d bytes %d arrived: %.50q", n, len(got), got)
			}
			seen[c.run.Account().Cold == ""]++
		}
		if seen[true] == 0 {
			t.Error("no command was warm")
		}
	})
}

// procStat is the state and the scheduling policy of a process (proc(5)), and its parent.
func procStat(t *testing.T, pid int) (state string, parent, scheduling int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	parent, _ = strconv.Atoi(fields[1])
	scheduling, _ = strconv.Atoi(fields[38])
	return fields[0], parent, scheduling
}

// TestKernelAWardenGoesBehindItsStage: once nothing is left of a command, its warden is to interrupt no process as it ends; while something is left it supervises as before.
func TestKernelAWardenGoesBehindItsStage(t *testing.T) {
	inSessions(t, append(sessionWalls, bareSets[1]), func(t *testing.T, s *Session, _ walls) {
		for _, left := range []bool{false, true} {
			script, wants := "read x; exit 0", unix.SCHED_BATCH
			if left {
				script, wants = "sleep 1000 & read x; exit 0", unix.SCHED_NORMAL
			}
			c := s.sh(script)
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			shell := awaitProcesses(t, s, 1, "/bin/sh")[0].Outside
			_, warden, scheduling := procStat(t, shell)
			if scheduling != unix.SCHED_NORMAL {
				t.Skipf("the tests run with the scheduling policy %d, not SCHED_OTHER", scheduling)
			}
			// The warden stays until its stage has ended, which is stopped for that.
			if err := c.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			await := func(what string, is func() bool) {
				for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
					if time.Now().After(end) {
						t.Fatalf("left %v: %s", left, what)
					}
				}
			}
			await("the stage is not stopped", func() bool { state, _, _ := procStat(t, c.Process.Pid); return state == "T" })
			in.Close()
			await("the tool has not ended", func() bool { _, err := os.Stat(fmt.Sprintf("/proc/%d", shell)); return err != nil })
			await("the warden's scheduling policy is not the wanted one", func() bool {
				state, _, scheduling := procStat(t, warden)
				return state == "S" && scheduling == wants
			})
			if err := c.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		}
	})
}
