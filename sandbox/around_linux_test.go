package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestKernelASupervisorAroundTheHarness: the kernel has one seccomp listener for a process and its descendants, and where another has it,
// as under LXD's interception, protected names cannot be held. New says so; a policy that accepts it runs, and the report has it.
func TestKernelASupervisorAroundTheHarness(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr, kerneltest.LandlockABI(2)) // as old as WAIT_KILLABLE_RECV
			p := workspaceHere(t)
			if errno := listen(); errno != 0 {
				t.Skipf("no listener can be made here: %v", errno)
			}
			var no *UnsupportedError
			if _, err := New(p); !errors.As(err, &no) || no.Bound != policy.BoundFiles || !strings.Contains(no.Reason, "supervises") || no.Remedy == "" {
				t.Errorf("New: %v", err)
			}
			p.May = []Bound{policy.BoundFiles}
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			c := s.Command("/bin/sh", "-c", "echo made >file && cat file")
			c.Dir = filepath.Join(os.Getenv("HOME"), "ws")
			out, err := c.CombinedOutput()
			if r := c.Report(); err != nil || string(out) != "made\n" || r.Bound(policy.BoundFiles).State != Weaker {
				t.Errorf("%v, %q\n%s", err, out, r)
			}
		})
	})
}

// listen makes this process one that another could supervise: it never asks for anything.
func listen() unix.Errno {
	allow := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
	program := unix.SockFprog{Len: 1, Filter: &allow}
	const all = unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return unix.EPERM
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, all, uintptr(unsafe.Pointer(&program)))
	return errno
}

// inLayers is this test's binary as a harness in layers of Landlock: it prints what New says of a workspace.
const inLayers = "sandbox.inLayers"

func init() {
	kerneltest.Programs[inLayers] = func() {
		f := Probe()
		_, err := New(Workspace(os.Args[1]))
		var no *UnsupportedError
		fmt.Printf("%s|%s|%v\n", f.Landlock.Answer, f.Landlock.Reason, errors.As(err, &no))
	}
}

// TestKernelTooManyLayersOfLandlock: the kernel has 16, and what they are used up by is said before a command starts, not when it does.
func TestKernelTooManyLayersOfLandlock(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.LandlockABI(2)) // since Linux 5.19; before that a process could be in 64 layers
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for layers, want := range map[int]string{13: "yes|ABI ", 14: "no|landlock_restrict_self(2): argument list too long"} {
				if out := startedInLayers(t, layers, exe, dir); !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "|true\n") {
					t.Errorf("in %d layers: %q", layers, out)
				}
			}
		})
	})
}

// startedInLayers runs inLayers from a thread that is in so many layers, and ends.
func startedInLayers(t *testing.T, layers int, exe, dir string) string {
	t.Helper()
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked
		set, err := landlock.Build(landlock.Ruleset{UnhandledFS: landlock.FSAll &^ landlock.FSMakeFifo, UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll})
		for range layers {
			if err == nil {
				err = landlock.RestrictThread(int(set.Fd()), 0)
			}
		}
		if err != nil {
			done <- result{err: err}
			return
		}
		defer set.Close()
		c := exec.Command(exe)
		c.Args = []string{inLayers, dir}
		out, err := c.CombinedOutput()
		done <- result{out, err}
	}()
	r := <-done
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.out)
	}
	return string(r.out)
}

// hiddenHarness is this test's binary as a harness: it prints what New says of a workspace.
const hiddenHarness = "sandbox.hiddenHarness"

func init() {
	kerneltest.Programs[hiddenHarness] = func() {
		_, err := New(Workspace(os.Args[1]))
		fmt.Println(err)
	}
}

// TestKernelAHarnessThatMayNotBeRead: an ordinary user's process whose executable it may only execute can map no ids, and New says why.
func TestKernelAHarnessThatMayNotBeRead(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
		exe, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		for mode, want := range map[os.FileMode]bool{0o111: true, 0o555: false} {
			harness := filepath.Join(dir, fmt.Sprintf("harness%o", mode))
			if err := errors.Join(os.WriteFile(harness, exe, 0o700), os.Chmod(harness, mode)); err != nil {
				t.Fatal(err)
			}
			c := exec.Command(harness)
			c.Args = []string{hiddenHarness, t.TempDir()}
			out, err := c.CombinedOutput()
			if said := strings.Contains(string(out), "chmod +r"); err != nil || said != want {
				t.Errorf("mode %o: %v, %s", mode, err, out)
			}
		}
	})
}

var _ = offer(programs, "make a directory", func(args []string) { fmt.Println(os.Mkdir(args[0], 0o755)) })

// TestKernelAProgramThatMayNotBeRead: what the memory of its processes asks for is refused where it is hidden from the supervisor, too, and the report says why.
func TestKernelAProgramThatMayNotBeRead(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
		p := workspaceHere(t)
		p.May = w.may
		exe, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(os.Getenv("HOME"), "ws")
		for mode, readable := range map[os.FileMode]bool{0o111: false, 0o555: true} {
			program := filepath.Join(dir, fmt.Sprintf("program%o", mode))
			if err := errors.Join(os.WriteFile(program, exe, 0o700), os.Chmod(program, mode)); err != nil {
				t.Fatal(err)
			}
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			c := s.Command(program)
			c.Args, c.Dir = []string{attackTool, "make a directory", fmt.Sprintf("made%o", mode)}, dir
			out, err := c.CombinedOutput()
			made, said := string(out) == "<nil>\n", strings.Contains(c.Report().String(), "hides its memory, so that what it asks for cannot be read")
			if err != nil || made == said || readable && !made || !readable && made && w.bare() && os.Getuid() != 0 {
				t.Errorf("mode %o: made %v, the report says why not %v: %v\n%s\n%s", mode, made, said, err, out, c.Report())
			}
		}
	})
}

// TestKernelHostsThatNoProxyLeadsToAreSaid: without a network namespace the supervisor has to connect to the proxies. A host that has neither, as
// Linux 5.10 has, refuses hosts by name; where the policy accepts a weaker network the report says that none is reached, and none is.
func TestKernelHostsThatNoProxyLeadsToAreSaid(t *testing.T) {
	const said = "no proxy can be reached"
	for _, without := range [][]kerneltest.Feature{{kerneltest.Namespaces, kerneltest.SeccompListener}, {kerneltest.MountSetattr, kerneltest.SeccompListener}} {
		kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
			kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
				p := workspaceHere(t).InContainer()
				p.Network = Network{Hosts: []string{"host.example"}}
				if _, err := New(p); !strings.Contains(fixture.UnsupportedBounds(t, err), "network") || !strings.Contains(err.Error(), said) {
					t.Errorf("New: %v", err)
				}
				p.May = append(p.May, policy.BoundNetwork)
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				if text := s.Explain(); !strings.Contains(text, "\nnote: "+said) || !strings.Contains(text, "\nnot held: files: ") || !strings.Contains(text, "\nnot held: processes: ") {
					t.Errorf("Explain does not say it: %s", text)
				}
				c := s.Command("/bin/bash", "-c", `proxy=${https_proxy##*:}; (exec 3<>"/dev/tcp/127.0.0.1/${proxy%/}") 2>/dev/null && echo connected; true`)
				if out, err := c.CombinedOutput(); err != nil || strings.Contains(string(out), "connected") || !strings.Contains(fmt.Sprint(c.Report()), said) {
					t.Errorf("%v, %s\n%s", err, out, c.Report())
				}
			})
		})
	}
}
