package supervisor

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestKernelStillWorks(t *testing.T) {
	kerneltest.Long(t)
	cases := []struct{ name, needs, script string }{
		{"a repository from init to log", "git", `git init -q r; cd r; git config user.name n; git config user.email e@f; echo a >a; git add a; git commit -qm one
			git checkout -q -b b; echo b >>a; git commit -qam two; git checkout -q master; git merge -q b; git branch -d b; git log --oneline | wc -l | grep -qx 2
			[ "$(git config core.filemode)" = true ]; git status --porcelain | wc -l | grep -qx 0; git remote add origin https://example.com/x.git; git config remote.origin.url | grep -q example
			git gc -q; echo c >>a; git stash -q; git stash pop -q; git commit -qam three; git tag v1; git rebase -q HEAD~1; git fsck`},
		{"a clone and what it pulls", "git", `git init -q --bare ../out/bare; git init -q r; cd r; echo a >a; git add a; git commit -qm one; git push -q ../../out/bare master
			cd ..; git clone -q "$(cd ../out/bare; pwd)" c; cd c; git checkout -q master; git log --oneline | wc -l | grep -qx 1; git checkout -q -b x; git config branch.x.rebase true; git pull -q origin master`},
		{"a clone is removed again", "git", `git init -q r; cd r; git remote add origin https://example.com/x; cd ..; rm -rf r; ! [ -e r ]`},
		{"a worktree is added, used and removed", "git", `git init -q r; cd r; echo a >a; git add a; git commit -qm one; git worktree add -q ../w; cd ../w; echo b >b; git add b; git commit -qm two
			git log --oneline | wc -l | grep -qx 2; cd ../r; git worktree list | wc -l | grep -qx 2; git worktree remove ../w; ! [ -e ../w ]`},
		{"a submodule is fetched and used", "git", `git init -q ../out/lib; cd ../out/lib; echo a >a; git add a; git commit -qm one; lib=$PWD; cd -; cd s
			git update-index --add --cacheinfo 160000,$(git -C $lib rev-parse HEAD),vendor/lib; true
			git -c protocol.file.allow=always submodule update --init -q 2>&1; [ -e vendor/lib/a ]; cd vendor/lib; git status --porcelain | wc -l | grep -qx 0; git log --oneline | wc -l | grep -qx 1; git checkout -q -b t; echo x >>a; git commit -qam two
			[ "$(git config core.symlinks)" != false ]`},
		{"a file is saved as editors save", "", `echo 1 >f; echo 2 >f.tmp; mv f.tmp f; cp f f~; echo 3 >f; sed -i s/3/4/ f; grep -qx 4 f; ln f g; rm f; mv g f; chmod 755 f; [ -x f ]; touch f; truncate -s 10 f; [ $(stat -c %s f) = 10 ]`},
		{"trees are packed and copied", "tar", `mkdir -p a/b/c; echo x >a/b/c/f; ln -s f a/b/c/l; chmod 600 a/b/c/f; tar cf t.tar a; mkdir x; tar xf t.tar -C x; cp -a a y; diff -r a x/a; diff -r a y; [ "$(stat -c %a y/b/c/f)" = 600 ]; rm -r a x y`},
		{"rsync", "rsync", `mkdir a; echo x >a/f; rsync -a a/ b/; diff -r a b`},
		{"modes follow the umask of the caller", "", `umask 027; echo >f; mkdir d; mkfifo p; (umask 0; echo >g); [ "$(stat -c %a f d p g | tr '\n' ' ')" = "640 750 640 666 " ]; "$SELF" cwd`},
		{"pipes and terminals by name", "", `(echo a >/dev/stdout) | cat; echo b | cat >/dev/null; echo c 2>/dev/null >/dev/fd/2; diff <(echo 1) <(echo 1); echo x | tee >(cat >y) >/dev/null; while ! grep -q x y; do :; done 2>/dev/null; exec 7>z; echo q >/proc/self/fd/7; grep -q q z; echo 100 >/proc/self/oom_score_adj; [ "$(cat /proc/self/oom_score_adj)" = 100 ]; ! echo >/dev/tty`},
		{"the terminal by name", "script", `script -qc 'echo seen >/dev/tty' /dev/null </dev/null | grep -q seen`},
		{"a FIFO whose reader comes first or last", "", `mkfifo p; (cat p >o &); echo one >p; while ! grep -q one o; do :; done; echo two >p & cat p | grep -q two; wait; exec 8<>p; echo three >&8; read -r l <&8; [ "$l" = three ]`},
		{"exclusive creation and its errors", "", `set -C; echo 1 >f; ! echo 2 >f; mkdir d; ! mkdir d; ! rmdir nothing 2>e; grep -q 'No such file' e; ! rm nothing 2>|e; grep -q 'No such file' e; rm -f .envrc; mkdir -p d; ! echo >d/; ! echo >f/x; ! rmdir . 2>|e; grep -q Invalid e`},
		{"a nameless file gets a name", "", `"$SELF" tmpfile named; grep -q evil named`},
		{"sockets by path and port", "", `"$SELF" bind s.sock; [ -S s.sock ]; "$SELF" bind "$PWD/t.sock"; [ -S t.sock ]`},
		{"an exchange of plain files", "", `echo 1 >a; echo 2 >b; "$SELF" exchange a b; grep -q 2 a`},
		{"names with odd bytes", "", `n=$'a\nb\x01'; echo x >"$n"; mv "$n" "./-- *"; rm "./-- *"; echo >"$(printf 'x%.0s' $(seq 255))"`},
		{"paths in bad memory and deep trees", "", `"$SELF" memory; cd dddd*; for i in $(seq 30); do mkdir eeeeeeeeeeeeeeeeeee; cd eeeeeeeeeeeeeeeeeee; done; echo x >f; cat f`},
		{"signals do not repeat a call", "", `"$SELF" storm`},
		{"python makes an environment", "python3", `python3 -m venv --without-pip v; v/bin/python -c 'import sqlite3; c=sqlite3.connect("db"); c.execute("create table t(x)"); c.execute("insert into t values(1)"); c.commit()'
			python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1,2]))'`},
		{"make and a compiler", "gcc", `printf 'x: x.c\n\t$(CC) -o x x.c\n' >Makefile; printf 'int main(){return 0;}' >x.c; make -s CC=gcc; ./x`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(c.needs); c.needs != "" && err != nil {
					t.Skipf("no %s on this machine", c.needs)
				}
				if os.Getenv("SUPERVISOR_WITHOUT_CALLS") != "" && strings.Contains(c.script, `"$SELF" bind`) {
					t.Skip("needs pidfd_getfd(2): the policy has no sockets that the supervisor makes")
				}
				dir, rules := workspace(t, uid)
				if c.needs == "git" {
					script(t, dir, uid, `printf '[submodule "vendor/lib"]\n\tpath = vendor/lib\n\turl = %s\n' "$(cd ../out; pwd)/lib" >modules; git init -q s; cp modules s/.gitmodules`)
				}
				j := job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act"}}
				out, code := run(t, j)
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
