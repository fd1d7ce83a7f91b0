package commandtest

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// toolPolicy shows the system to read and one directory to write, passes the
// whole environment, and leaves the limits as they are.
func toolPolicy(dir string) sandbox.Policy {
	p := sandbox.Policy{Files: sandbox.Files{Write: []string{dir}}, Env: sandbox.Env{Pass: []string{"*"}}, Open: []sandbox.Bound{policy.BoundResources}}
	for _, d := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc"} {
		if _, err := os.Stat(d); err == nil {
			p.Files.Read = append(p.Files.Read, d)
		}
	}
	return p
}

// warm runs one command, so that what a process opens once is open.
func warm(t *testing.T, s *sandbox.Sandbox) {
	t.Helper()
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGUSR2) // starts a goroutine that stays
	signal.Stop(ch)
	c := s.Command("/bin/true")
	c.Stdout = new(bytes.Buffer)
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
}

// An inventory is what a process holds that commands can leave behind.
type inventory struct {
	fds        []string
	goroutines int
	mounts     string
	own        []string // where this process's commands have their directories
	temp       []string
	children   []int
}

func takeInventory(t *testing.T) inventory {
	t.Helper()
	i := inventory{goroutines: runtime.NumGoroutine(), children: children(t)}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && !strings.HasSuffix(to, "/fd") { // not the one that read the list
			i.fds = append(i.fds, e.Name()+" "+to)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	i.mounts = string(mounts)
	test, _, _ := strings.Cut(t.Name(), "/")
	i.own = []string{"/proc", os.Getenv("HOME"), os.TempDir() + "/" + test}
	if i.temp, err = filepath.Glob(os.TempDir() + "/*"); err != nil {
		t.Fatal(err)
	}
	return i
}

// more says what i has that before had not.
func (i inventory) more(before inventory) string {
	var words []string
	for _, list := range [][2][]string{{i.fds, before.fds}, {i.temp, before.temp}} {
		for _, x := range list[0] {
			if !slices.Contains(list[1], x) {
				words = append(words, x)
			}
		}
	}
	if i.goroutines > before.goroutines {
		words = append(words, fmt.Sprintf("%d goroutines", i.goroutines-before.goroutines))
	}
	words = append(words, newMounts(before.mounts, i.mounts, i.own)...)
	for _, pid := range i.children {
		if !slices.Contains(before.children, pid) {
			words = append(words, fmt.Sprintf("process %d (%s)", pid, argv(pid)))
		}
	}
	return strings.Join(words, ", ")
}

// newMounts returns the mounts of a mountinfo that were not there before: those on the root directory, where a sandbox without private propagation would
// leave its own, and those at paths that begin as one of own. All processes of the machine make mounts elsewhere.
func newMounts(before, now string, own []string) (list []string) {
	for line := range strings.Lines(now) {
		if fields := strings.Fields(line); len(fields) > 4 && !strings.Contains(before, line) {
			at := fields[4]
			if at == "/" || slices.ContainsFunc(own, func(dir string) bool { return dir != "" && strings.HasPrefix(at, dir) }) {
				list = append(list, "mount "+at)
			}
		}
	}
	return list
}

// TestMountsOfOtherProcessesAreNotLeftBehind: by the test's own commands.
func TestMountsOfOtherProcessesAreNotLeftBehind(t *testing.T) {
	const before = "21 1 8:1 / / rw - ext4 /dev/sda rw\n"
	for at, want := range map[string]int{"/": 1, "/proc/fs": 1, "/home/u/ws": 1, "/tmp/TestKernelX12/001/d": 1, "/mnt/other": 0, "/tmp/TestKernelY/001": 0, "/run/user/0": 0} {
		now := before + "40 21 0:30 / " + at + " rw - tmpfs tmpfs rw\n"
		if got := newMounts(before, now, []string{"/proc", "/home/u", "/tmp/TestKernelX", ""}); len(got) != want {
			t.Errorf("%s: %q; want %d", at, got, want)
		}
	}
}

// settleTime is how long what is ending may take to be gone. It is a bound on
// failures, not on passes.
const settleTime = time.Minute

// leftOver says what there is now and was not before, once it stays.
func leftOver(t *testing.T, before inventory) string {
	t.Helper()
	left := ""
	eventually(func() bool {
		left = takeInventory(t).more(before)
		return left == ""
	})
	return left
}

// eventually asks until the answer is yes, or for settleTime.
func eventually(yes func() bool) bool {
	for end := time.Now().Add(settleTime); ; {
		if yes() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
}

// children lists this process's children.
func children(t *testing.T) []int {
	t.Helper()
	var list []int
	tasks, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue // the thread has ended
		}
		for word := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				list = append(list, pid)
			}
		}
	}
	return list
}

func argv(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(strings.TrimRight(string(text), "\x00"), "\x00", " ")
}

// marked lists the living processes that have a word among their arguments.
func marked(t *testing.T, word string) []int {
	t.Helper()
	list, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range list {
		text, err := os.ReadFile(p)
		if err != nil || !slices.Contains(strings.Split(string(text), "\x00"), word) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(p)))
		if err == nil && pid != os.Getpid() {
			found = append(found, pid)
		}
	}
	return found
}

// untilIs is a piece of a script of bash that waits until its last process in the background has executed a program with that
// word for its first argument: before, it is a copy of the shell, which marked does not find.
func untilIs(word string) string {
	return `until IFS= read -r -d "" argv0 </proc/$!/cmdline && [ "$argv0" = ` + word + ` ]; do :; done; `
}

// killMarked ends what a test has left, and returns when it is dead: what is observed next may count it otherwise.
func killMarked(t *testing.T, word string) {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		left := marked(t, word)
		for _, pid := range left {
			syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Errorf("processes %v do not end", left)
			return
		}
	}
}
