package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// keptPlace is a machine with a workspace, a home, and a directory that is kept, below a new directory.
type keptPlace struct{ base, ws, dir, home string }

func newKeptPlace(t *testing.T) keptPlace {
	t.Helper()
	base := realTemp(t)
	k := keptPlace{base, base + "/ws", base + "/kept", base + "/home"}
	for _, dir := range []string{k.ws, k.dir, k.home, base + "/victim"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(k.home+"/.gitconfig", []byte("[user]\n\tname = User\n\temail = user@example.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", k.home)
	t.Setenv("GOCACHE", "") // it is in that home
	return k
}

// run runs a script in a Workspace that change has changed, and returns what it printed.
func (k keptPlace) run(t *testing.T, w walls, change func(*Policy), script string) (string, *Cmd) {
	t.Helper()
	p := Workspace(k.ws)
	p.May = append(p.May, w.may...)
	change(&p)
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := s.Command("sh", "-c", "exec 2>&1\n"+script)
	cmd.Dir = k.ws
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return string(out), cmd
}

// A harness that exchanges files by os.TempDir sets TMPDIR and Files.Tmp to one directory.
func TestKernelTmpIsTheCallers(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		k := newKeptPlace(t)
		t.Setenv("TMPDIR", k.dir)
		status := filepath.Join(os.TempDir(), "status")
		change := func(p *Policy) { p.Files.Tmp = k.dir }
		out, cmd := k.run(t, w, change, `
			echo done > `+status+`
			test "$TMPDIR" = `+k.dir+` || echo "TMPDIR is $TMPDIR"
			case $(mktemp) in $TMPDIR/*) ;; *) echo "mktemp made its file elsewhere" ;; esac
			for name in .bashrc .envrc .vscode/tasks.json .git/hooks/post-checkout sub/.gitconfig; do
				mkdir -p "$TMPDIR/$(dirname $name)"; (echo x > "$TMPDIR/$name") && echo "$name could be written"
			done 2>/dev/null
			(echo x > `+k.base+`/outside) 2>/dev/null
			case $HOME in $TMPDIR/*) echo "the run's own directory lies where other tools write" ;; esac
			(ln -s `+k.base+`/victim "$TMPDIR/link" && echo x > "$TMPDIR/link/x") 2>/dev/null && echo "a link leads outside"
			true`)
		if out != "" {
			t.Error(out)
		}
		if _, err := os.Lstat(k.base + "/outside"); err == nil {
			t.Error("the tool wrote outside")
		}
		if text, err := os.ReadFile(status); string(text) != "done\n" {
			t.Errorf("the status is %q, %v", text, err)
		}
		if told := cmd.Report().String(); !strings.Contains(told, "Files.Tmp") {
			t.Errorf("the report does not say whose TMPDIR is:\n%s", told)
		}
		if err := os.WriteFile(k.dir+"/given", []byte("by the harness\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, _ := k.run(t, w, change, `cat "$TMPDIR/given" "$TMPDIR/status"`); out != "by the harness\ndone\n" {
			t.Errorf("the next run reads %q", out)
		}
		if out, _ := k.run(t, w, func(*Policy) {}, `echo x > "$TMPDIR/private"; cat `+status+` 2>/dev/null; true`); out != "" {
			t.Errorf("without the field the tool reads %q", out)
		}
		if _, err := os.Lstat(k.dir + "/private"); err == nil {
			t.Error("without the field the tool wrote to the caller's directory")
		}
	})
}

// What a user lets last does: settings, what is installed, caches. What programs outside would obey does not.
func TestKernelHomeIsKept(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.Command("git"))
		k := newKeptPlace(t)
		t.Setenv("XDG_CONFIG_HOME", k.home+"/.config")
		change := func(p *Policy) { p.Files.Home = k.dir }
		out, cmd := k.run(t, w, change, `
			test "$HOME" = `+k.dir+` || echo "HOME is $HOME"
			test "$(git config --global user.name)" = User || echo "git does not know the user"
			git config --global user.signingkey K || echo "git config --global fails"
			git config --global alias.st status || echo "an alias fails"
			mkdir -p ~/.local/bin ~/.cache/x ~/.config/x "$XDG_CONFIG_HOME/y" && echo tool > ~/.local/bin/tool && echo prefix=x > ~/.npmrc
			for name in .bashrc .profile .gitconfig .zshenv .envrc .git/hooks/post-checkout p/.bashrc; do
				mkdir -p ~/"$(dirname $name)"; (echo x > ~/$name) && echo "$name could be written"
				(echo x > ~/n && mv ~/n ~/$name) && echo "$name could be moved there"
			done 2>/dev/null
			true`)
		if out != "" {
			t.Error(out)
		}
		if told := cmd.Report().String(); !strings.Contains(told, "Files.Home") {
			t.Errorf("the report does not say whose HOME is:\n%s", told)
		}
		again := `git config --global user.signingkey; git config --global user.name; cat ~/.local/bin/tool ~/.npmrc; ls "$XDG_CONFIG_HOME"`
		if out, _ := k.run(t, w, change, again); out != "K\nUser\ntool\nprefix=x\nx\ny\n" {
			t.Errorf("the next run reads %q", out)
		}
		if out, _ := k.run(t, w, func(*Policy) {}, again+"; true"); strings.Contains(out, "tool\n") || strings.Contains(out, "K\n") {
			t.Errorf("without the field the tool reads %q", out)
		}
		if entries, err := os.ReadDir(k.home); len(entries) != 1 || err != nil {
			t.Errorf("the user's own home has %v, %v", entries, err)
		}
	})
}

// A file of Files.Make at ~/tmp is there, but where HOME is the run's own directory, which has TMPDIR at that name: the error says so, and what it says helps.
func TestKernelAFileAtTheNameOfTMPDIR(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		k := newKeptPlace(t)
		with := func(name, home string) func(*Policy) {
			return func(p *Policy) {
				p.Files.Home, p.Files.Make = home, append(p.Files.Make, policy.File{Path: k.home + "/" + name, Data: "made\n"})
			}
		}
		if out, _ := k.run(t, w, with("tmp/file", ""), "cat ~/tmp/file && mktemp >/dev/null"); out != "made\n" {
			t.Errorf("below it: %q", out)
		}
		if out, _ := k.run(t, w, with("tmp", k.dir), "cat ~/tmp && mktemp >/dev/null"); out != "made\n" {
			t.Errorf("with Files.Home: %q", out)
		}
		if !w.bare() {
			if out, _ := k.run(t, w, with("tmp", ""), "cat ~/tmp"); out != "made\n" {
				t.Errorf("with namespaces: %q", out)
			}
			return
		}
		p := Workspace(k.ws)
		p.May = w.may
		with("tmp", "")(&p)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var e *PolicyError
		if err := s.Command("true").Run(); !errors.As(err, &e) || e.Value != k.home+"/tmp" || !strings.Contains(e.Remedy, "Files.Home") {
			t.Errorf("%v", err)
		}
	})
}

// Two sandboxes have one HOME at the same time, and each sees what the other writes there.
func TestKernelHomeIsSharedByTwoSandboxes(t *testing.T) {
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		k := newKeptPlace(t)
		start := func(script string) *Cmd {
			p := Workspace(k.ws)
			p.May = append(p.May, w.may...)
			p.Files.Home = k.dir
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			cmd := s.Command("sh", "-c", script)
			cmd.Dir = k.ws
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			return cmd
		}
		a := start(`mkfifo ~/a ~/b; touch ~/ready; echo from-a > ~/a; test "$(cat ~/b)" = from-b`)
		b := start(`until test -e ~/ready; do sleep 0.01; done; test "$(cat ~/a)" = from-a && echo from-b > ~/b`)
		if err := a.Wait(); err != nil {
			t.Errorf("the first: %v", err)
		}
		if err := b.Wait(); err != nil {
			t.Errorf("the second: %v", err)
		}
	})
}

// What a tool has planted in a kept HOME leads the harness's own writes nowhere, and keeps no run from starting.
func TestKernelHomeWithPlantedLinks(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		k := newKeptPlace(t)
		change := func(p *Policy) {
			p.Files.Home = k.dir
			p.Files.Make = append(p.Files.Make, policy.File{Path: k.home + "/.settings/tool/env", Data: "made\n"})
		}
		victim := k.base + "/victim"
		if out, _ := k.run(t, w, change, `cat ~/.settings/tool/env; rm -rf ~/.settings`); out != "made\n" {
			t.Errorf("the file is %q", out)
		}
		for _, plant := range []string{
			"ln -s " + victim + " ~/.settings", "ln -s ../victim ~/.settings", "echo x > ~/.settings", "mkdir ~/.settings && ln -s " + victim + " ~/.settings/tool",
			"mkdir -p ~/.settings/tool && ln -s " + victim + "/env ~/.settings/tool/env", "mkfifo ~/.settings", "ln -s .settings ~/.settings || true", // refused: where it leads is not known
			"rm ~/.sandbox-gitconfig && ln -s " + victim + "/git ~/.sandbox-gitconfig", "rm ~/.sandbox-gitconfig && mkdir ~/.sandbox-gitconfig",
		} {
			k.run(t, w, change, "rm -rf ~/.settings; "+plant)
			k.run(t, w, change, "rm -rf ~/.settings ~/.sandbox-gitconfig")
			if entries, err := os.ReadDir(victim); len(entries) > 0 || err != nil {
				t.Errorf("%s: %v, %v", plant, entries, err)
			}
		}
	})
}

// A directory that is not the user's alone, or that programs outside obey, is not kept for a tool.
func TestKernelKeptDirectoriesAreJudged(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, gitSets[:1], func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.Command("bash"))
		kinds := []struct {
			name, field string
			set         func(f *Files, dir string)
		}{
			{"tmp", "Files.Tmp", func(f *Files, dir string) { f.Tmp = dir }}, {"home", "Files.Home", func(f *Files, dir string) { f.Home = dir }},
		}
		for _, c := range []struct {
			name, make, dir string
			why             string // a part of the error; "": it is taken
		}{
			{"a directory made for it", "", "kept", ""},
			{"one in the cache directory", "mkdir -p home/.cache/harness/h", "home/.cache/harness/h", ""},
			{"one in the state directory", "mkdir -p home/.local/state/harness", "home/.local/state/harness", ""},
			{"one that does not exist", "", "none", "does not exist"},
			{"a file", "touch file", "file", "is a file"},
			{"the user's own home", "", "home", "it is the home directory"},
			{"a directory around the home", "chmod 700 .", "", "it contains"},
			{"a directory of keys", "mkdir -p home/.ssh/x", "home/.ssh/x", "whose files programs obey"},
			{"the user's settings", "mkdir -p home/.config/git", "home/.config/git", "whose files programs obey"},
			{"the user's programs", "mkdir -p home/bin", "home/bin", "whose programs the user runs"},
			{"the cache directory itself", "mkdir -p home/.cache", "home/.cache", "whose files programs obey"},
			{"a build cache", "mkdir -p home/.cache/go-build/x", "home/.cache/go-build/x", "whose files programs obey"},
			{"the workspace", "", "ws", "overlaps"},
			{"a directory in the workspace", "mkdir ws/t", "ws/t", "overlaps"},
			{"a directory around the workspace", "mkdir -p kept/in; rmdir ws; ln -s kept/in ws", "kept", "overlaps"},
			{"a link into the workspace", "mkdir ws/t; ln -s ws/t l", "l", "overlaps"},
			{"one that others can write to", "chmod 770 kept", "kept", "can be written by others"},
			{"one that all can write to", "chmod 1777 kept", "kept", "can be written by others"},
			{"one in a directory that all can write to", "mkdir -p open/kept; chmod 777 open", "open/kept", "others can rename"},
			{"a link that a tool made", "mkdir -p repo/.git secret; ln -s ../secret repo/l", "repo/l", "symbolic link"},
			{"another user's", "other", "kept", "belongs to another user"},
		} {
			for _, kind := range kinds {
				k := newKeptPlace(t)
				if c.make != "other" {
					asUser(t, k.base, c.make)
				} else if os.Geteuid() != 0 {
					continue // only root can give a file away
				} else if err := os.Lchown(k.dir, 65534, 65534); err != nil {
					t.Fatal(err)
				}
				ws := k.ws
				if strings.Contains(c.make, "kept/in ws") {
					ws = k.base + "/kept/in"
				}
				p := Workspace(ws)
				p.May = append(p.May, w.may...)
				kind.set(&p.Files, filepath.Join(k.base, c.dir))
				_, err := New(p)
				var bad *PolicyError
				switch {
				case c.why == "" && err != nil:
					t.Errorf("%s as %s: %v", c.name, kind.name, err)
				case c.why != "" && (!errors.As(err, &bad) || bad.Field != kind.field || bad.Remedy == "" || !strings.Contains(bad.Problem, c.why)):
					t.Errorf("%s as %s: %v", c.name, kind.name, err)
				}
			}
		}
		k := newKeptPlace(t)
		p := Workspace(k.ws)
		p.Files.Tmp, p.Files.Home = k.dir, k.dir
		if bad := (*PolicyError)(nil); !errors.As(func() error { _, err := New(p); return err }(), &bad) || bad.Field != "Files.Home" {
			t.Errorf("one directory for both: %v", bad)
		}
	})
}

// Allows knows both.
func TestKeptDirectoriesInAnswers(t *testing.T) {
	p := Policy{Files: Files{Tmp: "/srv/tmp", Home: "/srv/home"}}
	for _, c := range []struct {
		a     Access
		ok    bool
		field string
	}{
		{Access{Op: OpCreate, Path: "/srv/tmp/x"}, true, "Files.Tmp"}, {Access{Op: OpRead, Path: "/srv/home/.npmrc"}, true, "Files.Home"},
		{Access{Op: OpCreate, Path: "/srv/home/.bashrc"}, false, "Files.Protect"}, {Access{Op: OpCreate, Path: "/srv/other"}, false, ""}, {Access{Op: OpRename, Path: "/srv/home", To: "/srv/x"}, false, ""},
	} {
		if ok, why := Allows(p, c.a); ok != c.ok || c.field != "" && !strings.HasPrefix(why.Field, c.field) {
			t.Errorf("%+v: %v, %+v", c.a, ok, why)
		}
	}
	if b := p.Brief(); !strings.Contains(b, "/srv/tmp") || !strings.Contains(b, "TMPDIR") || !strings.Contains(b, "HOME: /srv/home") {
		t.Error(b)
	}
	for _, bad := range []Files{{Tmp: "tmp"}, {Home: "/a/../b"}, {Home: "/"}, {Tmp: "/proc/1"}, {Home: "/dev/shm"}} {
		e := (*policy.PolicyError)(nil)
		if err := (Policy{Files: bad}).Validate(); !errors.As(err, &e) || !strings.HasPrefix(e.Field, "Files.") || strings.Contains(e.Field, "[") || e.Remedy == "" {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
