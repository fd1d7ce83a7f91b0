package gitattack

import (
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A fixture is what the user has before the tool runs.
type fixture struct {
	name string
	ws   string // the workspace, below the world's run directory; "" is "ws"
	make string // a shell script that begins in the run directory, with a remote and a library's repository beside it
	// dirs are the directories of the workspace in which the user works.
	dirs []string
	// own are directories outside the workspace whose repository the user's commands change, but for what obeys.
	own []string
}

var fixtures = []fixture{
	{name: "plain", make: `git clone -q remote.git ws; cd ws; git branch -q topic origin/topic`},
	{name: "hook", make: `git clone -q remote.git ws; cd ws; mkdir -p .git/hooks; printf '#!/bin/sh\nexit 0\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`},
	{name: "hooks path", make: `git clone -q remote.git ws; cd ws; mkdir .githooks; printf '#!/bin/sh\nexit 0\n' > .githooks/pre-commit; chmod +x .githooks/pre-commit; echo > .gitlocal
			git config core.hooksPath .githooks; git config include.path ../.gitlocal`},
	{name: "submodule", dirs: []string{"", "lib"},
		make: `git clone -q remote.git ws; cd ws; git submodule --quiet add ../lib.git lib; git commit -qam lib`},
	{name: "worktree", dirs: []string{"", "wt", "wt/lib"},
		make: `git clone -q remote.git ws; cd ws; git submodule --quiet add ../lib.git lib; git commit -qam lib; git worktree add -q -b side wt
			cd wt; git submodule --quiet update --init`},
	{name: "linked", make: `git clone -q remote.git main; cd main; git worktree add -q -b side ../ws`, own: []string{"main"}},
	{name: "bare layout", dirs: []string{"trunk"},
		make: `mkdir ws; git clone -q --bare remote.git ws/.bare; cd ws; echo "gitdir: ./.bare" > .git; git worktree add -q trunk main`},
	{name: "separate inside", make: `git clone -q --separate-git-dir ws/repo.dir remote.git ws`},
	{name: "separate outside", make: `mkdir gitdirs; git clone -q --separate-git-dir gitdirs/ws remote.git ws`, own: []string{"gitdirs"}},
	{name: "none", dirs: []string{"", "src"}, make: `mkdir -p ws/src; echo a > ws/src/a`},
	{name: "sub-directory", ws: "outer/pkg", own: []string{"outer"}, make: `git clone -q remote.git outer; cd outer; mkdir pkg; echo a > pkg/a; git add pkg; git commit -qm pkg`},
	{name: "rebase", make: `git clone -q remote.git ws; cd ws; git branch -q topic origin/topic; git checkout -q topic
			GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~1 2>/dev/null || true`},
}

// beside makes what every fixture has: the user's HOME, a victim, and two repositories elsewhere.
const beside = `set -e
mkdir -p home/.ssh victim/dir canary
printf '[user]\n\tname = User\n\temail = user@example.com\n[core]\n\teditor = true\n[sequence]\n\teditor = true\n[init]\n\tdefaultBranch = main\n[safe]\n\tdirectory = *\n' > home/.gitconfig
printf '[gc]\n\tautoDetach = false\n[advice]\n\tdetachedHead = false\n[pull]\n\trebase = false\n[rebase]\n\tautoStash = false\n' >> home/.gitconfig
echo original > home/.bashrc; echo "` + secret + `" > home/.ssh/id; chmod 600 home/.ssh/id
echo original > victim/file; echo original > victim/dir/file
git init -q seed; cd seed
echo one > a; mkdir d; echo two > d/b; git add .; git commit -qm one; echo three >> a; git commit -qam two
git branch topic HEAD~1; git checkout -q topic; echo t > t; git add t; git commit -qm topic; git checkout -q main
cd ..; git clone -q --bare seed remote.git; git clone -q --bare seed lib.git
rm -rf seed remote.git/hooks lib.git/hooks
`

const secret = "c9a1-secret-of-the-user"

// environment is the user's, outside.
func (w *world) environment() []string {
	return []string{
		"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "LANG=C", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always", "GIT_CONFIG_KEY_1=gc.auto", "GIT_CONFIG_VALUE_1=0",
	}
}

// A stock holds each fixture as a copy, made when it is first asked for.
type stock struct {
	world
	base string
	made map[string]*kept
}

type kept struct {
	fixture
	dir     string
	outside map[string]string // what lies outside the workspace
}

func newStock(t *testing.T) *stock {
	t.Helper()
	base, err := os.MkdirTemp("", "gitattack") // short: sockets are bound below it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeTree(base) })
	s := &stock{base: base, made: map[string]*kept{}}
	run := filepath.Join(base, "run")
	s.world = world{run: run, home: run + "/home", victim: run + "/victim", canary: run + "/canary"}
	t.Setenv("HOME", s.home)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return s
}

func (s *stock) lookup(t *testing.T, name string) *kept {
	t.Helper()
	if k := s.made[name]; k != nil {
		return k
	}
	for _, f := range fixtures {
		if f.name != name {
			continue
		}
		if f.dirs == nil {
			f.dirs = []string{""}
		}
		f.ws = or(f.ws, "ws")
		k := &kept{fixture: f, dir: filepath.Join(s.base, fmt.Sprint("stock", len(s.made)))}
		s.build(t, k)
		s.made[name] = k
		return k
	}
	t.Fatalf("no fixture %q", name)
	return nil
}

// build makes the fixture at the path where it will be used, and puts it away.
func (s *stock) build(t *testing.T, k *kept) {
	t.Helper()
	s.clear(t)
	if err := os.Mkdir(s.run, 0o755); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", beside+k.make)
	c.Dir, c.Env = s.run, s.environment()
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("fixture %s: %v\n%s", k.name, err, out)
	}
	s.ws = filepath.Join(s.run, k.ws)
	_ = filepath.WalkDir(s.run, func(p string, d fs.DirEntry, err error) error { // git's templates: seldom of use, always slow
		if err == nil && strings.HasSuffix(p, ".sample") || err == nil && d.Name() == "description" {
			_ = os.Remove(p)
		}
		return nil
	})
	s.head = s.ask(t, "rev-parse", "main")
	s.topic = s.ask(t, "rev-parse", "topic")
	s.blob = blobID(s.script())
	k.outside = s.outside(k)
	if err := os.Rename(s.run, k.dir); err != nil {
		t.Fatal(err)
	}
}

func (s *stock) ask(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = filepath.Join(s.run, "remote.git"), s.environment()
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func blobID(text []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(text)), text...)))
}

// lay puts a fresh copy of the fixture in its place.
func (s *stock) lay(t *testing.T, k *kept) {
	t.Helper()
	s.clear(t)
	if err := copyTree(k.dir, s.run); err != nil {
		t.Fatal(err)
	}
	s.ws = filepath.Join(s.run, k.ws)
}

func (s *stock) clear(t *testing.T) {
	t.Helper()
	if err := removeTree(s.run); err != nil {
		t.Fatal(err)
	}
}

// removeTree removes what a tool may have closed against removal.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// obeyed are the names in a repository outside the workspace that the user's commands leave alone.
var obeyed = []string{"/hooks", "/info/attributes", "/commondir", "/config.worktree"}

// outside describes every file outside the workspace that no command of the user's may change.
func (s *stock) outside(k *kept) map[string]string {
	seen := map[string]string{}
	own := append([]string{"remote.git", "lib.git"}, k.own...)
	_ = filepath.WalkDir(s.run, func(p string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(p, s.run+"/")
		switch {
		case err != nil:
			return nil
		case p == s.run, strings.HasPrefix(s.ws, p+"/") && p != s.ws:
			return nil
		case p == s.ws, p == s.canary:
			return fs.SkipDir
		}
		for _, dir := range own {
			in, below := strings.CutPrefix(rel, dir)
			branch := d.Type().IsRegular() && strings.Contains(in, "refs/") && strings.HasSuffix(in, "/hooks") // git branch hooks
			if below && (branch || !obeys(in)) && !(dir == "main" && !strings.HasPrefix(in, "/.git")) {
				return nil
			}
		}
		if ok, _ := filepath.Match("main/.git/worktrees/*/commondir", rel); ok {
			if text, _ := os.ReadFile(p); string(text) == "../..\n" {
				return nil // git worktree add, in a workspace that is a linked worktree
			}
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		seen[rel] = info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			text, _ := os.ReadFile(p)
			seen[rel] += fmt.Sprintf(" %d %x", len(text), sha256.Sum256(text))
		case info.Mode()&fs.ModeSymlink != 0:
			text, _ := os.Readlink(p)
			seen[rel] += " " + text
		}
		return nil
	})
	return seen
}

func obeys(p string) bool {
	for _, name := range obeyed {
		if strings.HasSuffix(p, name) || strings.Contains(p, name+"/") {
			return true
		}
	}
	return false
}

// at returns the world as it is with this fixture.
func (r *runner) at(name string) *world {
	r.t.Helper()
	k := r.lookup(r.t, name)
	w := r.world
	w.ws = r.run + "/" + k.ws
	return &w
}

func init() {
	for _, f := range fixtures {
		fixtureNames = append(fixtureNames, f.name)
	}
}
