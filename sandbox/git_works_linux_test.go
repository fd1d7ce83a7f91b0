package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/presets"
)

// gitSets are how a Workspace is held on a host with namespaces and on one without.
var gitSets = []walls{allSets[0], allSets[3]}

// A gitCase is what a user does with git inside the default Workspace, or cannot do.
type gitCase struct {
	name   string
	make   string // a script that the user runs outside, before, in a directory with HOME below it
	dir    string // the workspace, below that directory
	script string // what the tool runs there; each line of fails has to fail
	fails  string
	after  string // what the user runs outside, afterwards
	change func(p *Policy)
}

// gitMake is what is outside before: the user's configuration, a repository with two commits and a clone of it without a work tree.
const gitMake = `mkdir home; printf '[user]\n\tname = User\n\temail = user@example.com\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n' > home/.gitconfig
git init -q main; cd main; echo one > a; git add a; git commit -qm one; echo two >> a; git commit -qam two; cd ..; git clone -q --bare main remote.git; mkdir ws
`

func eachGitCase(t *testing.T, cases []gitCase) {
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.Command("git"))
		made := realTemp(t)
		t.Setenv("HOME", made+"/home")
		asUser(t, made, gitMake)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, w, made) })
		}
	})
}

// run runs the case in a copy of the directory that gitMake has made.
func (c gitCase) run(t *testing.T, w walls, made string) {
	base := realTemp(t)
	t.Setenv("HOME", base+"/home")
	asUser(t, base, fmt.Sprintf(`cp -a %[1]s/. .; sed -i "s|%[1]s|$PWD|" remote.git/config; git -C main update-index -q --refresh
`, made)+c.make)
	p := presets.New(filepath.Join(base, c.dir), os.Getenv, nil).Policy(true) // HOME lies in /tmp, which Workspace would not believe
	p.Files.Private = append(p.Files.Private, "/tmp")
	p.May = append(p.May, w.may...)
	for name, value := range map[string]string{"BASE": base, "GIT_EDITOR": "true", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"} {
		p.Env.Set[name] = value
	}
	if c.change != nil {
		c.change(&p)
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Network.Hosts) > 0 {
		s.ready.Networks.Outside.Lookup, s.ready.Networks.Outside.Dial = gitHost(t, base)
	}
	tool := func(script string) (string, error) {
		cmd := s.Command("bash", "-ec", script)
		cmd.Dir = filepath.Join(base, c.dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := tool("exec 2>&1; set -x\n" + c.script); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(c.fails) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if out, err := tool(line); err == nil {
			t.Errorf("the tool could: %s\n%s", line, out)
		}
	}
	asUser(t, base, "set -x\n"+c.after)
}

// gitHost serves the repositories of base by HTTP at allowed.example, as git servers do.
func gitHost(t *testing.T, base string) (func(context.Context, string) ([]netip.Addr, error), func(context.Context, netip.AddrPort) (net.Conn, error)) {
	t.Helper()
	path, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	n := newInternet(t)
	var h http.Handler = &cgi.Handler{Path: strings.TrimSpace(string(path)) + "/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + base, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + base + "/home"}}
	n.handler.Store(&h)
	w := n.world()
	return w.Lookup, w.Dial
}

// What a user does with git in the default Workspace.
func TestKernelGitWorksAsAUserWorks(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	const clone = `rmdir ws; git clone -q remote.git ws; cd ws; git branch -q --track topic origin/main`
	const fine = `for d in $(find ws -name .git -maxdepth 2); do git -C $(dirname $d) fsck 2>&1; git -C $(dirname $d) status; done`
	cases := []gitCase{
		{name: "who the user is", dir: "ws", script: `git init -q r; cd r; echo a > a; git add a; git commit -qm one; test "$(git log -1 --format='%an %ae')" = "User user@example.com"; test $(git branch --show-current) = main`},
		{name: "a clone of a local path, used and removed", dir: "ws", change: showRemote, script: `git clone -q $BASE/remote.git c; cd c; git log --oneline | wc -l | grep -qx 2; echo x >> a; git commit -qam three; git fetch -q; git pull -q --rebase
			cd ..; git clone -q c d; cd d; git pull -q; git remote -v | grep -q /c; echo y >> a; git commit -qam four; git push -q origin HEAD:refs/heads/other; cd ..; git -C c log --oneline other | wc -l | grep -qx 4; rm -rf c; ! test -e c`},
		{name: "a bare and a mirrored clone", dir: "ws", change: showRemote, script: `git clone -q --bare $BASE/remote.git b.git; git -C b.git log --oneline | wc -l | grep -qx 2; git clone -q b.git e; cd e; echo x >> a; git commit -qam three; git push -q; git -C ../b.git log --oneline | wc -l | grep -qx 3; cd ..; rm -rf b.git e; ! test -e b.git`},
		{name: "a clone of an allowed host", dir: "ws", make: "git -C main branch b", change: func(p *Policy) { p.Network.Hosts = []string{"allowed.example:80"} }, script: `git clone -q http://allowed.example/remote.git c; cd c; git log --oneline | wc -l | grep -qx 2; git fetch -q --all; git remote add other http://allowed.example/main; git fetch -q other; git branch -r | grep -q other/b
			git checkout -q -t other/b; git pull -q; git ls-remote -q | grep -q main; cd ..; git clone -q --depth 1 http://allowed.example/remote.git s; git -C s fetch -q --unshallow; ! git clone -q http://denied.example/remote.git n; ! test -e n`},
		{name: "remotes", dir: "ws", make: clone, change: showRemote, script: `git remote add path $BASE/remote.git; git fetch -q path; git remote add url https://example.com/x.git; git remote add ssh git@example.com:x/y.git; git remote set-url url https://example.com/y.git; git remote rename url u; git remote remove u; git config branch.main.remote path; git pull -q path main`, after: fine},
		{name: "history is rewritten", dir: "ws", make: clone, script: `for i in 1 2 3 4; do echo $i > f$i; git add f$i; git commit -qm $i; done; GIT_SEQUENCE_EDITOR="sed -i '2s/pick/drop/;3s/pick/fixup/'" git rebase -q -i HEAD~4; git log --oneline | wc -l | grep -qx 4
			git checkout -q topic; echo t > f1; git add f1; git commit -qm t; ! git merge -q main; echo m > f1; git add f1; git commit -qm merged; git checkout -q -b pick HEAD~1; git cherry-pick main >/dev/null 2>&1 || git cherry-pick --abort; git revert --no-edit HEAD
			git stash list; echo s >> a; git stash -q; git stash pop -q; git commit -qam s; git reset -q --hard HEAD~1; git bisect start HEAD HEAD~1; git bisect reset; git format-patch -1 --stdout > p; git reset -q --hard HEAD~1; git am -q p; git tag -a -m v v1; git notes add -m n; git commit -q --amend --no-edit --trailer "Acked-by: u"; git log -1 | grep -q Acked; git reflog | grep -q am; git gc -q; git prune; git fsck`,
			fails: `git rebase -q -x true HEAD~1`, after: fine},
		{name: "the user's hooks run", dir: "ws", make: clone + `
			printf '#!/bin/sh\necho ran >> ran\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; cp .git/hooks/pre-commit ../hook`, script: `echo x >> a; git commit -qam x; grep -q ran ran; git commit -qn --allow-empty -m y`, fails: `echo x >> .git/hooks/pre-commit
rm .git/hooks/pre-commit
chmod -x .git/hooks/pre-commit`,
			after: `cmp hook ws/.git/hooks/pre-commit; test -x ws/.git/hooks/pre-commit`},
		{name: "worktrees", dir: "ws", make: clone, script: `git worktree add -q wt; cd wt; echo x > x; git add x; git commit -qm x; git status --porcelain | wc -l | grep -qx 0; git fetch -q || true; cd ..; git worktree list | wc -l | grep -qx 2; git worktree move wt w2; git worktree lock w2; git worktree unlock w2; git worktree add -q --detach .claude-wt; git worktree remove w2; rm -rf .claude-wt; git worktree prune; git worktree list | wc -l | grep -qx 1`, after: fine},
		{name: "a bare layout", dir: "ws", make: `cd ws; git clone -q --bare ../remote.git .bare; echo "gitdir: ./.bare" > .git; git worktree add -q trunk main`, change: showRemote, script: `cd trunk; echo x >> a; git commit -qam x; cd ..; git worktree add -q -b side side; cd side; git log --oneline | wc -l | grep -qx 3 || true; echo y > y; git add y; git commit -qm y; git rebase -q main; cd ..; git fetch -q; git worktree remove side; git branch -D side; git gc -q`, after: `git -C ws/trunk log --oneline | wc -l | grep -qx 3; git -C ws/trunk fsck`},
		{name: "shared and separate", dir: "ws", script: `git init -q --shared g; cd g; git config core.sharedRepository | grep -q .; echo a > a; git add a; git commit -qm a; cd ..; git init -q --bare --shared=group h.git; git -C g push -q $PWD/h.git main; git init -q --separate-git-dir=d.git s; cd s; echo b > b; git add b; git commit -qm b; cd ..; rm -rf g s h.git d.git; test -z "$(ls -A)"`},
		{name: "a submodule is added", dir: "ws", make: clone, change: showRemote, script: `git submodule --quiet add $BASE/remote.git lib; git commit -qm lib; git submodule status | grep -q lib; cd lib; git checkout -q -b t; echo x >> a; git commit -qam x; cd ..; git commit -qam bump; git submodule --quiet update; test -e lib/a`, after: fine},
		{name: "submodules are updated", dir: "ws", make: `git init -q super; cd super; git submodule --quiet add ${PWD%/*}/remote.git lib; git commit -qm lib; cd ..; rmdir ws; git clone -q super ws`, change: showRemote, script: `git submodule --quiet update --init; cd lib; git log --oneline | wc -l | grep -qx 2; git checkout -q -b t; echo x >> a; git commit -qam x; cd ..; git add lib; git commit -qm bump; git submodule status | grep -q lib; git submodule --quiet foreach git status >/dev/null`, after: fine},
	}
	eachGitCase(t, cases)
}

// With NoNewRepositories what is there works, and nothing new is made.
func TestKernelNoNewRepositories(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	strict := func(p *Policy) { p.Files.Protect.NoNewRepositories = true }
	eachGitCase(t, []gitCase{{name: "strict", dir: "ws", make: `rmdir ws; git clone -q remote.git ws; mkdir ws/half ws/half/refs ws/half/objects`, change: strict,
		script: `echo x >> a; git commit -qam x; git checkout -q -b b; git config user.name N; git gc -q; mkdir refs objects n; echo x > n/HEAD; mkdir n/refs; mv n n2; rm -rf n2 refs objects`,
		fails: `git init -q n
			git init -q --bare n
			git clone -q . n
			git worktree add -q n
			mkdir -p n/.git
			mkdir n; mv n .GIT
			echo x > half/HEAD
			mkdir m; echo x > m/h; mkdir m/refs m/objects; mv m/h m/HEAD
			mkdir k; echo x > k/HEAD; mkdir k/refs; mkdir k/objects
			cp -r .git copy.git && test -e copy.git/HEAD -a -e copy.git/objects -a -e copy.git/refs
			mkdir q; echo "gitdir: ../.git" > q/.git`,
		after: `test "$(find ws -name HEAD -path '*/.git/HEAD' | wc -l)" = 1; git -C ws fsck; git -C ws log --oneline | wc -l | grep -qx 3`}})
	p := Workspace("/srv/project")
	strict(&p)
	if ok, why := Allows(p, Access{Op: OpCreate, Path: "/srv/project/n/.git", Dir: true}); ok || why.Field != "Files.Protect.NoNewRepositories" {
		t.Errorf("allowed: %v: %+v", ok, why)
	}
	p.Files.Protect.Off = true
	if _, err := New(p); err == nil {
		t.Error("Off and NoNewRepositories go together")
	}
}

// asUser runs a script as the user.
func asUser(t *testing.T, base, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = base
	cmd.Env = append(os.Environ(), "GIT_EDITOR=true", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("outside: %v\n%s", err, out)
	}
}

func realTemp(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return base
}
