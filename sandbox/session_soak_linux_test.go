package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// soaking runs body as each user, with the time that the longest sequences take.
func soaking(t *testing.T, body func(t *testing.T, as kerneltest.User)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Timeout: 25 * time.Minute}, func(t *testing.T) {
			// Where huge pages are for all memory the kernel can join pages at any moment, and what a process has grows by 2 MiB.
			if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
				t.Fatal(err)
			}
			body(t, as)
		})
	})
}

// A census counts what a session holds: in the harness, in its stage and in its init.
type census struct {
	harness, stage, init int // descriptors; of init as root alone, who may look at it
	goroutines           int
	heap                 int // bytes that the harness's heap has in use
	memory               [2]int
	children             [2]int // processes of the stage and of init
	mounts               int
}

// takeCensus counts when no command has a process. The stage and init are pids[0] and pids[1].
func takeCensus(t *testing.T, as kerneltest.User, pids [2]int) census {
	t.Helper()
	descriptors := func(pid string) int {
		list, err := os.ReadDir("/proc/" + pid + "/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	c := census{harness: descriptors("self"), goroutines: runtime.NumGoroutine()}
	if as == kerneltest.Root {
		c.stage, c.init = descriptors(strconv.Itoa(pids[0])), descriptors(strconv.Itoa(pids[1]))
	}
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	c.heap = int(m.HeapAlloc)
	for i, pid := range pids {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
		fmt.Sscan(rest, &c.memory[i])
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
		if err != nil {
			t.Fatal(err)
		}
		c.children[i] = len(strings.Fields(string(list)))
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	c.mounts = strings.Count(string(text), "\n")
	if as == kerneltest.Root {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pids[1]))
		if err != nil {
			t.Fatal(err)
		}
		c.mounts += strings.Count(string(text), "\n")
	}
	return c
}

// grown says what has grown since before: a few descriptors and goroutines may be on their way out, and the memory may vary by less than a
// byte of heap, or a page of the stage and of init, for each command of the longest sequence.
func (c census) grown(before census) string {
	var more []string
	for _, f := range []struct {
		name               string
		now, then, atLarge int
	}{
		{"descriptors of the harness", c.harness, before.harness, 0},
		{"descriptors of the stage", c.stage, before.stage, 0},
		{"descriptors of init", c.init, before.init, 0},
		{"goroutines", c.goroutines, before.goroutines, 0},
		{"bytes of the harness's heap", c.heap, before.heap, 256 << 10},
		{"KiB of the stage", c.memory[0], before.memory[0], 32},
		{"KiB of init", c.memory[1], before.memory[1], 32},
		{"children of the stage", c.children[0], before.children[0], 0},
		{"children of init", c.children[1], before.children[1], 0},
		{"mounts", c.mounts, before.mounts, 0},
	} {
		if f.now > f.then+f.atLarge {
			more = append(more, fmt.Sprintf("%d %s, %d before", f.now, f.name, f.then))
		}
	}
	return strings.Join(more, "; ")
}

// TestKernelSoakManyCommandsOfASession runs them one after another, and a hundred at once: nothing grows in the harness, in the stage or in init.
func TestKernelSoakManyCommandsOfASession(t *testing.T) {
	kerneltest.Heavy(t)
	soaking(t, func(t *testing.T, as kerneltest.User) {
		s, err := attackSandbox(t, attackPolicy(t, "", allSets[0]), allSets[0]).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tool := s.sh("exec sleep 1000")
		if err := tool.Start(); err != nil {
			t.Fatal(err)
		}
		list := awaitProcesses(t, s, 1, "sleep")
		if len(list) != 1 {
			t.Fatal(list)
		}
		init := parentOf(t, parentOf(t, list[0].Outside))
		pids := [2]int{parentOf(t, init), init}
		tool.Process.Kill()
		tool.Wait()
		run := func(n int) {
			for range n {
				c := s.Command("/bin/true")
				c.Dir = "/"
				if err := c.Run(); err != nil {
					t.Fatal(err)
				}
			}
			awaitNone(t, s)
		}
		atOnce := func() {
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if err := s.sh("true").Run(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			awaitNone(t, s)
		}
		run(100)
		atOnce()
		before := takeCensus(t, as, pids)
		n, began := max(kerneltest.Soak(10_000), 200), time.Now()
		run(n)
		took := time.Since(began) / time.Duration(n)
		atOnce()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			after := takeCensus(t, as, pids)
			grown := after.grown(before)
			if grown == "" {
				t.Logf("%d commands, %v each; before %+v, after %+v", n, took, before, after)
				return
			}
			if time.Now().After(end) {
				t.Fatalf("after %d commands: %s", n, grown)
			}
		}
	})
}

// A soaked harness says where it is, and goes on: it is killed at one of these points.
var soakPoints = []string{"before Open", "opened", "a command runs", "a command has ended", "a function has run"}

var _ = offer(programs, "session soaked", func(args []string) {
	s, err := New(Workspace(args[0]))
	if err != nil {
		panic(err)
	}
	fmt.Println(soakPoints[0])
	live, err := s.Open(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(soakPoints[1])
	c := live.sh("setsid sleep 1000 >/dev/null 2>&1 & exec sleep 1000")
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Println(soakPoints[2])
	live.sh("setsid sleep 1000 >/dev/null 2>&1 & exit 1").Run()
	fmt.Println(soakPoints[3])
	if _, err := live.Files().ReadDir("/tmp"); err != nil {
		panic(err)
	}
	fmt.Println(soakPoints[4])
	forever()
})

// TestKernelSoakHarnessesAreKilled with an open session, each time at another point: no process, file or mount is left. This process is a
// subreaper, so that what a killed harness leaves becomes its child.
func TestKernelSoakHarnessesAreKilled(t *testing.T) {
	kerneltest.Heavy(t)
	soaking(t, func(t *testing.T, as kerneltest.User) {
		adoptOrphans(t)
		dir, temp := t.TempDir(), filepath.Join(t.TempDir(), "tmp")
		if err := os.Mkdir(temp, 0o777); err != nil {
			t.Fatal(err)
		}
		mounts := func() string {
			text, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		before, n := mounts(), max(kerneltest.Soak(500), len(soakPoints))
		for i := range n {
			point := soakPoints[i%len(soakPoints)]
			killHarnessAt(t, point, dir, temp)
			reapAll(t, point)
			if list, err := os.ReadDir(temp); len(list) != 0 || err != nil {
				t.Fatalf("%s: left in the temporary directory: %v, %v", point, list, err)
			}
		}
		if mounts() != before {
			t.Errorf("mounts are left: %s", mounts())
		}
		t.Logf("%d harnesses were killed", n)
	})
}

// startHarness starts a program outside of any sandbox, whose temporary directory is temp; lines are what it prints.
func startHarness(t *testing.T, temp string, args ...string) (c *exec.Cmd, lines *bufio.Scanner) {
	t.Helper()
	c = hostileBare(t, args...)
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, bufio.NewScanner(out)
}

// killHarnessAt starts a soaked harness, and kills it when it has reached the point.
func killHarnessAt(t *testing.T, point, dir, temp string) {
	t.Helper()
	c, lines := startHarness(t, temp, "session soaked", dir)
	for lines.Scan() && lines.Text() != point {
	}
	if lines.Text() != point {
		t.Fatalf("the harness ended before %q", point)
	}
	c.Process.Kill()
	c.Wait()
}
