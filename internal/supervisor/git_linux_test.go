package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelGitAttacks has a tool forge what the user's own git obeys. Afterwards plain git commands run outside: none may start a
// program of the tool's, which leaves the file PWNED, or write where the tool chose.
func TestKernelGitAttacks(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; echo a >a; git add a; git commit -qm one; `
	const evil = `'[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch '$PWD'/PWNED; false"\n'`
	cases := []struct{ name, prepare, attack, outside string }{
		{"F2: a .git file is bent after the check", repo, `mkdir -p s evil/sub evil/objects evil/refs .git/modules/w/d; echo ref: refs/heads/m >evil/HEAD; printf ` + evil + ` >evil/config
			echo 'gitdir: ../.git/modules/w/d/..' >s/.git; : >x; rmdir .git/modules/w/d; ln -s "$PWD/evil/sub" .git/modules/w/d`, `git -C s status; git status`},
		{"F3: the lock of the user's git is written", repo + `echo mine >.git/config.lock`, `echo evil >>.git/config.lock; exec 5>>.git/config.lock; : >.git/config.lock`, `grep -qx mine .git/config.lock`},
		{"F3: the lock of the user's git is replaced", repo + `echo mine >.git/config.lock`, `echo evil >e; mv e .git/config.lock; ln e .git/config.lock; "$SELF" exchange e .git/config.lock; rm -f .git/config.lock; mv .git/config.lock x`, `grep -qx mine .git/config.lock`},
		{"F3: a lock gets a second name", repo, `: >x; set -C; : >.git/config.lock; ln .git/config.lock x2; mv .git/config.lock x3`, `[ ! -e x2 ] && [ ! -e x3 ]`},
		{"F3: the configuration changes while the user's git writes it", repo + `cp .git/config .git/config.lock`, `cp .git/config n; echo '[user]' >>n; mv n .git/config`, `! grep user .git/config`},
		{"F4: an embedded bare repository", `mkdir d`, `cd d; mkdir objects refs; printf ` + evil + ` >config; echo ref: refs/heads/m >HEAD`, `cd d; git status`},
		{"F4: the same in another order", ``, `mkdir d; cd d; echo ref: refs/heads/m >HEAD; printf ` + evil + ` >config; mkdir refs; mkdir objects`, `cd d; git status`},
		{"F4: the same by renames", ``, `mkdir d; cd d; mkdir o r; printf ` + evil + ` >config; echo ref: refs/heads/m >h; mv h HEAD; mv o objects; mv r refs; ln config HEAD`, `cd d; git status`},
		{"F4: the configuration is open before", ``, `mkdir d; cd d; : >c; exec 5>>c; mkdir refs; echo ref: refs/heads/m >HEAD; mv c config; ln config c2; mkdir objects; printf ` + evil + ` >&5; printf ` + evil + ` >>c2`, `cd d; git status`},
		{"F4: hooks of a bare layout", `git init -q r; cd r; ` + repo + `cd ..; git clone -q --bare r .bare; echo 'gitdir: ./.bare' >.git; git worktree add -q trunk`,
			`mkdir -p .bare/hooks; printf '#!/bin/sh\ntouch "$PWD/../PWNED" PWNED\n' >.bare/hooks/post-checkout; chmod +x .bare/hooks/post-checkout; git -C trunk config core.fsmonitor "touch $PWD/PWNED"; printf ` + evil + ` >>.bare/config`, `git -C trunk checkout -q -b x; git -C trunk status`},
		{"F4: a separate git directory", `git init -q --separate-git-dir=store w; cd w; echo a >a; git add a; git commit -qm one`, `git -C w config core.fsmonitor "touch $PWD/PWNED"; mkdir -p store/hooks; printf '#!/bin/sh\ntouch ../PWNED PWNED\n' >store/hooks/pre-commit; chmod +x store/hooks/pre-commit; printf ` + evil + ` >store/config`, `cd w; git status; git commit -qm x --allow-empty`},
		{"F4: files far below in a git directory", `git init -q --bare b.git; cd b.git; for i in $(seq 50); do mkdir d; cd d; echo old >old; done`,
			`cd b.git; for i in $(seq 50); do cd d; echo evil >new; echo evil >>old; echo evil >old; echo evil 1<>old; mkdir evil; mv old evil; "$SELF" truncate old; done; cd /; exec 3<"$OLDPWD/old"; echo evil >/proc/self/fd/3`, `cd b.git; ! grep -r evil . && ! find . -name evil | grep . && [ "$(find . -size 4c -name old | wc -l)" = 50 ]`},
		{"F4: a git directory ceases to be one for a while", `git init -q --bare b.git`, `mv b.git/HEAD h; mkdir -p b.git/hooks; rm -f b.git/HEAD; printf '#!/bin/sh\ntouch ../PWNED\n' >b.git/hooks/post-update; chmod +x b.git/hooks/post-update; printf ` + evil + ` >b.git/config; mv h b.git/HEAD`,
			`git -C b.git status; git init -q c; cd c; git commit -qm x --allow-empty; git push -q ../b.git master`},
		{"F4: another directory's configuration by commondir", repo, `mkdir -p evil/objects evil/refs w; printf ` + evil + ` >evil/config; mkdir d; echo ref: refs/heads/m >d/HEAD; echo ../evil >d/commondir; mkdir d2; echo ../evil >d2/commondir; echo ref: refs/heads/m >d2/HEAD
			mkdir d3; ln -s evil d3/commondir; echo x >d3/HEAD`, `for d in d d2 d3; do (cd $d; git status); done`},
		{"F4: a worktree's directory moves to where its commondir is another", repo + `git worktree add -q ../ws/wt`, `mkdir -p objects refs x; printf ` + evil + ` >config; mv .git/worktrees/wt x/wt; mv .git/worktrees x/w2`, `git -C x/wt status; git -C x/w2/wt status`},
		{"F27: the directory of worktrees becomes a git directory", repo, `D=.git/worktrees; mkdir -p $D wt; printf ` + evil + ` >$D/config; printf ` + evil + ` >c; ln c $D/config; mv c $D/config; mkdir $D/objects $D/refs; git rev-parse HEAD >$D/HEAD; cp $D/HEAD h || git rev-parse HEAD >h; ln h $D/HEAD; mv h $D/HEAD
			printf 'gitdir: ../.git/worktrees\n' >wt/.git; : >x; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),wt`, `git status; git -C wt status; [ ! -e .git/worktrees/HEAD ] && [ ! -e .git/worktrees/config ]`},
		{"F27: files in the place of a git directory's directories", repo, `cd .git; for d in worktrees modules lfs sequencer rebase-merge worktrees/w; do : >$d; : >f; ln ../a $d; cp ../a f; mv ../f $d; done; : >worktrees`, `cd .git; for d in worktrees modules lfs sequencer rebase-merge worktrees/w; do [ ! -f $d ] || exit 1; done`},
		{"F6: a link for a log", repo + `echo >../out/rc`, `rm -f .git/logs/HEAD; ln -s "$PWD/../out/rc" .git/logs/HEAD; ln -s ../../out/rc l; mv l .git/logs/HEAD; ln l .git/logs/HEAD; git config user.name 'x;evil'`, `git commit -qm two --allow-empty; ! grep evil ../out/rc`},
		{"F6: a link for a message", repo, `ln -s config .git/COMMIT_EDITMSG; ln -s objects .git/lfs; rm -rf .git/logs; ln -s refs .git/logs`, `[ ! -L .git/COMMIT_EDITMSG ] && [ ! -L .git/lfs ] && [ ! -L .git/logs ]`},
		{"F7: a module's work tree through a link", repo + `mkdir ../out/v`, `mkdir -p .git/modules sub; git init -q --separate-git-dir=.git/modules/m m; git -C m commit -qm x --allow-empty; cd m; echo a >.rc2; git add .rc2; git commit -qm y; cd ..; git config -f .git/modules/m/config core.worktree ../../../lnk; ln -s ../out/v lnk; echo "gitdir: ../.git/modules/m" >sub/.git; : >x`,
			`git -C sub checkout -f; [ ! -e ../out/v/.rc2 ]`},
		{"F8: a submodule of a worktree", repo + `git worktree add -q wt; git init -q lib; git -C lib commit -qm l --allow-empty; cd wt; git -c protocol.file.allow=always submodule add -q ../lib lib 2>&1`,
			`cd .git/worktrees/wt/modules/lib; printf ` + evil + ` >>config; mkdir -p hooks; printf '#!/bin/sh\ntouch PWNED ../PWNED ../../PWNED\n' >hooks/pre-commit; chmod +x hooks/pre-commit`, `cd wt; git status; cd lib; git commit -qm x --allow-empty`},
		{"F9: a push goes by /proc to a repository of the tool's", repo, `git init -q --bare evil; mkdir -p evil/hooks; printf '#!/bin/sh\ntouch ../PWNED\n' >evil/hooks/pre-receive; chmod +x evil/hooks/pre-receive; git config remote.origin.url /proc/self/root$PWD/evil; git config remote.o2.url /proc/self/cwd/evil; ln -s evil lk; git config remote.o3.url "$PWD/lk"`,
			`for r in origin o2 o3; do git push $r master; done; ! git config --get-regexp remote | grep -e proc -e lk`},
		{"F16: a module's older remotes", repo + `mkdir -p .git/modules; git init -q --separate-git-dir=.git/modules/m m; git -C m commit -qm x --allow-empty`, `mkdir -p .git/modules/m/remotes .git/modules/m/branches; echo URL: $PWD/evil >.git/modules/m/remotes/origin; echo $PWD/evil >.git/modules/m/branches/origin`,
			`[ ! -e .git/modules/m/remotes/origin ] && [ ! -e .git/modules/m/branches/origin ]`},
		{"F17: a forged rebase", repo, `mkdir .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD >onto; cp onto orig-head; echo refs/heads/master >head-name; : >interactive; : >done; echo "exec touch $PWD/../../PWNED" >git-rebase-todo; echo "x touch $PWD/../../PWNED" >t; mv t git-rebase-todo; ln t git-rebase-todo; cp t git-rebase-todo`,
			`git rebase --continue`},
		{"a forged strategy", repo + `git checkout -qb b; echo b >b; git add b; git commit -qm two; git checkout -q master; echo c >c; git add c; git commit -qm three`,
			`mkdir -p git-merge-x; printf '#!/bin/sh\ntouch PWNED\n' >git-merge-x/evil; chmod +x git-merge-x/evil; mkdir .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD >onto; cp onto orig-head; echo refs/heads/master >head-name; : >interactive; : >done; echo 1 >msgnum; echo 1 >end; echo "pick $(git rev-parse b)" >t; mv t git-rebase-todo; echo x/evil >strategy; echo x/evil >t; mv t strategy`,
			`git rebase --continue`},
		{"forged options of git apply", repo, `mkdir .git/rebase-apply; echo "'--unsafe-paths'" >.git/rebase-apply/apply-opt; : >x; echo "'--build-fake-ancestor=/x'" >t; mv t .git/rebase-apply/apply-opt`, `[ ! -s .git/rebase-apply/apply-opt ]`},
		{"a worktree's gitdir names a directory outside", repo, `mkdir -p .git/worktrees/w; echo "$(cd ../out; pwd)/.git" >.git/worktrees/w/gitdir; : >x; echo /x/.git >t; mv t .git/worktrees/w/gitdir`, `[ ! -e .git/worktrees/w/gitdir ]`},
		{"G1: an index with names that git would not add", repo, `mkdir -p XXXX/hooks; printf '#!/bin/sh\ntouch PWNED\n' >XXXX/hooks/post-checkout; chmod +x XXXX/hooks/post-checkout; git add XXXX; sed 's,XXXX/,.git/,g' .git/index | head -c -20 >i; sha1sum <i | cut -c1-40 | sed 's/../\\x&/g' >h; printf "$(cat h)" >>i; rm -r XXXX
			cp i .git/index; cat i >.git/index; mv i .git/index; cp i j; set -C; cat j >.git/index.lock; mv .git/index.lock .git/index`, `git checkout .; git checkout -q HEAD; [ ! -e .git/hooks/post-checkout ]`},
		{"G1: an index of SHA-256 that becomes one of SHA-1, and the other way", `git init -q --object-format=sha256 s; cd s; echo a >a; git add a; git commit -qm one; cd ..; ` + repo, `cp .git/config sha1; cp s/.git/config sha256
			cp sha256 c; mv c .git/config; git config extensions.objectformat sha256; git config -f .git/config core.repositoryformatversion 1; git config extensions.objectformat sha256; cp .git/index i1; cd s; cp ../sha1 c; mv c .git/config; git config --unset extensions.objectformat
			mv .git/config c; cp ../i1 i; mv i .git/index && : >moved; mkdir ../.git/worktrees; cd ..; rm .git/index; cp sha256 c; mv c .git/config`, `! grep sha256 .git/config && grep -q sha256 s/.git/config && [ ! -e s/moved ]`},
		{"G1: an index of SHA-256 with names that git would not add", `git init -q --object-format=sha256 s; cd s; git commit -qm one --allow-empty`, `cd s; mkdir -p XXXX/hooks; printf '#!/bin/sh\ntouch PWNED\n' >XXXX/hooks/post-checkout; chmod +x XXXX/hooks/post-checkout; git add XXXX; sed 's,XXXX/,.git/,g' .git/index | head -c -32 >i; sha256sum <i | cut -c1-64 | sed 's/../\\x&/g' >h; printf "$(cat h)" >>i; rm -r XXXX
			set -C; cat i >.git/index.lock; mv .git/index.lock .git/index; mv i .git/index; rm .git/config; [ -e .git/index ] && : >kept`, `cd s; git checkout .; [ ! -e .git/hooks/post-checkout ] && [ ! -e kept ]`},
		{"G1: the index while it stays open", repo, `set -C; exec 5>.git/index.lock; cat .git/index >&5; mv .git/index.lock .git/index; ln .git/index i2; cp a x; exec 6>>x; mv x .git/index && : >moved`, `[ -e .git/index.lock ] && [ ! -e moved ]`},
		{"G1: the index by a descriptor whose name is gone", repo, `mkdir -p XXXX/hooks; printf '#!/bin/sh\ntouch PWNED\n' >XXXX/hooks/post-checkout; chmod +x XXXX/hooks/post-checkout; git add XXXX; sed 's,XXXX/,.git/,g' .git/index | head -c -20 >i; sha1sum <i | cut -c1-40 | sed 's/../\\x&/g' >h; printf "$(cat h)" >>i
			cp .git/index x; ln x y; python3 -c 'import os; fd = os.open("x", os.O_PATH); os.remove("x"); os.rename("y", ".git/index"); open("/proc/self/fd/%d" % fd, "r+b").write(open("i", "rb").read())'; rm -r XXXX`, `git checkout .; git checkout -q HEAD; [ ! -e .git/hooks/post-checkout ]`},
		{"the index's lock of the user's git", repo + `echo mine >.git/index.lock`, `echo evil >>.git/index.lock; cp a e; mv e .git/index.lock; rm -f .git/index.lock`, `grep -qx mine .git/index.lock`},
		{"G4: MERGE_RR names a secret", repo + `echo secret >../out/id`, `h=0123456789012345678901234567890123456789; mkdir -p .git/rr-cache/$h; echo x >.git/rr-cache/$h/preimage; printf "$h\t../out/id\0" >m; cp m .git/MERGE_RR; set -C; cat m >.git/MERGE_RR.lock; mv .git/MERGE_RR.lock .git/MERGE_RR; mv m .git/MERGE_RR; ln m .git/MERGE_RR`,
			`git commit -qm two --allow-empty; git rerere; ! grep -r secret .git`},
		{"G4: a true MERGE_RR, and the file becomes a link", repo + `mkdir .git/rr-cache; git checkout -q -b b; echo b >a; git commit -qam two; git checkout -q master; echo c >a; git commit -qam three; echo secret >../out/id`,
			`git merge -q b; git rerere; rm a; ln -s ../out/id a`, `git rerere; ! grep -r secret .git`},
		{"MERGE_RR.lock of the user's git", repo + `echo mine >.git/MERGE_RR.lock`, `echo evil >>.git/MERGE_RR.lock; cp a e; mv e .git/MERGE_RR.lock; rm -f .git/MERGE_RR.lock; ln .git/MERGE_RR.lock k && echo evil >>k`, `grep -qx mine .git/MERGE_RR.lock`},
		{"other object stores", repo, `echo "$PWD/evil" >.git/objects/info/alternates; mkdir -p .git/refs/i; echo x >.git/refs/i/alternates; rmdir .git/objects/info; mv .git/refs/i .git/objects/info`, `[ ! -e .git/objects/info/alternates ]`},
		{"a directory from outside becomes part of a repository", repo, `mkdir -p e/x; echo i >e/post-commit; mv e .git/hooks; mkdir m; mkdir m/hooks; echo i >m/hooks/x; mv m .git/modules; mkdir -p .git/modules; mv m .git/modules/m`, `[ ! -e .git/hooks/post-commit ] && [ ! -e .git/modules/m/hooks ] && [ ! -e .git/modules/hooks ]`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.attack}, Env: []string{roleEnv + "=act"}})
				end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.outside}})
				wants := strings.Contains(c.outside, "[ ! ") || strings.Contains(c.outside, "grep")
				if code != 0 && wants {
					t.Errorf("outside: exit %d\n%s\ninside:\n%s", code, end, out)
				}
				filepath.WalkDir(filepath.Dir(dir), func(p string, d os.DirEntry, err error) error {
					if err == nil && d.Name() == "PWNED" {
						t.Errorf("%s: a program of the tool's ran outside\n%s\ninside:\n%s", p, end, out)
					}
					return nil
				})
			})
		}
	}
}

// TestKernelGitWorks is the honest side: git as its users work, where the attacks above are refused.
func TestKernelGitWorks(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q r; cd r; echo a >a; git add a; git commit -qm one; `
	cases := []struct{ name, script string }{
		{"a bare repository is made, pushed to, fetched from and removed", `git init -q --bare b.git; ` + repo + `git remote add origin ../b.git; git push -q origin master; git remote add abs "$(cd ..; pwd)/b.git"; git fetch -q abs; cd ..; git clone -q b.git c; git -C c log --oneline | grep -q one; rm -rf b.git c r; [ -z "$(ls -A)" ]`},
		{"a bare layout with worktrees", repo + `cd ..; git clone -q --bare r .bare; echo 'gitdir: ./.bare' >.git; : >x; git worktree add -q trunk; cd trunk; echo b >b; git add b; git commit -qm two; git checkout -q -b feature/x; git worktree list | grep -q trunk; cd ..; git worktree remove trunk; git branch -m feature/x y`},
		{"a mirror", repo + `cd ..; git clone -q --bare r m.git; git -C m.git log --oneline | grep -q one; git -C m.git gc -q; git -C m.git config receive.denyNonFastforwards true`},
		{"a separate git directory", `git init -q --separate-git-dir=store w; cd w; echo a >a; git add a; git commit -qm one; git config user.name x; cd ..; git clone -q --separate-git-dir="$PWD/s2" w v; git -C v log --oneline | grep -q one; [ "$(git -C v rev-parse --git-dir)" = "$PWD/s2" ]`},
		{"a shared repository", `git init -q --shared s; git init -q --bare --shared s.git; [ "$(git -C s.git config core.sharedrepository)" = 1 ]`},
		{"a template's samples", `mkdir -p ../out/t/hooks ../out/t/info; echo '#' >../out/t/hooks/pre-commit.sample; chmod +x ../out/t/hooks/pre-commit.sample; echo x >../out/t/info/exclude; git init -q --template="$(cd ../out/t; pwd)" s; [ -e s/.git/hooks/pre-commit.sample ]; git init -q --bare --template="$(cd ../out/t; pwd)" s.git; [ -e s.git/hooks/pre-commit.sample ]; rm -rf s s.git; [ ! -e s ]`},
		{"an interactive rebase", repo + `for i in 1 2 3; do echo $i >$i; git add $i; git commit -qm $i; done; GIT_SEQUENCE_EDITOR='sed -i -e 1s/pick/reword/ -e 2s/pick/fixup/' GIT_EDITOR='sed -i 1s/^/new/' git rebase -q -i HEAD~3; git log --oneline | wc -l | grep -qx 3; git log | grep -q new1`},
		{"a rebase with conflicts", repo + `git checkout -q -b b; echo b >a; git commit -qam two; git checkout -q master; echo c >a; git commit -qam three; git checkout -q b; ! git rebase -q master 2>/dev/null; echo d >a; git add a; GIT_EDITOR=true git rebase --continue >/dev/null; git log --oneline | wc -l | grep -qx 3
			! git rebase -q --apply HEAD~2 --onto HEAD~1 2>/dev/null || true; git rebase --abort 2>/dev/null || true; git format-patch -q -1; git reset -q --hard HEAD~1; git am -q 0001*; git log --oneline | wc -l | grep -qx 3`},
		{"a rebase with exec lines is refused", repo + `git commit -qm two --allow-empty; ! git rebase -q -x 'touch PWNED' HEAD~1 2>/dev/null; [ ! -e PWNED ]`},
		{"cherry-pick, revert, bisect, stash, notes, tags", repo + `for i in 1 2 3 4; do echo $i >$i; git add $i; git commit -qm $i; done; git checkout -q -b b HEAD~2; git cherry-pick master~1..master >/dev/null; git revert --no-edit HEAD >/dev/null; git bisect start HEAD HEAD~2 >/dev/null 2>&1; git bisect good >/dev/null 2>&1 || true; git bisect reset >/dev/null 2>&1; echo x >>a; git stash -q; git stash pop -q; git commit -qam x; git notes add -m n; git tag -a -m t v1; git gc -q; git fsck`},
		{"a merge with rerere", repo + `git checkout -q -b b; echo b >a; git commit -qam two; git checkout -q master; echo c >a; git commit -qam three; ! git merge -q b >/dev/null 2>&1; echo d >a; git add a; git commit -qm m; git log --oneline | wc -l | grep -qx 4`},
		{"a merge with resolutions on record", repo + `mkdir .git/rr-cache; git checkout -q -b b; echo b >a; git commit -qam two; git checkout -q master; echo c >a; git commit -qam three; ! git merge -q b >o 2>&1; ! grep -qi fatal o; git rerere; git status >/dev/null; echo d >a; git add a; git rerere; git commit -qm m; git log --oneline | wc -l | grep -qx 4; git reset -q --hard HEAD~1; ! git merge -q b >/dev/null 2>&1; git merge --abort; git rerere clear; git fsck`},
		{"branches named as what is closed", repo + `git branch hooks/config; git branch commondir; git branch x/HEAD; git checkout -q hooks/config; git branch -m remotes/y; git branch -d commondir; git log --oneline`},
		{"a submodule's branches named as what is closed", repo + `cd ..; git init -q s; cd s; { mkdir -p .git/modules; git -c protocol.file.allow=always clone -q --separate-git-dir="$PWD/.git/modules/m" ../r m; }; cd m; git branch hooks/x; git branch config; git log -1 --oneline`},
		{"a repository moves", repo + `cd ..; mv r r2; git -C r2 log --oneline | grep -q one; git clone -q --bare r2 a.git; mv a.git b.git; git -C b.git log --oneline | grep -q one`},
		{"absorbgitdirs", repo + `git init -q sub; git -C sub commit -qm s --allow-empty; git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; git config -f .gitmodules x.y z 2>/dev/null || true; mkdir -p .git/modules; mv sub/.git .git/modules/sub; [ -e .git/modules/sub/HEAD ]`},
		{"an index of each version, split and sparse", repo + `mkdir -p d/e; for i in 1 2 3; do echo $i >d/e/file$i; echo $i >d/.gitignore$i; done; echo x >.gitignore; git add .; git commit -qm two; for v in 2 3 4; do git update-index --index-version $v; git add -N . ; git rm -q --cached d/e/file1; git add d/e/file1; done; git update-index --split-index; echo y >y; git add y; git commit -qm y; git update-index --no-split-index; git commit -qm p -o --allow-empty a; echo z >>a; git stash -q; git stash pop -q; git commit -qam z; git status --porcelain | wc -l | grep -qx 0`},
		{"a repository of SHA-256", `git init -q --object-format=sha256 r; cd r; for i in 1 2 3; do echo $i >$i; git add .; git commit -qm $i; done; for v in 2 3 4; do git update-index --index-version $v; git add -N .; done; git update-index --split-index; echo y >y; git add y; git commit -qm y; git update-index --no-split-index; git commit -qm z --allow-empty; git config user.name x; git remote add o https://example.com/x
			git worktree add -q ../w; cd ../w; echo w >w; git add w; git commit -qm w; cd ../r; git worktree remove ../w; rm -rf .git/worktrees; git clone -q . ../c; cd ../c; echo c >c; git add c; git commit -qm c; git stash -q 2>/dev/null; git fsck; cd ..; rm -rf r c; [ -z "$(ls -A)" ]`},
		{"a lock is given back", repo + `set -C; : >.git/config.lock; ! git config user.name x 2>/dev/null; rm .git/config.lock; git config user.name x`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", c.script}, Env: []string{roleEnv + "=act"}})
				if code != 0 || strings.Contains(out, "supervisor test:") {
					t.Errorf("exit %d\n%s", code, out)
				}
			})
		}
	}
}
