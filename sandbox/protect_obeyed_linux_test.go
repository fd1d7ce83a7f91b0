package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// What an existing repository's configuration names is protected, unless Write names it, too, or hooks are not protected.
func TestWhatAConfigurationNamesIsProtected(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\thooksPath = ci\n[include]\n\tpath = ../local\n[filter \"d\"]\n\tclean = ./scripts/clean\n", "ci/x": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name           string
		change         func(p *Policy)
		hooks, include bool // may be written
	}{
		{"the default", func(p *Policy) {}, false, false},
		{"Write names the directory of hooks", func(p *Policy) { p.Files.Write = append(p.Files.Write, dir+"/ci") }, true, false},
		{"hooks are excepted", func(p *Policy) { p.Files.Protect.Except = []string{".git/hooks"} }, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Workspace(dir)
			c.change(&p)
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]bool{"/ci/pre-commit": c.hooks, "/local": c.include, "/scripts/clean": c.include, "/scripts/other": true, "/plain": true} {
				if ok, why := s.Allows(Access{Op: OpCreate, Path: dir + path}); ok != want {
					t.Errorf("%s may be made: %v, not %v: %+v", path, ok, want, why)
				}
			}
			if got := slices.Contains(s.obeyed.Paths, dir+"/ci"); got == c.hooks {
				t.Errorf("held: %q", s.obeyed)
			}
		})
	}
}

// A relative core.hooksPath is protected in every directory, since each can become a work tree.
func TestWhatARelativeHooksPathNamesIsProtectedEverywhere(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir+"/home")
	for name, text := range map[string]string{
		"home/.gitconfig": "[core]\n\thooksPath = hooks\n", "w/.git/HEAD": "ref: refs/heads/main\n", "w/.git/config": "[core]\n\thooksPath = ci/run\n",
		"w/lib/.git/HEAD": "ref: refs/heads/main\n", "w/lib/.git/config": "[core]\n\thooksPath = .husky/_\n", "w/ci/run/x": "", "w/hooks/x": "", "w/lib/ci/run/x": "",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w := dir + "/w"
	for _, c := range []struct {
		name         string
		change       func(p *Policy)
		ci, hook, hu bool // may be made
	}{
		{"the default", func(p *Policy) {}, false, false, false},
		{"build files are open", func(p *Policy) { p.Files.Protect.BuildFiles = true }, false, false, false},
		{"Write names one", func(p *Policy) { p.Files.Write = append(p.Files.Write, w+"/ci/run") }, true, false, false},
		{"Write names one of an ordinary name", func(p *Policy) { p.Files.Write = append(p.Files.Write, w+"/hooks") }, false, true, false},
		{"Write names another of that name", func(p *Policy) { p.Files.Write = append(p.Files.Write, w+"/lib/ci/run") }, false, false, false},
		{"a name above one is excepted", func(p *Policy) { p.Files.Protect.Except = []string{".husky"} }, false, false, true},
		{"hooks are excepted", func(p *Policy) { p.Files.Protect.Except = []string{".git/hooks", ".husky"} }, true, true, true},
		{"nothing is protected", func(p *Policy) { p.Files.Protect.Off = true }, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Policy{Files: Files{Read: Workspace(w).Files.Read, Write: []string{w}}}
			c.change(&p)
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			for path, want := range map[string]bool{
				"/n/ci/run/pre-commit": c.ci, "/a/b/ci/run/helper": c.ci, "/n/hooks/pre-commit": c.hook, "/src/hooks/useState.ts": true, "/hooks/x": c.hook, "/n/.husky/_/h": c.hu,
				"/n/ci/other": true, "/n/run/x": true, "/plain": true,
			} {
				ok, why := s.Allows(Access{Op: OpCreate, Path: w + path})
				if ok != want {
					t.Errorf("%s may be made: %v, not %v: %+v", path, ok, want, why)
				}
				if path == "/n/ci/run/pre-commit" && !ok && (!strings.Contains(why.Why, "core.hooksPath") || !strings.Contains(why.Remedy, w+"/ci/run in Files.Write")) {
					t.Errorf("%s: %+v", path, why)
				}
			}
		})
	}
}

// What a tool has left in a workspace has New name it, and what New says helps.
func TestTooMuchThatGitObeysIsNamed(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "[include]\npath = ../%d\n", i)
	}
	for _, text := range []string{many.String(), "[core]\n" + strings.Repeat("hooksPath = a/b/c/d/e/f/g/h\n", 20000)} {
		if err := os.MkdirAll(dir+"/x", 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"HEAD": "x", "config": text} {
			if err := os.WriteFile(dir+"/x/"+name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := New(Workspace(dir))
		var bad *PolicyError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), dir+"/x/config ") || !strings.Contains(bad.Remedy, "remove it") {
			t.Errorf("%v", err)
		}
		t.Log(err)
		if err := os.Remove(dir + "/x/config"); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Workspace(dir)); err != nil {
			t.Error("once it is removed:", err)
		}
	}
}

// TestKernelAttackLinksAtProtectedNames: the user's links, which are there before the run, lead from what programs outside obey to plain files, which
// the tool would change by either name.
func TestKernelAttackLinksAtProtectedNames(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		for _, set := range allSets {
			t.Run(set.name, func(t *testing.T) {
				set.chosen(t, allSets)
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: set.without}, func(t *testing.T) {
					p := workspaceHere(t)
					p.May = set.may
					ws := p.Files.Write[0]
					for name, text := range map[string]string{".git/HEAD": "", ".git/config": "", "scripts/check": "", "tools/vscode/tasks.json": "", "agents/claude.json": "", "lib/.git/HEAD": "", "lib/run/pre-push": "", "plain/x": ""} {
						if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755), os.WriteFile(filepath.Join(ws, name), []byte(text), 0o644)); err != nil {
							t.Fatal(err)
						}
					}
					for name, to := range map[string]string{".git/hooks/pre-commit": "../../scripts/check", ".vscode": "tools/vscode", ".claude/settings.json": "../agents/claude.json", ".mcp.json": "mcp.json", "lib/.husky": "run", "link": "plain"} {
						if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(ws, name)), 0o755), os.Symlink(to, filepath.Join(ws, name))); err != nil {
							t.Fatal(err)
						}
					}
					out, err := commandIn(t, p, `for f in .git/hooks/pre-commit scripts/check .vscode/tasks.json tools/vscode/tasks.json tools/vscode/new .claude/settings.json agents/claude.json .mcp.json mcp.json lib/.husky/pre-push lib/run/pre-push; do
	(echo evil >>$f) 2>/dev/null && echo ESCAPE: $f; done
mv tools t 2>/dev/null && echo ESCAPE: renamed; rm scripts/check 2>/dev/null && echo ESCAPE: removed; echo x >plain/x && echo y >>link/x && echo z >scripts/other && cat link/x`).CombinedOutput()
					if got := string(out); err != nil || got != "x\ny\n" {
						t.Errorf("%v\n%s", err, got)
					}
				})
			})
		}
	})
}

// TestKernelAttackLinksAtHiddenNames: a hidden name is a link of the user's to a file with another name.
func TestKernelAttackLinksAtHiddenNames(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			p := workspaceHere(t)
			p.Files.HideNames = []string{".env"}
			ws := p.Files.Write[0]
			err := errors.Join(os.Mkdir(filepath.Join(ws, "conf"), 0o755), os.WriteFile(filepath.Join(ws, "conf/dev"), []byte("secret"), 0o600), os.WriteFile(filepath.Join(ws, "conf/plain"), []byte("plain\n"), 0o644), os.Symlink("conf/dev", filepath.Join(ws, ".env")))
			if err != nil {
				t.Fatal(err)
			}
			if s, err := New(p); err != nil {
				t.Error(err)
			} else if ok, why := s.Allows(Access{Op: OpRead, Path: ws + "/conf/dev"}); ok {
				t.Errorf("conf/dev may be read: %+v", why)
			}
			out, err := commandIn(t, p, `cat .env conf/dev 2>/dev/null; mv conf c 2>/dev/null; cat c/dev 2>/dev/null; rm -f conf/dev 2>/dev/null; echo x >>conf/plain; cat conf/plain`).CombinedOutput()
			if err != nil || string(out) != "plain\nx\n" {
				t.Errorf("%v\n%s", err, out)
			}
		})
	})
}

// TestKernelADirectoryOfPATHThatCanBeWrittenIsNoted: the harness would execute what the tool has left there.
func TestKernelADirectoryOfPATHThatCanBeWrittenIsNoted(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Ordinary}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces)
		p := workspaceHere(t)
		ws := p.Files.Write[0]
		for _, dir := range []string{"venv/bin", "link"} {
			if err := errors.Join(os.MkdirAll(filepath.Join(ws, "venv/bin"), 0o755), os.Setenv("PATH", os.Getenv("PATH")+":"+filepath.Join(ws, dir))); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("venv/bin", filepath.Join(ws, "link")); err != nil {
			t.Fatal(err)
		}
		const said = "is in the harness's PATH"
		c := commandIn(t, Workspace(ws), `echo x >venv/bin/git`)
		if out, err := c.CombinedOutput(); err != nil || strings.Count(c.Report().String(), said) != 1 {
			t.Errorf("%v\n%s%s", err, out, c.Report())
		}
		p = Workspace(ws)
		p.Files.Read = append(p.Files.Read, filepath.Join(ws, "venv/bin"))
		c = commandIn(t, p, `! echo x >venv/bin/git`)
		if out, err := c.CombinedOutput(); err != nil || strings.Contains(c.Report().String(), said) {
			t.Errorf("%v\n%s%s", err, out, c.Report())
		}
	})
}

// TestKernelALinkBesideWhatIsHidden is made: a directory that the policy hides cannot be read, and is none in which the tool has closed a .git file.
func TestKernelALinkBesideWhatIsHidden(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "hidden"), 0o755); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, "", w)
		p.Files.Write, p.Files.Hide, p.Files.Protect.Off = []string{dir}, []string{filepath.Join(dir, "hidden")}, false
		c := attackSandbox(t, p, w).Command("sh", "-c", "ln -s /etc/hostname link && mkdir d && mv link d/link && ls hidden 2>/dev/null || readlink d/link")
		c.Dir = dir
		if out, err := c.CombinedOutput(); string(out) != "/etc/hostname\n" || err != nil {
			t.Errorf("%q, %v\n%v", out, err, c.Report().Violations)
		}
	})
}
