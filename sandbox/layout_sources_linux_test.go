package sandbox_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// A sourceCase is a policy with a source that lies in the workspace, which a
// tool of another command can write. The source is a directory with a file named
// "file" in it, or such a file.
type sourceCase struct {
	name   string
	source string // in the workspace
	policy func(ws string) sandbox.Policy
	script string // what the tool does; WS is the workspace
	want   string // what it prints
}

func layoutOf(entries ...rootfs.Entry) sandbox.Policy {
	return sandbox.Policy{Root: &rootfs.Layout{Entries: append(systemEntries(), entries...)}, Files: sandbox.Files{Protect: policy.Protect{Off: true}}}
}

func systemFiles(f sandbox.Files) sandbox.Policy {
	f.Read = append(f.Read, "/usr", "/bin", "/lib", "/lib64", "/etc")
	f.Protect.Off = true
	return sandbox.Policy{Files: f}
}

func sourceCases() []sourceCase {
	const cat = "cat /o/file"
	return []sourceCase{
		{"a bind", "low", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.Bind{Source: at(ws, "low"), At: "/o"})
		}, cat, "one"},
		{"a bind of a file", "low/file", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.Bind{Source: at(ws, "low/file"), At: "/o/file"})
		}, cat, "one"},
		{"a read-only overlay's layer", "low", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.ReadOnlyOverlay{Layers: []string{at(ws, "other"), at(ws, "low")}, At: "/o"})
		}, cat, "one"},
		{"a layer of more than fit into the registers", "low", func(ws string) sandbox.Policy {
			var many []string
			for i := range 40 {
				many = append(many, at(ws, fmt.Sprintf("many/%d", i)))
			}
			return layoutOf(rootfs.ReadOnlyOverlay{Layers: append(many, at(ws, "low")), At: "/o"})
		}, cat + "; ls /o/of | wc -l", "one40"},
		{"a forgetful overlay's layer", "low", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.TmpOverlay{Layers: []string{at(ws, "other"), at(ws, "low")}, At: "/o"})
		}, cat + "; echo x >/o/pwned", "one"},
		{"an overlay's layer", "low", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.Overlay{Layers: []string{at(ws, "low")}, Upper: at(ws, "up"), Work: at(ws, "work"), At: "/o"})
		}, cat, "one"},
		{"an overlay's upper directory", "up", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.Overlay{Layers: []string{at(ws, "low")}, Upper: at(ws, "up"), Work: at(ws, "work"), At: "/o"})
		}, "echo x >/o/pwned; cat /o/pwned", "x"},
		{"an overlay's working directory", "work", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.Overlay{Layers: []string{at(ws, "low")}, Upper: at(ws, "up"), Work: at(ws, "work"), At: "/o"})
		}, "echo x >/o/pwned; cat /o/pwned", "x"},
		{"an overlay of names that overlayfs would split", `odd :,\=x/low`, func(ws string) sandbox.Policy {
			odd := at(ws, `odd :,\=x`)
			return layoutOf(rootfs.Overlay{Layers: []string{at(odd, "low")}, Upper: at(odd, "up"), Work: at(odd, "work"), At: "/o"})
		}, cat + "; echo x >/o/pwned; cat /o/pwned", "onex"},
		{"the directory around a layer", "around", func(ws string) sandbox.Policy {
			return layoutOf(rootfs.TmpOverlay{Layers: []string{at(ws, "around/low")}, At: "/o"})
		}, cat, "one"},
		{"a copy on write", "low", func(ws string) sandbox.Policy {
			return systemFiles(sandbox.Files{CopyOnWrite: []string{at(ws, "low")}})
		}, "cat $WS/low/file; echo x >$WS/low/pwned; cat $WS/low/pwned", "onex"},
		{"a copy on write of a name that overlayfs would split", `odd :,\=x/low`, func(ws string) sandbox.Policy {
			return systemFiles(sandbox.Files{CopyOnWrite: []string{at(ws, `odd :,\=x/low`)}})
		}, `cat "$WS/odd :,\=x/low/file"`, "one"},
		{"a directory to read", "low", func(ws string) sandbox.Policy {
			return systemFiles(sandbox.Files{Read: []string{at(ws, "low")}})
		}, "cat $WS/low/file", "one"},
		{"a directory to write", "low", func(ws string) sandbox.Policy {
			return systemFiles(sandbox.Files{Write: []string{at(ws, "low")}})
		}, "cat $WS/low/file", "one"},
	}
}

// TestKernelSourcesAreNeverFollowed: the tool of one sandbox puts a symbolic link
// in the place of what a second sandbox, made before, takes from the workspace.
// Given the path, overlayfs would follow it.
func TestKernelSourcesAreNeverFollowed(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, c := range sourceCases() {
				t.Run(c.name, c.swap)
			}
		})
	})
}

func (c sourceCase) swap(t *testing.T) {
	ws, victim := sourceWorkspace(t)
	s, err := sandbox.New(c.policy(ws))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func() (string, error) {
		cmd := s.Command("/bin/sh", "-c", c.script)
		cmd.Dir = "/"
		cmd.Env = []string{"PATH=/usr/bin:/bin", "WS=" + ws}
		out, err := cmd.CombinedOutput()
		return strings.ReplaceAll(string(out), "\n", ""), err
	}
	if out, err := run(); err != nil || out != c.want {
		t.Fatalf("as it was: %q, %v; want %q", out, err, c.want)
	}

	attacker := layoutOf(rootfs.Bind{Source: ws, At: "/ws", Write: true})
	swap := fmt.Sprintf(`cd /ws && mv '%[1]s' taken && ln -s %[2]s/%[3]s '%[1]s'`, c.source, victim, filepath.Base(c.source))
	if out, err := runLayout(attacker, swap); err != nil {
		t.Fatalf("the tool cannot swap the source: %v %s", err, out)
	}
	out, err := run()
	if !errors.Is(err, syscall.ELOOP) {
		t.Errorf("with a link in the source's place: %v, want ELOOP", err)
	}
	if strings.Contains(out, "secret") {
		t.Errorf("the tool read through the link: %q", out)
	}
	if found, err := hostScript(victim, "find . -name pwned"); err != nil || found != "" {
		t.Errorf("the tool wrote through the link: %s %v", found, err)
	}

	// What is there anew is taken: a cache that was emptied, a file that was replaced.
	if out, err := runLayout(attacker, fmt.Sprintf(`cd /ws && rm '%[1]s' && mv taken '%[1]s'`, c.source)); err != nil {
		t.Fatalf("the tool cannot undo it: %v %s", err, out)
	}
	if out, err := run(); err != nil || out != c.want {
		t.Errorf("as it was again: %q, %v; want %q", out, err, c.want)
	}
}

// sourceWorkspace makes a workspace with directories of each name, and another
// directory with the same names, whose files are secret.
func sourceWorkspace(t *testing.T) (ws, victim string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, victim = at(root, "ws"), at(root, "victim")
	for _, top := range []string{ws, victim} {
		for _, dir := range []string{"low", "up", "work", "other", "around/low", `odd :,\=x/low`, `odd :,\=x/up`, `odd :,\=x/work`} {
			if err := os.MkdirAll(at(top, dir), 0o755); err != nil {
				t.Fatal(err)
			}
			text := map[string]string{ws: "one", victim: "secret"}[top]
			if filepath.Base(dir) == "low" {
				if err := os.WriteFile(at(top, dir+"/file"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.WriteFile(at(victim, "file"), []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		if err := os.MkdirAll(at(ws, fmt.Sprintf("many/%d/of/%d", i, i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return ws, victim
}

// TestKernelSourcesSwappedForFilesAreRefused: a layer is a directory or nothing.
func TestKernelSourcesSwappedForFilesAreRefused(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			for _, c := range sourceCases() {
				if !strings.Contains(c.name, "overlay") && !strings.Contains(c.name, "copy") {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					ws, _ := sourceWorkspace(t)
					s, err := sandbox.New(c.policy(ws))
					if err != nil {
						t.Fatal(err)
					}
					defer s.Close()
					if err := os.RemoveAll(at(ws, c.source)); err != nil {
						t.Fatal(err)
					}
					if err := syscall.Mkfifo(at(ws, c.source), 0o600); err != nil {
						t.Fatal(err)
					}
					cmd := s.Command("/bin/true")
					cmd.Dir = "/"
					if err := cmd.Run(); !errors.Is(err, syscall.ENOTDIR) {
						t.Errorf("%v, want ENOTDIR", err)
					}
				})
			}
		})
	})
}

// TestKernelNewFollowsNoLinkThatAToolCanMake: the tool of one sandbox puts a link
// into its workspace, and the next sandbox names a source behind it.
func TestKernelNewFollowsNoLinkThatAToolCanMake(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			ws, victim := sourceWorkspace(t)
			guarded := func(entries ...rootfs.Entry) sandbox.Policy {
				return sandbox.Policy{Root: &rootfs.Layout{Entries: append(systemEntries(), append([]rootfs.Entry{rootfs.Bind{Source: ws, At: "/ws", Write: true}}, entries...)...)}}
			}
			if out, err := runLayout(guarded(), "ln -s "+victim+"/low /ws/link"); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			if err := os.Symlink(at(ws, "other"), at(victim, "out")); err != nil {
				t.Fatal(err)
			}
			link := at(ws, "link")
			for _, test := range []struct {
				name  string
				entry rootfs.Entry
				field string // that New refuses; "": none
			}{
				{"a bind", rootfs.Bind{Source: link, At: "/o"}, "Root.Entries[INDEX].Source"},
				{"a bind of something behind it", rootfs.Bind{Source: link + "/file", At: "/o/file"}, "Root.Entries[INDEX].Source"},
				{"a layer", rootfs.TmpOverlay{Layers: []string{at(ws, "low"), link}, At: "/o"}, "Root.Entries[INDEX].Layers[1]"},
				{"an upper directory", rootfs.Overlay{Layers: []string{at(ws, "low")}, Upper: link, Work: at(victim, "work"), At: "/o"}, "Root.Entries[INDEX].Upper"},
				{"the target", rootfs.Bind{Source: at(victim, "low"), At: "/o"}, ""},
				{"a link elsewhere, that leads there", rootfs.Bind{Source: at(victim, "out"), At: "/o"}, ""},
			} {
				p := guarded(test.entry)
				_, err := runLayout(p, "true")
				var bad *sandbox.PolicyError
				want := strings.Replace(test.field, "INDEX", fmt.Sprint(len(p.Root.Entries)-1), 1)
				if errors.As(err, &bad) != (want != "") || bad != nil && bad.Field != want || bad == nil && err != nil {
					t.Errorf("%s: %v, want an error of %q", test.name, err, want)
				}
			}
			if _, err := runLayout(layoutOf(rootfs.Bind{Source: ws, At: "/ws", Write: true}, rootfs.Bind{Source: link, At: "/o"}), "cat /o/file"); err != nil {
				t.Errorf("without protected names: %v", err)
			}
		})
	})
}
