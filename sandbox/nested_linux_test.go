package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// The tool that is a harness itself: it runs a command in a workspace, and prints the report.
var _ = offer(programs, "inner harness", func([]string) {
	p := Policy{Files: Files{Read: shownOf("/usr", "/bin", "/lib", "/lib64"), Write: []string{"/tmp/workspace"}}, Dir: "/tmp/workspace"}
	err := os.Mkdir("/tmp/workspace", 0o755)
	s, newErr := New(p)
	if err := errors.Join(err, newErr); err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	c := s.Command("/bin/sh", "-c", "echo written >file; echo planted >.bashrc; mv file other; cat other")
	c.Dir = p.Dir
	out, err := c.CombinedOutput()
	fmt.Printf("%s%v\n%v", out, err, c.Report())
	if _, err := os.Stat("/tmp/workspace/.bashrc"); err == nil {
		fmt.Println("ESCAPE: planted")
	}
})

func shownOf(dirs ...string) (list []string) {
	for _, d := range dirs {
		if _, err := os.Stat(d); err == nil {
			list = append(list, d)
		}
	}
	return list
}

func nestedPolicy(t *testing.T) Policy {
	p := attackPolicy(t, "", walls{})
	p.Nested, p.Files.Protect.Off = true, false
	return p
}

// TestKernelNestedRunsSandboxes: what ordinary programs build by user namespaces works under Policy.Nested.
func TestKernelNestedRunsSandboxes(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces)
		s, err := New(nestedPolicy(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("Holdfast", func(t *testing.T) {
			c := hostile(t, s, "inner harness")
			out, err := c.CombinedOutput()
			said := string(out)
			if err != nil || strings.Contains(said, "ESCAPE") || !strings.Contains(said, "written\n") || !strings.Contains(said, "supervisor (") || !strings.Contains(said, "no cgroup namespace") {
				t.Errorf("%v\n%s", err, said)
			}
			if Probe().Landlock.Yes() && !strings.Contains(said, "landlock (") {
				t.Error("the inner one has no Landlock")
			}
			if s.ready.Plan.Uses(plan.Supervisor) || s.ready.Plan.Uses(plan.Landlock) {
				t.Error("the outer one has a supervisor or a ruleset on files")
			}
			if report := c.Report().String(); strings.Count(report, "Nested: ") != 6 || !strings.Contains(report, "MNT_LOCKED") {
				t.Errorf("the report does not say what is weaker:\n%s", report)
			}
		})
		var e *policy.SessionError
		if _, err := s.Open(t.Context()); !errors.As(err, &e) || !strings.Contains(e.Remedy, "Nested") {
			t.Errorf("a session: %v", err)
		}
		for _, command := range [][]string{
			{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs x /tmp && echo inside"},
			{"bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "echo", "inside"},
		} {
			t.Run(command[0], func(t *testing.T) {
				kerneltest.Need(t, kerneltest.Command(command[0]))
				c := s.Command(command[0], command[1:]...)
				c.Dir = "/"
				if out, err := c.CombinedOutput(); err != nil || string(out) != "inside\n" {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	})
}

// TestKernelNestedRunsChromium: with its own sandbox, which it builds of user namespaces.
func TestKernelNestedRunsChromium(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.Command("chromium"))
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces)
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/page.html", []byte(`<p id="x"></p><script>document.getElementById("x").textContent = "made " + 6*7</script>`), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, nested := range []bool{true, false} {
			p := Workspace(dir)
			p.Nested = nested
			if nested {
				p.Files.CopyOnWrite, p.Files.Write = append(p.Files.CopyOnWrite, p.Files.Write...), nil
			}
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			c := s.Command("chromium", "--headless", "--disable-gpu", "--user-data-dir=/tmp/profile", "--dump-dom", "file://"+dir+"/page.html")
			var errs strings.Builder
			c.Stderr = &errs
			out, err := c.Output()
			if works := err == nil && strings.Contains(string(out), "made 42"); works != nested {
				t.Errorf("Nested %v: %v %s\n%s", nested, err, out, errs.String())
			}
			// The other words are those of a Chromium that finds its helper for hosts without user namespaces (Debian's chromium-sandbox).
			if !nested && !strings.Contains(errs.String(), "No usable sandbox") && !strings.Contains(errs.String(), "SUID sandbox helper") {
				t.Errorf("the reason without Nested: %v %s", err, errs.String())
			}
		}
	})
}

// TestKernelNestedIsForAnOrdinaryUser: a command of uid 0 does not start; one that another user runs for a root harness does.
func TestKernelNestedIsForAnOrdinaryUser(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		s, err := New(Policy{Nested: true, Files: Files{Read: shownOf("/usr", "/bin", "/lib", "/lib64"), Private: []string{"/tmp"}}})
		if err != nil {
			t.Fatal(err)
		}
		command := func() *Cmd {
			c := s.Command("/bin/sh", "-c", `command -v unshare >/dev/null || exit 0; exec unshare --user --map-root-user --mount true`)
			c.Dir = "/"
			return c
		}
		c := command()
		var e *PolicyError
		if err := c.Run(); !errors.As(err, &e) || e.Field != "Nested" || !strings.Contains(e.Remedy, "SysProcAttr.Credential") {
			t.Errorf("as root: %v", err)
		}
		c = command()
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("as another user: %v %s", err, out)
		}
	})
}

// TestKernelNestedTakesNamespaces: without them New says so.
func TestKernelNestedTakesNamespaces(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
		p := nestedPolicy(t)
		p.May = []Bound{policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses}
		_, err := New(p)
		var e *UnsupportedError
		if !errors.As(err, &e) || !strings.Contains(e.What, "no sandbox can be built inside") || e.Remedy == "" {
			t.Errorf("%v", err)
		}
	})
}
