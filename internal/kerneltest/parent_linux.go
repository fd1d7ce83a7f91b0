package kerneltest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// calls counts the calls of InChild by test name, in the parent and, the same
// way, in the child: together with the name the number identifies a call.
var calls = struct {
	sync.Mutex
	n map[string]int
}{n: map[string]int{}}

// nextCall counts anew for each run of a test: the child, which runs it once, has
// no part in the runs before (-test.count, -test.cpu).
func nextCall(t *testing.T) int {
	name := t.Name()
	calls.Lock()
	defer calls.Unlock()
	calls.n[name]++
	if calls.n[name] == 1 {
		t.Cleanup(func() {
			calls.Lock()
			defer calls.Unlock()
			delete(calls.n, name)
		})
	}
	return calls.n[name]
}

// InChild runs body in a child process and ends the test as the body ended:
// the test goes on if it passed, fails at once if it did not, is skipped if it
// was skipped. The body runs on a locked thread, in a session and process group
// of its own, in this process's working directory, with /dev/null as input. What
// the child wrote is in the test's log.
//
// A child that ends in any other way than through the body's end, or that
// leaves a process behind, fails the test. The processes left are killed, if
// they kept the child's session or its environment; others are not noticed.
// Statements of the test before InChild happen in the child too, those after it do not.
// TestMain must call Main. A body must not call InChild, nor replace its process by execve.
func InChild(t *testing.T, c Child, body func(t *testing.T)) {
	t.Helper()
	call := nextCall(t)
	if inside != nil {
		inside.run(t, call, body)
		return
	}
	if !entered {
		t.Fatal("kerneltest: TestMain does not call kerneltest.Main")
	}
	if c.As == Root && os.Geteuid() != 0 {
		t.Skipf("needs root: the user id is %d", os.Geteuid())
	}
	for _, f := range childNeeds {
		if !slices.ContainsFunc(f.Features, func(taken Feature) bool { return slices.Contains(c.Without, taken) }) {
			Need(t, f)
		}
	}
	result, text, err := start(t, c, call)
	if err != nil {
		t.Fatal(err)
	}
	if text != "" {
		t.Log(text)
	}
	switch result {
	case bad:
		t.FailNow()
	case skip:
		t.SkipNow()
	}
}

// Parallel lets a test run beside others, as t.Parallel does, where it waits for its children. In a child, which
// runs one test on a thread of its own, it does nothing. It is not for tests that use up what all processes of a
// user share, such as processes, keys or pending signals, nor for those that look for processes by what they
// share with others.
func Parallel(t *testing.T) {
	t.Helper()
	if inside == nil {
		t.Parallel()
	}
}

// start runs the child to its end and returns its verdict and its words.
func start(t *testing.T, c Child, call int) (outcome, string, error) {
	h, err := newHabitat(c)
	if err != nil {
		return bad, "", err
	}
	defer func() {
		if err := os.RemoveAll(h.dir); err != nil {
			t.Errorf("kerneltest: %v", err)
		}
	}()
	record, err := os.Create(h.dir + "/record")
	if err != nil {
		return bad, "", err
	}
	defer record.Close()

	if c.Timeout == 0 {
		c.Timeout = 4 * time.Minute // an emulated machine has little time
	}
	// The test binary's own timeout comes first, for the sake of its stacks.
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout+time.Minute)
	defer cancel()
	id := rand.Text()
	var out bytes.Buffer
	cmd, err := h.command(ctx, t, c, call)
	if err != nil {
		return bad, "", err
	}
	cmd.Env = append(cmd.Env, idEnv+"="+id)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.ExtraFiles = []*os.File{record}

	// The death of this thread, not of this process alone, would kill the child (prctl(2), PR_SET_PDEATHSIG).
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	awaitKeys(h.uid)
	if err := cmd.Start(); err != nil {
		return bad, "", fmt.Errorf("kerneltest: starting the child: %w", err)
	}
	exit := cmd.Wait()
	left := survivors(cmd.Process.Pid, id)
	if ctx.Err() != nil {
		exit = fmt.Errorf("killed after %v: %w", c.Timeout, errors.Join(ctx.Err(), exit))
	}
	said, err := io.ReadAll(io.NewSectionReader(record, 0, 1<<20))
	if err != nil {
		return bad, "", err
	}
	result, text := judge(string(said), exit, relay(out.String(), t.Name()), left)
	return result, text, nil
}

// command is the test binary with this one test, for the habitat's user.
func (h *habitat) command(ctx context.Context, t *testing.T, c Child, call int) (*exec.Cmd, error) {
	s := spec{Test: t.Name(), Call: call, Without: c.Without, Home: c.Home, Parent: os.Getpid(),
		SetUser: h.setUser, UID: h.uid, GID: h.gid}
	marker, err := s.env()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, h.exe, "-test.run="+runPattern(t.Name()), "-test.v", "-test.count=1",
		"-test.paniconexit0", "-test.timeout="+c.Timeout.String(), fmt.Sprintf("-test.short=%t", testing.Short()))
	cmd.Env = append(append(os.Environ(), h.env...), c.Env...)
	cmd.Env = append(cmd.Env, marker)
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = attributes(s)
	return cmd, nil
}

// judge adds what the child wrote and what it left behind to the verdict.
func judge(record string, exit error, wrote, left string) (outcome, string) {
	result, why := verdict(record, exit)
	if result == skip {
		return skip, "in the child: " + lastLine(wrote)
	}
	if left != "" {
		result, why = bad, joinLines(why, "processes left behind: "+left)
	}
	return result, joinLines(wrote, why)
}

func joinLines(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// attributes puts the child in a session of its own and, where its spec asks
// for it, in a user namespace and a mount namespace of its own.
func attributes(s spec) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if s.without(WholeProc) || s.Home != "" {
		attr.Cloneflags = syscall.CLONE_NEWNS
	}
	if !s.without(MoreUserNamespaces) && (attr.Cloneflags == 0 || os.Getuid() == 0) {
		return attr
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER
	uid, gid, size := os.Getuid(), os.Getgid(), 1
	if uid == 0 {
		gid, size = 0, 1<<16
		attr.GidMappingsEnableSetgroups = true
	} else {
		// Not being root inside, the child keeps the capabilities to write its
		// namespace's sysctl, and to mount, only as ambient ones (capabilities(7)).
		attr.AmbientCaps = []uintptr{capSysResource, unix.CAP_SYS_ADMIN}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: size}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: size}}
	return attr
}
