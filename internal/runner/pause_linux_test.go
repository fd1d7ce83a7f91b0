package runner

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// pausable opens a session in which /bin/sh can run.
func pausable(t *testing.T) *Session {
	t.Helper()
	p := policy.Policy{Files: policy.Files{Private: []string{"/tmp"}}, Dir: "/tmp"}
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil {
			p.Files.Read = append(p.Files.Read, dir)
		}
	}
	s := &Sandbox{Policy: p, Env: new(FilteredEnv)}
	in := compile.Input{Policy: p, Facts: stage.Try(host.Read()), Devices: resolve.PresentDevices(), Running: rlimit.Unlimited, Threads: true, NetConfig: compile.NewNetConfig(p.Network)}
	var err error
	s.NetConfig = in.NetConfig
	if s.Networks, err = NewNetworks(&s.Policy.Network); err != nil {
		t.Fatal(err)
	}
	if s.Tree, err = resolve.Files(p.Files, func(string, bool) (string, string) { return "", "" }); err != nil {
		t.Fatal(err)
	}
	in.Tree = s.Tree
	if in.Arch, err = seccomp.Native(); err != nil {
		t.Fatal(err)
	}
	if in.Rlimits, err = rlimit.Current(); err != nil {
		t.Fatal(err)
	}
	if s.Plan, err = compile.Plan(in); err != nil {
		t.Fatal(err)
	}
	s.Plan.Ready, s.Templates = false, new(Templates) // what stood ready would be asked in init's place
	n, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// asEach runs a test as root and as an ordinary user.
func asEach(t *testing.T, body func(t *testing.T)) {
	t.Helper()
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) { kerneltest.InChild(t, kerneltest.Child{As: as}, body) })
}

// TestKernelInitInAPause takes no command, stops all at once, and kills no stopped warden before the pause is over: what the harness does not do.
func TestKernelInitInAPause(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	asEach(t, func(t *testing.T) {
		n := pausable(t)
		run := func(script string) *Run {
			r := n.New(context.Background(), func() Tool { return Tool{Path: "/bin/sh"} })
			r.Command().Args = []string{"sh", "-c", script}
			return r
		}
		long := run("setsid sleep 1000 & exec sleep 2000")
		if err := long.Start(); err != nil {
			t.Fatal(err)
		}
		await := func(what string, is func(list []occupant) bool) {
			t.Helper()
			for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
				list, whole := n.inner()
				if whole && is(list) {
					return
				}
				if time.Now().After(end) {
					t.Fatalf("%s: %+v", what, list)
				}
			}
		}
		await("the warden and its two processes", func(list []occupant) bool {
			return len(list) == 3 && slices.IndexFunc(list, func(q occupant) bool { return !q.runs }) < 0
		})
		if err := n.ask(wire.RequestPause); err != nil {
			t.Fatal(err)
		}
		err, paused := run("true").Start(), (*policy.SessionError)(nil)
		if !errors.As(err, &paused) || !errors.Is(err, policy.ErrPaused) {
			t.Errorf("a command that init is asked for in a pause: %v", err)
		}
		if err := n.ask(wire.RequestStop); err != nil {
			t.Fatal(err)
		}
		await("after init has stopped all", func(list []occupant) bool {
			return len(list) == 3 && slices.IndexFunc(list, func(q occupant) bool { return !q.stopped }) < 0
		})
		if err := n.ask(wire.RequestResume); err != nil {
			t.Fatal(err)
		}
		await("a warden that is stopped yet, by a tool, ends with its command", func(list []occupant) bool { return len(list) == 0 })
		if err := run("true").Start(); err != nil {
			t.Errorf("a command after the pause: %v", err)
		}
	})
}

// TestKernelAHarnessWithoutDescriptors finds no processes: neither Pause nor Resume says that it has found all, and a session whose Resume failed is paused.
func TestKernelAHarnessWithoutDescriptors(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	asEach(t, func(t *testing.T) {
		n := pausable(t)
		start := func() error {
			r := n.New(context.Background(), func() Tool { return Tool{Path: "/bin/sh"} })
			r.Command().Args = []string{"sh", "-c", "exec sleep 1000"}
			return r.Start()
		}
		without := func(what string, body func() error) {
			t.Helper()
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
			patience := pausePatience
			pausePatience = time.Millisecond
			none := limit
			none.Cur = 3
			err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none)
			if err == nil {
				err = body()
			}
			pausePatience = patience
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		without("Pause", n.Pause)
		if err := errors.Join(start(), n.Pause()); err != nil {
			t.Fatal(err)
		}
		without("Resume", n.Resume)
		if err := start(); !errors.Is(err, policy.ErrPaused) {
			t.Errorf("a command after Resume has failed: %v", err)
		}
		list, _ := n.inner()
		if len(list) != 4 || slices.ContainsFunc(list, func(q occupant) bool { return !q.stopped }) {
			t.Errorf("two wardens and their tools: %+v", list)
		}
		if err := errors.Join(n.Resume(), start()); err != nil {
			t.Error(err)
		}
	})
}

// TestKernelAPauseThatFails leaves nothing stopped.
func TestKernelAPauseThatFails(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	asEach(t, func(t *testing.T) {
		n := pausable(t)
		start := func() error {
			r := n.New(context.Background(), func() Tool { return Tool{Path: "/bin/sh"} })
			r.Command().Args = []string{"sh", "-c", "exec sleep 1000"}
			return r.Start()
		}
		if err := start(); err != nil {
			t.Fatal(err)
		}
		patience := pausePatience
		pausePatience = -1
		if err := n.Pause(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Pause: %v", err)
		}
		pausePatience = patience
		if err := errors.Join(start(), n.Pause(), n.Resume()); err != nil {
			t.Error(err)
		}
		list, whole := n.inner()
		for end := time.Now().Add(time.Minute); !whole || len(list) != 4 || slices.ContainsFunc(list, func(q occupant) bool { return q.stopped }); list, whole = n.inner() {
			if time.Now().After(end) {
				t.Fatalf("two wardens and their tools: %+v", list)
			}
		}
	})
}

// TestKernelAToolStopsAnotherAsAPauseBegins after Pause has listed what is stopped, and before it stops that one itself: it stays stopped.
func TestKernelAToolStopsAnotherAsAPauseBegins(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	asEach(t, func(t *testing.T) {
		n := pausable(t)
		r := n.New(context.Background(), func() Tool { return Tool{Path: "/bin/sh"} })
		r.Command().Args = []string{"sh", "-c", "exec sleep 1000"}
		if err := r.Start(); err != nil {
			t.Fatal(err)
		}
		await := func(what string, is func() bool) {
			t.Helper()
			for end := time.Now().Add(2 * time.Minute); !is() && !t.Failed(); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Error(what)
				}
			}
		}
		var list []occupant
		await("there are not a warden and its tool alone", func() bool {
			var whole bool
			list, whole = n.inner()
			return whole && len(list) == 2 && list[1].parent == list[0].pid
		})
		if t.Failed() {
			return
		}
		tool := list[1]
		n.mu.Lock() // Pause waits for it, after its list and before its first look
		paused := make(chan error, 1)
		go func() { paused <- n.Pause() }()
		stacks := make([]byte, 1<<20)
		await("Pause does not wait", func() bool {
			return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("(*Session).endServer("))
		})
		if !tool.signal(unix.SIGSTOP) {
			t.Error("the tool was not signalled")
		}
		await("the tool does not stop", func() bool { tool, _ = occupantOf(tool.pid); return tool.stopped })
		n.mu.Unlock()
		if err := errors.Join(<-paused, n.Resume()); err != nil {
			t.Fatal(err)
		}
		if tool, _ = occupantOf(tool.pid); !tool.stopped {
			t.Error("Resume has continued what a tool had stopped")
		}
	})
}

// TestKernelAPauseWaitsForWhatSignalSends: a SIGCONT that came after the last look would have its process run in the pause.
func TestKernelAPauseWaitsForWhatSignalSends(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	n := pausable(t)
	standsIn := func(frames ...string) {
		t.Helper()
		stacks := make([]byte, 1<<20)
		for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
			for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
				if !slices.ContainsFunc(frames, func(f string) bool { return !bytes.Contains(stack, []byte(f)) }) {
					return
				}
			}
			if time.Now().After(end) {
				t.Fatal("nothing waits in", frames)
			}
		}
	}
	paused := make(chan error, 1)
	n.pause.signals.Lock()
	go n.Signal(1, unix.SIGCONT)
	standsIn("(*Session).Signal(", "RWMutex).RLock")
	n.pause.signals.Unlock()
	n.pause.signals.RLock()
	go func() { paused <- n.Pause() }()
	standsIn("(*Session).Pause(", "RWMutex).Lock")
	if n.pause.on.Load() {
		t.Error("the pause has begun")
	}
	n.pause.signals.RUnlock()
	if err := errors.Join(<-paused, n.Resume()); err != nil {
		t.Error(err)
	}
}

// TestKernelTheNumbersOfAnotherNamespace: a harness in a pid namespace that has no /proc of that finds numbers there which mean other processes to it.
func TestKernelTheNumbersOfAnotherNamespace(t *testing.T) {
	const inside = "HOLDFAST_TEST_NUMBERS"
	if os.Getenv(inside) != "" { // number 1 is this process, and in /proc the machine's
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
		if o, ok := occupantOf(1); !ok || o.signal(0) {
			t.Errorf("%+v, %v: another process was signalled", o, ok)
		}
		return
	}
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestKernelTheNumbersOfAnotherNamespace$")
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestKernelTheNumberOfAnotherProcess is sent no signal: one that began at another time, or that has another parent.
func TestKernelTheNumberOfAnotherProcess(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	o, ok := occupantOf(other.Process.Pid)
	if !ok || o.parent != os.Getpid() {
		t.Fatalf("%+v", o)
	}
	elder, stranger := o, o
	elder.began += "0"
	stranger.parent = 1 << 30
	if !elder.signal(unix.SIGKILL) || stranger.signal(unix.SIGKILL) {
		t.Error("the first has ended, and of the second it is not known")
	}
	if !o.signal(unix.SIGTERM) {
		t.Error("the process itself was not signalled")
	}
	if err := <-ended; err == nil || err.Error() != "signal: terminated" {
		t.Errorf("the other process's end: %v", err)
	}
}
