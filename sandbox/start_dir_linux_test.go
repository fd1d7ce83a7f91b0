package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// TestKernelACommandStartsInTheWorkspace: where the policy does not show the harness's directory,
// and the command has none, it starts in the policy's, and PWD says so.
func TestKernelACommandStartsInTheWorkspace(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		base := t.TempDir()
		dir, beside, gone, private := filepath.Join(base, "workspace"), filepath.Join(base, "beside"), filepath.Join(base, "gone"), filepath.Join(base, "private")
		for _, d := range []string{dir, filepath.Join(dir, "sub"), beside, gone, private} {
			if err := os.Mkdir(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "here.sh"), []byte("#!/bin/sh\npwd -P; echo $PWD\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, base, w)
		p.Files.Read, p.Files.Write = p.Files.Read[:len(p.Files.Read)-1], []string{dir}
		p.Files.Private = append(p.Files.Private, private)
		p.Env.Pass, p.Dir = []string{"PATH", "PWD"}, dir
		s := attackSandbox(t, p, w)
		p.Dir = ""
		without := attackSandbox(t, p, w)
		for _, c := range []struct {
			name, wd, dir, want string
			env                 []string
		}{
			{"beside the workspace", beside, "", dir, nil},
			{"beside the workspace, with an Env of its own", beside, "", dir, append(os.Environ(), "PWD="+beside, "X=1")},
			{"in a directory that was removed", gone, "", dir, nil},
			{"in a directory of which the tool has an empty one", private, "", dir, nil},
			{"below the workspace", filepath.Join(dir, "sub"), "", filepath.Join(dir, "sub"), nil},
			{"beside the workspace, with a Dir", beside, filepath.Join(dir, "sub"), filepath.Join(dir, "sub"), nil},
		} {
			t.Chdir(c.wd) // which sets PWD
			if c.wd == gone {
				if err := os.Remove(gone); err != nil {
					t.Fatal(err)
				}
			}
			check := func(how string, cmd *exec.Cmd, run func() ([]byte, error)) {
				out, err := run()
				if want := c.want + "\n" + c.want + "\n"; err != nil || string(out) != want || cmd.Dir != c.dir {
					t.Errorf("%s, %s: %q, %v, Dir %q; want %q", c.name, how, out, err, cmd.Dir, want)
				}
			}
			const script = "pwd -P; echo $PWD"
			cmd := s.Command("/bin/sh", "-c", script)
			cmd.Dir, cmd.Env = c.dir, c.env
			check("Command", cmd.Cmd, cmd.CombinedOutput)
			cmd = s.Command("/bin/sh", "-c", script)
			cmd.Dir, cmd.Env = c.dir, c.env
			check("the embedded Cmd", cmd.Cmd, cmd.Cmd.CombinedOutput)
			wrapped := exec.Command("/bin/sh", "-c", script)
			wrapped.Dir, wrapped.Env = c.dir, c.env
			if err := s.Wrap(wrapped); err != nil {
				t.Fatal(err)
			}
			check("Wrap", wrapped, wrapped.CombinedOutput)
			if c.want == dir {
				cmd := s.Command("./here.sh")
				cmd.Env = c.env
				check("a path from there", cmd.Cmd, cmd.CombinedOutput)
				if out, err := without.Command("/bin/sh", "-c", script).CombinedOutput(); err == nil && c.wd != private {
					t.Errorf("%s: a policy without a directory starts it: %s", c.name, out)
				}
			}
		}
		t.Chdir(base)
		p.Dir = beside
		if out, err := attackSandbox(t, p, w).Command("/bin/true").CombinedOutput(); err == nil || !strings.Contains(err.Error(), "does not show the working directory") || !strings.Contains(err.Error(), beside) {
			t.Errorf("a directory that is not shown either: %s, %v", out, err)
		}
	})
}

// TestKernelALayoutsCommandStartsInThePolicysDirectory: after the harness's, before HOME.
func TestKernelALayoutsCommandStartsInThePolicysDirectory(t *testing.T) {
	eachWall(t, allSets[:1], func(t *testing.T, w walls) {
		t.Chdir("/srv")
		entries := []rootfs.Entry{rootfs.Bind{Source: "/usr", At: "/usr"}, rootfs.Dir{At: "/srv/project"}, rootfs.Dir{At: "/home/me"}, rootfs.Proc{At: "/proc"}, rootfs.Dev{At: "/dev"}}
		for _, link := range []string{"/bin", "/lib", "/lib64"} {
			if target, err := os.Readlink(link); err == nil {
				entries = append(entries, rootfs.Symlink{Target: target, At: link})
			} else if _, err := os.Stat(link); err == nil {
				entries = append(entries, rootfs.Bind{Source: link, At: link})
			}
		}
		for _, c := range []struct {
			name, policy, dir, want string
		}{
			{"the harness's directory is there", "/home/me", "", "/srv\n/srv\n"},
			{"a Dir wins", "/home/me", "/usr", "/usr\n/usr\n"},
		} {
			s := attackSandbox(t, Policy{Root: &rootfs.Layout{Entries: entries}, Dir: c.policy, May: w.may, Env: Env{Set: map[string]string{"HOME": "/home/me"}}}, w)
			cmd := s.Command("/bin/sh", "-c", "pwd -P; echo $PWD")
			cmd.Dir = c.dir
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != c.want {
				t.Errorf("%s: %q, %v", c.name, out, err)
			}
		}
		t.Chdir("/var")
		s := attackSandbox(t, Policy{Root: &rootfs.Layout{Entries: entries}, Dir: "/srv/project", May: w.may, Env: Env{Set: map[string]string{"HOME": "/home/me"}}}, w)
		if out, err := s.Command("/bin/sh", "-c", "pwd -P; echo $PWD").CombinedOutput(); err != nil || string(out) != "/srv/project\n/srv/project\n" {
			t.Errorf("the harness's directory is not there: %q, %v", out, err)
		}
	})
}
