package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// The shims of pyenv and its kin, in a tree that is shown to read: a tool that writes them anew gets its own copies, and where the
// host can make none they still start programs.
func TestKernelCopiesInAReadableTreeAreReadWhereThereAreNone(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		base := realTemp(t)
		shims := filepath.Join(base, "pyenv/shims")
		ws := filepath.Join(base, "ws")
		for _, dir := range []string{shims, ws} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(shims+"/pip", []byte("#!/bin/sh\necho shim\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, "", w)
		p.Files.Read, p.Files.CopyOnWrite, p.Files.Write = append(p.Files.Read, filepath.Dir(shims)), []string{shims}, []string{ws}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		cmd := s.Command("sh", "-c", shims+"/pip; (echo x > "+shims+"/new) 2>/dev/null && echo written; true")
		cmd.Dir = ws
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		copies := s.facts.Overlay.Yes() && s.facts.Namespaces.Yes()
		if want := map[bool]string{true: "shim\nwritten\n", false: "shim\n"}[copies]; string(out) != want {
			t.Errorf("it printed %q, want %q", out, want)
		}
		if _, err := os.Lstat(shims + "/new"); err == nil {
			t.Error("the host's directory was written")
		}
		report := cmd.Report().String()
		if told := strings.Contains(report, shims+" cannot be written") || strings.Contains(report, shims+" can be read alone"); told == copies {
			t.Errorf("the report:\n%v", cmd.Report())
		}
	})
}

// copiesOf makes a home with a cache of a program in two places, and what no rule shows beside and above them. It returns the
// home and a sandbox of the caches.
func copiesOf(t *testing.T) (string, *Sandbox) {
	home := filepath.Join(realTemp(t), "home")
	for name, text := range map[string]string{"a/cache/deep/file": "one", "b/cache/file": "two", "secret": "s", "a/secret": "s", "b/cache2/secret": "s"} {
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p := attackPolicy(t, "", walls{})
	p.Files.Private, p.Files.CopyOnWrite, p.Dir = nil, []string{filepath.Join(home, "a/cache"), filepath.Join(home, "b/cache")}, "/"
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if !s.facts.Overlay.Yes() || !s.facts.Namespaces.Yes() {
		t.Skip("no overlayfs in a user namespace")
	}
	return home, s
}

// runIn returns what a shell script prints in a sandbox; HOME is replaced by dir.
func runIn(t *testing.T, s *Sandbox, dir, script string) string {
	t.Helper()
	out, err := s.Command("sh", "-c", strings.ReplaceAll(script, "HOME", dir)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// Two copy-on-write directories below one home are parts of one overlayfs, of which nothing else can be reached.
func TestKernelCopiesOfOneHomeShareAnOverlay(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			home, s := copiesOf(t)
			for _, test := range []struct{ name, script, want string }{
				{"what the host has is read", "cat HOME/a/cache/deep/file HOME/b/cache/file", "one\ntwo\n"},
				{"what is written is read back", "cd HOME/a/cache; echo x >deep/file; mkdir deep/new; echo y >deep/new/f; cat deep/file deep/new/f", "x\ny\n"},
				{"what is removed is gone, and made anew is empty", "cd HOME/a/cache; rm -r deep; mkdir deep; ls -A deep", ""},
				{"renaming works within one, and not from one to another", "cd HOME/b/cache; mv file moved; cat moved; mkdir d; mv -T d ../../a/cache/d; ls ../../a/cache", "two\nd\ndeep\n"},
				{"a file can be made at the top of one", "echo x >HOME/b/cache/top; cat HOME/b/cache/top", "x\n"},
				{"nothing is beside or above them", "cd HOME; find . -mindepth 1 -maxdepth 2 | sort; cat secret a/secret b/cache2/secret 2>/dev/null; true", "./a\n./a/cache\n./b\n./b/cache\n"},
				{"the way up from one ends in the root", "cd HOME/a/cache/deep; ls ../../..", "a\nb\n"},
				{"the directories between cannot be written", "cd HOME; (echo x >a/new || echo x >new || mv a/cache a/c || mkdir a/cache2) 2>/dev/null; echo $?", "1\n"},
				{"one file system, and no mount of all of it", "grep ' - overlay ' /proc/self/mountinfo | cut -d' ' -f3 | uniq | wc -l; grep ' - overlay ' /proc/self/mountinfo | cut -d' ' -f4 | sort", "1\n/a/cache\n/b/cache\n"},
				{"each run begins with what the host has", "cat HOME/a/cache/deep/file; ls HOME/b/cache", "one\nfile\n"},
			} {
				if out := runIn(t, s, home, test.script); out != test.want {
					t.Errorf("%s: it printed %q, want %q", test.name, out, test.want)
				}
			}
			if text, err := os.ReadFile(filepath.Join(home, "a/cache/deep/file")); string(text) != "one\n" {
				t.Errorf("the host's file: %q %v", text, err)
			}
		})
	})
}

// An overlay of the home does not show what is mounted in it since New: the directory gets a separate overlay then. In a user
// namespace the kernel refuses the overlay of the home (EINVAL), and without one what lies behind a mount (EXDEV).
func TestKernelCopyOfWhatWasMountedSinceNew(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Parallel(t)
	for _, without := range []kerneltest.Feature{"", kerneltest.UserNamespaceCalls} {
		t.Run("without "+string(without), func(t *testing.T) { copyOfWhatWasMounted(t, without) })
	}
}

func copyOfWhatWasMounted(t *testing.T, without kerneltest.Feature) {
	c := kerneltest.Child{As: kerneltest.Root}
	if without != "" {
		c.Without = []kerneltest.Feature{without}
	}
	kerneltest.InChild(t, c, func(t *testing.T) {
		home, s := copiesOf(t)
		const script = "cat HOME/a/cache/deep/file HOME/a/cache/mounted HOME/b/cache/file 2>/dev/null; echo x >HOME/a/cache/new; cat HOME/a/cache/new"
		if got := runIn(t, s, home, script); got != "one\ntwo\nx\n" {
			t.Errorf("before the mount it printed %q", got)
		}
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")); err != nil {
			t.Fatal(err)
		}
		over := realTemp(t)
		if err := os.MkdirAll(filepath.Join(over, "cache"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mounted", "cache/mounted"} {
			if err := os.WriteFile(filepath.Join(over, name), []byte("mounted\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for _, test := range []struct{ dir, want string }{
			{"a", "mounted\ntwo\nx\n"}, {"a/cache", "mounted\ntwo\nx\n"}, {"b/cache2", "one\ntwo\nx\n"},
		} {
			dir := filepath.Join(home, test.dir)
			if err := unix.Mount(over, dir, "", unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			if got := runIn(t, s, home, script); got != test.want {
				t.Errorf("with a mount on %s it printed %q, want %q", test.dir, got, test.want)
			}
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Fatal(err)
			}
		}
		inner := filepath.Join(home, "a/cache/deep")
		if err := unix.Mount(over, inner, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		err := s.Command("true").Run()
		if failed := (*StartError)(nil); without == "" && (!errors.As(err, &failed) || failed.Field != "Files.CopyOnWrite" || !errors.Is(err, unix.EINVAL) || !strings.Contains(err.Error(), "the mount "+inner+",")) {
			t.Errorf("with a mount in a copy: %v", err)
		} else if without != "" && err != nil {
			t.Errorf("with a mount in a copy, without a user namespace: %v", err)
		}
		if err := unix.Unmount(inner, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		if got := runIn(t, s, home, script); got != "one\ntwo\nx\n" {
			t.Errorf("without the mount it printed %q", got)
		}
	})
}
