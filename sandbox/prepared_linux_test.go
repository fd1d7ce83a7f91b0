package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// preparedSandbox prepares one session of a sandbox that shows a directory to write.
func preparedSandbox(t *testing.T, grounds string, w walls) (s *Sandbox, dir string) {
	t.Helper()
	p := attackPolicy(t, grounds, w)
	s = attackSandbox(t, p, w)
	if err := s.Prepare(1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if grounds != "" {
		dir = p.Files.Write[0]
	}
	return s, dir
}

// cold is the note of a report that says why a command found nothing prepared.
func cold(r *Report) string {
	for _, n := range r.Notes {
		if n.At == "Prepare" {
			return n.Why
		}
	}
	return ""
}

// used reports whether a command ran in what was prepared, be it before a process stood ready there.
func used(why string) bool { return why == "" || strings.Contains(why, "stood ready") }

func inPrepared(t *testing.T, grounds bool, body func(t *testing.T, s *Sandbox, dir string)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		at := ""
		if grounds {
			at = makeGrounds(t, 1)
		}
		s, dir := preparedSandbox(t, at, w)
		body(t, s, dir)
	})
}

func sh(s *Sandbox, script string) *Cmd {
	c := s.Command("/bin/sh", "-c", script)
	c.Dir = "/"
	return c
}

// TestKernelAPreparedCommand is as any other: what it leaves ends with it, and the next one has a sandbox of its own.
func TestKernelAPreparedCommand(t *testing.T) {
	inPrepared(t, false, func(t *testing.T, s *Sandbox, _ string) {
		for range 3 {
			if err := s.Prepare(1); err != nil { // until one waits again
				t.Fatal(err)
			}
			c := sh(s, "test ! -e ${TMPDIR:-/tmp}/left && echo > ${TMPDIR:-/tmp}/left && (setsid sleep 1000 &) && cat && exit 3")
			c.Stdin = strings.NewReader("in")
			out, err := c.Output()
			if string(out) != "in" || c.ProcessState.ExitCode() != 3 {
				t.Errorf("%q, %v", out, err)
			}
			if why := cold(c.Report()); !used(why) {
				t.Errorf("it took none: %s", why)
			}
			if r := c.Report(); !held(r, "syscalls", "privileges", "resources") {
				t.Error(r)
			}
		}
	})
}

// TestKernelNothingStandsReadyBesideAPreparedCommand, though it lasts longer than a session's init waits: no other will come.
func TestKernelNothingStandsReadyBesideAPreparedCommand(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	s, _ := preparedSandbox(t, "", sessionWalls[0])
	c := sh(s, "sleep 0.3; cat /proc/[0-9]*/comm")
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	if why := cold(c.Report()); !used(why) {
		t.Fatalf("it took none: %s", why)
	}
	if n := strings.Count(string(out), "holdfast/init\n"); n != 2 {
		t.Errorf("%d processes of the sandbox's own, want init and the warden:\n%s", n, out)
	}
}

// TestKernelAPreparedSandboxIsNotUsedWhereAPathHasChanged: the command sees what lies there now.
func TestKernelAPreparedSandboxIsNotUsedWhereAPathHasChanged(t *testing.T) {
	inPrepared(t, true, func(t *testing.T, s *Sandbox, dir string) {
		if err := os.Rename(dir, dir+".before"); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "now"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		c := sh(s, "ls "+dir)
		out, err := c.Output()
		if strings.TrimSpace(string(out)) != "now" {
			t.Errorf("the command sees %q, %v", out, err)
		}
		if why := cold(c.Report()); !strings.Contains(why, "another file lies") {
			t.Errorf("its report says %q", why)
		}
		if err := s.Prepare(1); err != nil {
			t.Fatal(err)
		}
		next := sh(s, "ls "+dir)
		if out, err := next.Output(); strings.TrimSpace(string(out)) != "now" || !used(cold(next.Report())) {
			t.Errorf("the command after it sees %q, %v; %s", out, err, cold(next.Report()))
		}
	})
}

// TestKernelAPreparedSandboxThatHasEnded is not used, and its command starts all the same; what waits ends with Prepare(0) and with Close.
func TestKernelAPreparedSandboxThatHasEnded(t *testing.T) {
	inPrepared(t, false, func(t *testing.T, s *Sandbox, _ string) {
		stage := func() (list []int) {
			for pid, p := range stagesIn() {
				if p.parent == os.Getpid() {
					list = append(list, pid)
				}
			}
			return list
		}
		waits := stage()
		if len(waits) != 1 {
			t.Fatalf("%d sandboxes wait", len(waits))
		}
		family := map[int]bool{waits[0]: true}
		all := stagesIn()
		for range all { // each round finds the children of those known
			for pid, p := range all {
				family[pid] = family[pid] || family[p.parent]
			}
		}
		syscall.Kill(waits[0], syscall.SIGKILL)
		await(t, "the end of what waited", func() bool {
			for pid, p := range stagesIn() {
				if family[pid] && p.state != "Z" {
					return false
				}
			}
			return true
		})
		c := sh(s, "echo $((6*7))")
		if out, err := c.Output(); strings.TrimSpace(string(out)) != "42" {
			t.Errorf("%q, %v", out, err)
		}
		if why := cold(c.Report()); why != "it had ended" && why != "none waited at that moment" {
			t.Errorf("the report says %q", why)
		}
		for _, end := range []func() error{func() error { return s.Prepare(0) }, s.Close} {
			if err := s.Prepare(3); err != nil {
				t.Fatal(err)
			}
			if n := len(stage()); n < 3 {
				t.Errorf("%d sandboxes wait", n)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
			await(t, "the end of all that waited", func() bool { return len(stage()) == 0 })
		}
	})
}

// TestKernelWhatIsPreparedIsReplaced after a command has taken it that did not start: in the fork, or for what it was asked to do.
func TestKernelWhatIsPreparedIsReplaced(t *testing.T) {
	inPrepared(t, false, func(t *testing.T, s *Sandbox, _ string) {
		long := strings.Repeat("x", 1<<20)
		for name, start := range map[string]func() error{
			"the embedded Cmd's fork": func() error {
				c := sh(s, "true")
				c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: 100}
				return c.Cmd.Start()
			},
			"an argument that is too long": func() error { return sh(s, long).Start() },
		} {
			if err := s.Prepare(1); err != nil {
				t.Fatal(err)
			}
			if start() == nil {
				t.Errorf("%s: it starts", name)
			}
			await(t, "one that waits, after "+name, func() bool {
				c := sh(s, "true")
				if err := c.Run(); err != nil {
					t.Fatal(err)
				}
				return used(cold(c.Report()))
			})
		}
	})
}

// TestKernelAPreparedCommandThatIsCancelled ends with all that it has started.
func TestKernelAPreparedCommandThatIsCancelled(t *testing.T) {
	inPrepared(t, false, func(t *testing.T, s *Sandbox, _ string) {
		ctx, cancel := context.WithCancel(t.Context())
		c := s.CommandContext(ctx, "/bin/sh", "-c", "setsid sleep 1000 & echo ready; exec sleep 1000")
		c.Dir = "/"
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		cancel()
		if err := c.Wait(); endedBy(err) != syscall.SIGKILL {
			t.Errorf("%v", err)
		}
		if why := cold(c.Report()); !used(why) {
			t.Error(why)
		}
	})
}

// TestKernelACommandWithACgroupTakesNothingPrepared: what waits is in the harness's cgroup, whatever the command's SysProcAttr says. The cgroup here is the harness's own.
func TestKernelACommandWithACgroupTakesNothingPrepared(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	own := ownCgroup(t)
	s, _ := preparedSandbox(t, "", sessionWalls[0])
	c := sh(s, "true")
	c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(own.Fd())}
	if err := c.Run(); errors.Is(err, syscall.EACCES) {
		t.Skip("needs a cgroup that this user may move processes to")
	} else if err != nil {
		t.Fatal(err)
	}
	if why := cold(c.Report()); !strings.Contains(why, "cgroup") {
		t.Errorf("it took what waited: %q", why)
	}
}

// ownCgroup opens the directory of this process's cgroup (cgroups(7), version 2).
func ownCgroup(t *testing.T) *os.File {
	t.Helper()
	mounts, _ := os.ReadFile("/proc/self/mounts")
	cgroups, _ := os.ReadFile("/proc/self/cgroup")
	_, of, _ := strings.Cut("\n"+string(cgroups), "\n0::")
	of, _, _ = strings.Cut(of, "\n")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "cgroup2" {
			if dir, err := os.Open(filepath.Join(f[1], of)); err == nil {
				t.Cleanup(func() { dir.Close() })
				return dir
			}
		}
	}
	t.Skip("needs a cgroup of version 2")
	return nil
}
