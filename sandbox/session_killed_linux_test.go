package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A moment is a point of a command's life, which the command reaches and stays at until the session is killed. The functions return when the
// command is there, and leave what it takes to hear of its end in then.
type moment struct {
	name  string
	reach func(t *testing.T, s *Session, k *killing)
	// running: the tool was executed before the session was killed, so Start returned nil.
	running bool
}

// A killing is one session, the processes of which are known, and its command.
type killing struct {
	init, stage int
	dir         string
	command     *Cmd
	out         io.Reader
	started     chan error
}

// start starts the command in the background.
func (k *killing) start(t *testing.T) {
	t.Helper()
	k.started = make(chan error, 1)
	go func() { k.started <- k.command.Start() }()
}

// leased makes a tool in dir and takes a lease on its file. The function waits reports whether an open or an execve waits for the lease.
func leased(t *testing.T, dir string) (tool string, waits func() bool) {
	t.Helper()
	tool = filepath.Join(dir, "tool")
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tool, text, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(tool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("needs leases on files: %v", err)
	}
	return tool, func() bool {
		is, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
		return err != nil || is != unix.F_WRLCK
	}
}

var moments = []moment{
	{name: "before the command is handed over", reach: func(t *testing.T, s *Session, k *killing) {
		k.command = s.sh("exec sleep 1000")
	}},
	{name: "handed over, and init is stopped", reach: func(t *testing.T, s *Session, k *killing) {
		if err := syscall.Kill(k.init, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		k.command = s.sh("exec sleep 1000")
		k.start(t)
		await(t, "a stage that waits", func() bool { return waitsInPoll(k.stage) })
	}},
	{name: "the tool's file is not open yet", reach: func(t *testing.T, s *Session, k *killing) {
		tool, waits := leased(t, k.dir)
		k.command = s.Command(tool)
		k.command.Dir = "/"
		k.start(t)
		await(t, "an execve that waits for the lease", waits)
	}},
	{name: "the tool was executed", running: true, reach: func(t *testing.T, s *Session, k *killing) {
		k.command = s.sh("exec sleep 1000")
		if err := k.command.Start(); err != nil {
			t.Fatal(err)
		}
	}},
	{name: "its output was read", running: true, reach: func(t *testing.T, s *Session, k *killing) {
		k.command = s.sh("echo ready; exec sleep 1000")
		out, err := k.command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := k.command.Start(); err != nil {
			t.Fatal(err)
		}
		k.out = out
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
	}},
}

// TestKernelASessionIsKilledAtEachMoment of a command's life: the command fails at once with an error that says so, its output ends, and
// neither a later command nor Close hangs. Without a pid namespace the keeper may kill the tool before its warden, which then tells that the
// tool was killed.
func TestKernelASessionIsKilledAtEachMoment(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:1], func(t *testing.T, w walls) {
		p := attackPolicy(t, makeGrounds(t, 1), w)
		dir := p.Files.Write[0]
		of := attackSandbox(t, p, w)
		for _, m := range moments {
			for _, end := range []struct {
				name string
				of   func(s *Session, k *killing)
			}{
				{"init is killed", func(_ *Session, k *killing) { syscall.Kill(k.init, syscall.SIGKILL) }},
				{"the stage is killed", func(_ *Session, k *killing) { syscall.Kill(k.stage, syscall.SIGKILL) }},
				{"Close", func(s *Session, k *killing) {
					syscall.Kill(k.init, syscall.SIGCONT) // it answers Close
					s.Close()
				}},
			} {
				t.Run(m.name+"/"+end.name, func(t *testing.T) {
					s, err := of.Open(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					k := &killing{dir: dir}
					k.find(t, s)
					m.reach(t, s, k)
					end.of(s, k)
					within(t, "the command", func() error { return k.end(t, m.running) })
					within(t, "a later command", func() error { return typed(s.sh("true").Run()) })
					within(t, "Close", func() error { s.Close(); return nil })
					stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", k.init))
					if !isDead(k.init) && !strings.Contains(string(stat), ") Z ") { // dead, and its new parent has not asked yet
						t.Errorf("init, after Close: %s", stat)
					}
				})
			}
		}
	})
}

// find finds the session's init and stage by a tool, which it ends.
func (k *killing) find(t *testing.T, s *Session) {
	t.Helper()
	c := s.sh("exec sleep 1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	list := awaitProcesses(t, s, 1, "sleep")
	if len(list) != 1 {
		t.Fatal(list)
	}
	k.init = parentOf(t, parentOf(t, list[0].Outside))
	k.stage = parentOf(t, k.init)
	c.Process.Kill()
	c.Wait()
	awaitNone(t, s)
}

// end returns what is wrong with how the command has ended; nil: nothing.
func (k *killing) end(t *testing.T, running bool) error {
	if !running {
		var err error
		if k.started == nil {
			err = k.command.Start()
		} else {
			err = <-k.started
		}
		if err == nil { // it was executed on the way, by an init that went on until it was asked to end
			err = k.command.Wait()
		}
		return typed(err)
	}
	if k.out != nil {
		if rest, err := io.ReadAll(k.out); len(rest) != 0 || err != nil {
			return fmt.Errorf("output: %q, %w", rest, err)
		}
	}
	return typed(k.command.Wait())
}

// typed returns nil for the error of a session that is over.
func typed(err error) error {
	var over *policy.SessionError
	if !errors.As(err, &over) {
		return fmt.Errorf("no SessionError: %w", errors.Join(err, errors.New("it was expected")))
	}
	return nil
}

// within fails the test if f does not return, with the goroutines' stacks: the binary's timeout prints them.
func within(t *testing.T, what string, f func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(time.Minute):
		t.Fatalf("%s hangs", what)
	}
}

// await waits for a fact.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("there is not %s", what)
		}
	}
}

// waitsInPoll reports whether another child of this process than the session's stage is a stage that sleeps: it does in poll(2), after it has
// handed its command over.
func waitsInPoll(session int) bool {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, children := range tasks {
		list, _ := os.ReadFile(children)
		for _, pid := range strings.Fields(string(list)) {
			stat, _ := os.ReadFile("/proc/" + pid + "/stat")
			if strings.Contains(string(stat), "(holdfast/init) S ") && pid != fmt.Sprint(session) {
				return true
			}
		}
	}
	return false
}
