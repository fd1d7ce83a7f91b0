package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }

// played does it all, with the programs named and those that each system has on PATH, and returns the lines of its table by verdict.
// Compiling with go takes long where a home is new: TestTheFirstCommandWorksOnAFreshMachine and .ci/run do that.
func played(t *testing.T, programs ...string) map[string][]string {
	bin := t.TempDir()
	for _, name := range append(programs, "bash", "sh", "cat", "ln", "env", "grep", "mkdir", "chmod", "mv", "tail", "tr", "ls", "sleep") {
		program, err := exec.LookPath("/usr/bin/" + name)
		if err != nil {
			program, err = exec.LookPath(name)
		}
		if err != nil {
			t.Skipf("needs %s: %v", name, err)
		}
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	var out bytes.Buffer
	failed, err := w.run(&out)
	if err != nil || failed > 0 {
		t.Errorf("%d failed: %v\n%s", failed, err, &out)
	}
	lines := map[string][]string{}
	for line := range strings.Lines(out.String()) {
		if len(line) > 44 && strings.HasPrefix(line, "  ") {
			verdict, what, _ := strings.Cut(line[37:], " ")
			lines[verdict] = append(lines[verdict], strings.TrimSpace(line[:37])+": "+strings.TrimSpace(what))
		}
	}
	return lines
}

// others are the programs that are skipped by name where they are missing, but go.
var others = []string{"git", "python3", "setsid", "unshare", "setpriv"}

func TestKernelEverythingIsAsItMustBe(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
			lines := played(t, others...)
			if len(lines["ok"]) < 25 || len(lines["lost"]) > 0 {
				t.Errorf("%q", lines)
			}
		})
	})
}

// TestKernelWhatAHostLacksIsMarkedAsLost in the report's words: in a plain container, and where there are neither Landlock nor listeners, as in gVisor.
func TestKernelWhatAHostLacksIsMarkedAsLost(t *testing.T) {
	plain := []kerneltest.Feature{kerneltest.Namespaces, kerneltest.Mounts}
	seen := "see a process of the host: the tool has seen the process: "
	for _, host := range []struct {
		name    string
		without []kerneltest.Feature
		lost    []string // among others
	}{
		{"a plain container", plain, []string{seen + "other processes' names and command lines can be seen"}},
		{"gVisor", append(plain, kerneltest.Landlock, kerneltest.SeccompListener), []string{
			seen + "the user's other processes can be seen and signalled, those too that end the run: the tool can outlive it",
			"read a private key: the tool has seen the key: files are not bounded at all",
			"make git run a program: the repository's configuration runs a program: protected names can be created",
			"a server and a client on loopback: sockets cannot be made, not even on loopback: neither a network namespace nor the supervisor keeps them from the host's network",
		}},
	} {
		t.Run(host.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: host.without}, func(t *testing.T) {
					lines := played(t, others...)
					for _, want := range host.lost {
						if !slices.Contains(lines["lost"], want) {
							t.Errorf("%q is not among %q", want, lines["lost"])
						}
					}
				})
			})
		})
	}
}

// TestKernelWhatIsNotInstalledIsSkippedByName, and an attempt that needs it does not count as refused.
func TestKernelWhatIsNotInstalledIsSkippedByName(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		lines := played(t)
		for _, want := range []string{"git status: git is not installed", "go test: go is not installed", "a server and a client on loopback: python3 is not installed",
			"make git run a program: git is not installed", "become another user: setpriv is not installed"} {
			if !slices.Contains(lines["--"], want) {
				t.Errorf("%q is not among %q", want, lines["--"])
			}
		}
	})
}

// TestAttacksComeOffWithoutASandbox shows that the checks can fail: the same
// scripts do their damage where nothing is bounded.
func TestAttacksComeOffWithoutASandbox(t *testing.T) {
	// What another user's rights or other programs decide.
	unsure := []string{"become root in a user namespace", "become root by a setuid program", "become another user", "change a setting of the kernel",
		"read the password file", "find a network interface", "move a git hook into place", "make git run a program",
		// What does not happen even where nothing is bounded.
		"leave a process behind", "read a key from the environment"}
	w, err := newWorld()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	s, err := sandbox.New(sandbox.Unconfined())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := desk{sandbox: s, world: w, out: io.Discard}
	for _, a := range attacks(w) {
		if slices.Contains(unsure, a.name) {
			continue
		}
		out, _ := d.bash(a.script)
		if a.damage(out) == "" {
			t.Errorf("%q was not noticed; the script printed %q", a.name, out)
		}
	}
}

// TestTheFirstCommandWorksOnAFreshMachine runs it as a newcomer does, whose home lies in a temporary directory, as in many
// containers, and whose module cache is empty. Modules come from this machine's cache in the place of a server.
func TestTheFirstCommandWorksOnAFreshMachine(t *testing.T) {
	kerneltest.Heavy(t)                                // it builds the program and its modules anew
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		t.Skipf("needs the go command: %v", err)
	}
	downloads := filepath.Join(dirs[0], "cache", "download")
	if _, err := os.Stat(downloads); err != nil {
		t.Skipf("needs downloaded modules: %v", err)
	}
	home, err := os.MkdirTemp("/tmp", "home-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	cmd := exec.Command("go", "run", "-modcacherw", "./examples/quickstart")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "HOME="+home, "GOPATH=", "GOMODCACHE="+filepath.Join(home, "go", "pkg", "mod"), "GOCACHE="+dirs[1],
		"GOPROXY=file://"+filepath.ToSlash(downloads), "GOSUMDB=off")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "go build this program itself") || !strings.Contains(string(out), "\n0 failed") {
		t.Errorf("%v\n%s", err, out)
	}
}
