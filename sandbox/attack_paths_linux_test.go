package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// TestKernelAttackADirectoryOfTwoPaths: another sandbox has the workspace at another path, and sends the tool a descriptor of it. No rule
// speaks of that path, but Landlock's grant holds for the directory, and so must the protection of its names.
func TestKernelAttackADirectoryOfTwoPaths(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			kerneltest.Need(t, kerneltest.LandlockABI(1))
			p := workspaceHere(t)
			ws := p.Files.Write[0]
			for _, dir := range []string{".git/hooks", ".git/objects", ".git/refs"} {
				if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range []string{".git/HEAD", ".git/config"} {
				if err := os.WriteFile(filepath.Join(ws, file), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			other, err := New(Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{
				rootfs.Bind{Source: "/usr", At: "/usr"}, rootfs.Symlink{Target: "usr/bin", At: "/bin"}, rootfs.Symlink{Target: "usr/lib", At: "/lib"},
				rootfs.Symlink{Target: "usr/lib64", At: "/lib64"}, rootfs.Proc{At: "/proc"}, rootfs.Dev{At: "/dev"}, rootfs.Bind{Source: ws, At: "/project", Write: true},
			}}})
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close()
			sends := other.Command("/usr/bin/python3", "-c", `import os, socket
l = socket.socket(socket.AF_UNIX); l.bind("/project/new"); l.listen(); os.rename("/project/new", "/project/sock")
socket.send_fds(l.accept()[0], [b"x"], [os.open("/project", os.O_RDONLY)])`)
			sends.Dir = "/project"
			if err := sends.Start(); err != nil {
				t.Fatal(err)
			}
			defer sends.Process.Kill()
			out, err := commandIn(t, p, `until [ -S sock ]; do sleep 0.01; done
exec python3 -c '
import os, socket, stat
s = socket.socket(socket.AF_UNIX); s.connect("sock")
dir = socket.recv_fds(s, 1, 1)[1][0]
print("sent", stat.S_ISDIR(os.fstat(dir).st_mode), os.listdir(dir) == os.listdir("."))
new = os.O_WRONLY | os.O_CREAT
def attempt(what, act):
    try: act(); print("ESCAPE:", what)
    except PermissionError: print("refused:", what)
def inside():
    os.fchdir(dir); open(".git/hooks/post-commit", "w")
attempt("make a hook", lambda: os.open(".git/hooks/pre-commit", new, dir_fd=dir))
attempt("write the configuration", lambda: os.open(".git/config", os.O_WRONLY, dir_fd=dir))
attempt("make a directory", lambda: os.mkdir(".vscode", dir_fd=dir))
attempt("make a link", lambda: os.symlink("x", ".envrc", dir_fd=dir))
attempt("rename", lambda: os.rename("sock", ".bashrc", src_dir_fd=dir, dst_dir_fd=dir))
attempt("rename from here", lambda: os.rename("sock", ".bashrc", dst_dir_fd=dir))
attempt("make a hook from within", inside)
attempt("by /proc", lambda: open("/proc/self/fd/%d/.git/hooks/pre-push" % dir, "w"))
attempt("change its mode", lambda: os.chmod(".git/config", 0o755, dir_fd=dir))'`).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if err := sends.Wait(); err != nil {
				t.Error(err)
			}
			if got := string(out); strings.Contains(got, "ESCAPE") || !strings.HasPrefix(got, "sent True True\n") || strings.Count(got, "refused:") != 9 {
				t.Errorf("the tool says\n%s", got)
			}
		})
	})
}

// TestKernelAttackADescriptorOfAnotherMount: another sandbox, which may write the workspace, sends a descriptor of it to a tool that may only read
// it. Without Landlock the other's mount would be all that counts, and its protected names would be none here.
func TestKernelAttackADescriptorOfAnotherMount(t *testing.T) {
	policies := map[string]func(ws string) Policy{
		"nothing can be written": func(ws string) Policy { return ReadOnly(ws) },
		"a directory beside it can be written": func(ws string) Policy {
			p := Workspace(filepath.Join(filepath.Dir(ws), "other"))
			p.Files.Read = append(p.Files.Read, ws)
			return p
		},
	}
	for name, policyFor := range policies {
		t.Run(name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Landlock}}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasUserNamespaces)
					testDescriptorOfAnotherMount(t, policyFor)
				})
			})
		})
	}
}

func testDescriptorOfAnotherMount(t *testing.T, policyFor func(ws string) Policy) {
	p := workspaceHere(t)
	ws := p.Files.Write[0]
	for _, dir := range []string{"ws/.git/hooks", "ws/.git/objects", "ws/.git/refs", "other"} {
		if err := os.MkdirAll(filepath.Join(filepath.Dir(ws), dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{".git/HEAD", ".git/config"} {
		if err := os.WriteFile(filepath.Join(ws, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	sends := commandIn(t, p, `exec python3 -c '
import os, socket
l = socket.socket(socket.AF_UNIX); l.bind("new"); l.listen(); os.rename("new", "sock")
socket.send_fds(l.accept()[0], [b"x"], [os.open(".", os.O_RDONLY), os.open(".git/config", os.O_RDONLY)])'`)
	if err := sends.Start(); err != nil {
		t.Fatal(err)
	}
	defer sends.Process.Kill()
	c := commandIn(t, policyFor(ws), `until [ -S sock ]; do sleep 0.01; done
exec python3 -c '
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect("sock")
dir, file = socket.recv_fds(s, 1, 2)[1]
print(os.listdir(dir) == os.listdir("."), os.fstat(file).st_size)
def attempt(what, act):
    try: act(); print("ESCAPE:", what)
    except OSError as e: print("refused:", what)
attempt("make a hook", lambda: os.open(".git/hooks/pre-commit", os.O_WRONLY | os.O_CREAT, dir_fd=dir))
attempt("write the configuration", lambda: open("/proc/self/fd/%d" % file, "w"))
attempt("make a directory", lambda: os.mkdir(".vscode", dir_fd=dir))
attempt("change a mode", lambda: os.chmod(".git/config", 0o666, dir_fd=dir))
attempt("change a mode by a descriptor", lambda: os.fchmod(file, 0o666))
attempt("rename", lambda: os.rename("sock", ".bashrc", src_dir_fd=dir, dst_dir_fd=dir))
attempt("make a socket", lambda: socket.socket(socket.AF_UNIX).bind("/proc/self/fd/%d/refs" % dir))
open("/tmp/x", "w").write("x"); os.rename("/tmp/x", "/tmp/y"); os.chmod("/tmp/y", 0o600); socket.socket(socket.AF_UNIX).bind("/tmp/s"); print("works")'`)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := sends.Wait(); err != nil {
		t.Error(err)
	}
	if got := string(out); !strings.HasPrefix(got, "True 0\n") || strings.Contains(got, "ESCAPE") || strings.Count(got, "refused:") != 7 || !strings.HasSuffix(got, "works\n") {
		t.Errorf("the tool says\n%s", got)
	}
}

// TestKernelAttackADirectoryThatIsRenamed, without namespaces: another sandbox renames the workspace, whose path is in no
// rule then. What the tool could do by it is refused, and what is hidden stays so.
func TestKernelAttackADirectoryThatIsRenamed(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.LandlockABI(1))
			for _, hides := range []bool{false, true} {
				testRenamed(t, hides)
			}
		})
	})
}

func testRenamed(t *testing.T, hides bool) {
	outer := workspaceHere(t).InContainer()
	around := outer.Files.Write[0]
	ws := filepath.Join(around, fmt.Sprint("ws", hides))
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	p := Workspace(ws).InContainer()
	for name, text := range map[string]string{".env": "SECRET", "secret": "SECRET", "plain": "plain\n", ".profile": "theirs\n"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if hides {
		p.Files.HideNames, p.Files.Hide = []string{".env"}, append(p.Files.Hide, filepath.Join(ws, "secret"))
	}
	c := commandIn(t, p, `cat .env secret; echo x >ready; until [ -e go ]; do sleep 0.01; done
cat .env secret ../moved/.env; mkdir .vscode && echo ESCAPE: directory; echo x >.envrc && echo ESCAPE: file; ln -s x .bashrc && echo ESCAPE: link
mv plain .envrc && echo ESCAPE: rename; rm plain && echo ESCAPE: removed; echo x >>plain && echo ESCAPE: written; mkdir -p . && mkdir ../moved 2>&1 | grep -o 'File exists'
ln .profile $TMPDIR/link; echo x >>$TMPDIR/link; grep -q x .profile && echo ESCAPE: a link
echo x >/dev/null && echo x >$HOME/x && echo done`)
	var out strings.Builder
	c.Dir, c.Stdout, c.Stderr = ws, &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Process.Kill()
	for _, err := os.Stat(filepath.Join(ws, "ready")); err != nil; _, err = os.Stat(filepath.Join(ws, "ready")) {
		time.Sleep(time.Millisecond)
	}
	if err := os.RemoveAll(filepath.Join(around, "moved")); err != nil {
		t.Fatal(err)
	}
	if out, err := commandIn(t, outer, "mv ws* moved && touch moved/go").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	got := out.String()
	for _, want := range []string{"File exists\n", "done\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(got, "ESCAPE") || hides == strings.Contains(got, "SECRET") || t.Failed() {
		t.Errorf("the tool says\n%s", got)
	}
}

// TestKernelProcWithHiddenNames: a number that one of the sandbox's own processes has is a descriptor's, too; and ps(1), which reads of every
// process, is no violation.
func TestKernelProcWithHiddenNames(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			p := workspaceHere(t)
			p.Files.HideNames = []string{".env"}
			c := commandIn(t, p, `exec 2>/dev/null; cat /proc/self/fdinfo/1 /proc/$$/fdinfo/1 | grep -c flags; cat /proc/1/fdinfo/1; cat /proc/[0-9]*/stat >/dev/null; true`)
			out, err := c.Output()
			if err != nil || string(out) != "2\n" {
				t.Errorf("%q, %v", out, err)
			}
			if v := c.Report().Violations; len(v) > 0 {
				t.Error(v)
			}
			c = commandIn(t, p, `echo 1 >/proc/1/oom_score_adj`)
			if out, err := c.CombinedOutput(); err == nil {
				t.Errorf("%q", out)
			}
			if v := c.Report().Violations; len(v) != 1 {
				t.Error(v)
			}
		})
	})
}
