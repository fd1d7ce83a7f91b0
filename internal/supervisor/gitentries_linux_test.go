package supervisor

import (
	"crypto/sha1"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
)

// userTree is a repository of the user's with protected files of each kind: tracked, changed and not tracked, a program and a link.
const userTree = `mkdir -p .vscode .husky sub tools/claude; echo mine >.vscode/settings.json; echo old >.husky/pre-commit; chmod +x .husky/pre-commit; echo a >a; echo s >sub/s; echo t >tools/claude/t
	git add .; git commit -qm one; git branch other; echo new >.husky/pre-commit; echo mine >.envrc; ln -s tools/claude .claude; `

// TestKernelAnIndexBringsNoProtectedName has a tool write indexes with protected names. Afterwards the user throws the tool's changes away.
func TestKernelAnIndexBringsNoProtectedName(t *testing.T) {
	kerneltest.Long(t)
	const repo = `git init -q .; ` + userTree
	const blob = `e=$(echo EVIL | git hash-object -w --stdin); `
	const discard = `git checkout -q .; git checkout-index -qaf; `
	cases := []struct{ name, prepare, attack, outside string }{
		{"new names", repo, blob + `for n in .husky/post-checkout .envrc .vscode/tasks.json sub/.envrc .VSCODE/tasks.json lefthook.yml .claude/settings.json a/.mcp.json; do git update-index --add --cacheinfo 100755,$e,$n; done`, discard},
		{"another content at a name that is there", repo, blob + `git update-index --cacheinfo 100644,$e,.vscode/settings.json; git update-index --cacheinfo 100755,$e,.husky/pre-commit`, discard},
		{"the index is removed before", repo, blob + `rm -f .git/index; git update-index --add --cacheinfo 100644,$e,.envrc; git read-tree HEAD; git update-index --add --cacheinfo 100644,$e,.envrc`, discard},
		{"an index that is made elsewhere", repo, blob + `export GIT_INDEX_FILE=$PWD/i; cp .git/index i; git update-index --add --cacheinfo 100644,$e,.envrc; cp i j; mv i .git/index; set -C; cat j >.git/index.lock; mv .git/index.lock .git/index`, discard},
		{"names that are compressed", repo, blob + `git update-index --index-version 4; git update-index --add --cacheinfo 100644,$e,.envrc`, discard},
		{"stages of a conflict", repo, blob + `printf "100644 $e 2\t.envrc\n100644 $e 3\t.envrc\n" | git update-index --index-info`, `git checkout -q --ours .`},
		{"a conflict that was solved", repo, blob + `export GIT_INDEX_FILE=$PWD/i; cp .git/index i; printf "100644 $e 1\t.envrc\n100644 $e 2\t.envrc\n100644 $e 3\t.envrc\n" | git update-index --index-info; git update-index --force-remove .envrc; git ls-files --resolve-undo | grep -q envrc || echo supervisor test: no record; mv i .git/index`,
			`git checkout -q -m .envrc; `},
		{"a shared index", repo, blob + `export GIT_INDEX_FILE=$PWD/.git/index.x; cp .git/index .git/index.x; git update-index --add --cacheinfo 100644,$e,.envrc; git update-index --split-index; mv .git/index.x .git/index; unset GIT_INDEX_FILE; git update-index --split-index; git update-index --add --cacheinfo 100644,$e,.envrc`, discard},
		{"a replaced entry of the user's shared index", repo + `git update-index --split-index; `, blob + `git update-index --cacheinfo 100644,$e,.vscode/settings.json; git update-index --no-split-index; git update-index --cacheinfo 100644,$e,.vscode/settings.json`, discard},
		{"a shared index in the place of one without such names", `git init -q .; echo a >a; git add a; git commit -qm one; mkdir .vscode; echo mine >.vscode/settings.json; `, blob + `git update-index --split-index; git update-index --cacheinfo 100644,$e,a; s=$(echo .git/sharedindex.*)
			export GIT_INDEX_FILE=$PWD/i; rm -f i; git update-index --add .vscode/settings.json; head -c -20 i >j; printf "$(echo ${s#*.*.} | sed 's/../\\x&/g')" >>j; cp j i; mv i $s; rm -f $s; mv j $s`, discard},
		{"SHA-256", `git init -q --object-format=sha256 .; ` + userTree, blob + `git update-index --add --cacheinfo 100644,$e,.envrc; git update-index --cacheinfo 100644,$e,.vscode/settings.json`, discard},
		{"a link above a protected name", repo, `e=$(printf EVIL | git hash-object -w --stdin); git update-index --add --cacheinfo 120000,$e,.cargo; git update-index --add --cacheinfo 120000,$e,.vim; git update-index --cacheinfo 120000,$e,.vscode`, discard + `[ ! -L .cargo ] && [ ! -L .vim ]`},
		{"a submodule at a protected name", repo, `git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.zed; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),.cargo`, discard + `[ ! -e .zed ] && [ ! -e .cargo ]`},
		{"another branch's files", repo + `git stash -q; git checkout -q other; echo EVIL >.vscode/settings.json; git commit -qam evil; git checkout -q -; git stash pop -q; `, `git checkout other; git read-tree other; git reset -q other; git checkout other -- .; git merge other; git rebase other; git stash; git stash pop`, discard},
		{"a linked work tree of the user's", repo + `git worktree add -q wt other; `, blob + `cd wt; git update-index --add --cacheinfo 100644,$e,.envrc; git update-index --cacheinfo 100644,$e,.vscode/settings.json`, `cd wt; ` + discard},
		{"a submodule of the user's", `git init -q s; cd s; ` + userTree + `cd ..; git init -q .; git -c protocol.file.allow=always submodule -q add ./s m; git commit -qm m; `, blob + `cd m; e=$(echo EVIL | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$e,.envrc; git update-index --cacheinfo 100644,$e,.vscode/settings.json`, `cd m; ` + discard},
		{"a program that a filter runs", repo + `mkdir scripts; echo mine >scripts/clean; git add scripts; git commit -qm s; `, blob + `git update-index --cacheinfo 100755,$e,scripts/clean; rm .git/index; git update-index --add --cacheinfo 100755,$e,scripts/clean`, discard},
		{"a hidden name", repo + `echo mine >.env; git add -f .env; git commit -qm e; `, blob + `git update-index --cacheinfo 100644,$e,.env; rm .git/index; git update-index --add --cacheinfo 100644,$(echo mine | git hash-object -w --stdin),.env && touch oracle`, discard + `[ ! -e oracle ]`},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				rules.Paths = []protected.Pattern{{Path: dir + "/scripts/clean"}}
				rules.Hidden = []string{".env"}
				script(t, dir, uid, c.prepare)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.attack}, Env: []string{roleEnv + "=act"}})
				if strings.Contains(out, "supervisor test:") {
					t.Fatalf("the attack was not made:\n%s", out)
				}
				end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.outside}})
				if code != 0 && strings.Contains(c.outside, "[ ! ") {
					t.Errorf("outside: exit %d\n%s\ninside:\n%s", code, end, out)
				}
				filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
					if b, _ := os.ReadFile(p); err == nil && d.Type().IsRegular() && strings.Contains(string(b), "EVIL") && !strings.Contains(p, "/.git/") {
						if name := strings.TrimPrefix(p, dir+"/"); name != "a" {
							t.Errorf("%s was brought\ninside:\n%s", name, out)
						}
					}
					return nil
				})
			})
		}
	}
}

// TestKernelAnIndexTakesTheUsersOwnFiles is the honest side: git add of what the user has at protected names, and all that follows.
func TestKernelAnIndexTakesTheUsersOwnFiles(t *testing.T) {
	kerneltest.Long(t)
	const clean = `git status --porcelain | wc -l | grep -qx 0; `
	cases := []struct{ name, prepare, script string }{
		{"add of all that the user has changed, and commits", `git init -q .; ` + userTree, `git add -A; git commit -qm two; git show HEAD:.envrc | grep -qx mine; git show HEAD:.husky/pre-commit | grep -qx new; git ls-tree HEAD .claude | grep -q ^120000; ` + clean + `echo b >>a; git commit -qam three; git commit -q --amend -m four; echo b >b; git add b; git commit -qm five -o b; ` + clean},
		{"one file by its name, and its removal from the index", `git init -q .; ` + userTree, `git add .envrc; git commit -qm e; git rm -q --cached .envrc; git commit -qm r; git ls-files | grep -q envrc && exit 1; git add .vscode; git reset -q; ` + `git status --porcelain | grep -q envrc`},
		{"branches with the same files", `git init -q .; ` + userTree + `git add -A; git commit -qm u; `, `git checkout -q -b x; echo x >x; git add x; git commit -qm x; git checkout -q -; echo y >y; git add y; git commit -qm y; git rebase -q x; echo z >>a; git stash -q; git stash pop -q; git commit -qam z; git checkout -q -b w x; git merge -q --no-edit -; git reset -q --hard HEAD~1; ` + clean},
		{"an index that is made anew", `git init -q .; ` + userTree + `git add -A; git commit -qm u; `, `rm .git/index; git reset -q; ` + clean + `git update-index --index-version 4; git add -A; echo b >b; git add b; git commit -qm b; ` + clean},
		{"SHA-256", `git init -q --object-format=sha256 .; ` + userTree, `git add -A; git commit -qm two; ` + clean + `rm .git/index; git reset -q; ` + clean},
		{"a linked work tree", `git init -q .; ` + userTree + `git worktree add -q wt other; cd wt; echo new >.vscode/settings.json; echo w >.envrc; `, `cd wt; git add -A; git commit -qm two; ` + clean + `git show HEAD:.envrc | grep -qx w`},
		{"a submodule", `git init -q s; cd s; ` + userTree + `cd ..; git init -q .; git -c protocol.file.allow=always submodule -q add ./s m; git commit -qm m; echo new >m/.vscode/settings.json; `, `cd m; git add -A; git commit -qm two; ` + clean},
		{"a split index of the user's", `git init -q .; ` + userTree + `git update-index --split-index; `, `git update-index --no-split-index; git add -A; git commit -qm two; ` + clean},
		{"a split index without such names", `git init -q .; for i in 1 2 3 4 5 6; do echo $i >$i; done; git add .; git commit -qm one; `, `git update-index --split-index; echo x >>1; git add 1; git commit -qm two; echo y >y; git add y; git commit -qm y; ` + clean},
		{".gitmodules", `git init -q s; git -C s commit -qm s --allow-empty; git init -q .; `, `git config -f .gitmodules submodule.s.path s; git config -f .gitmodules submodule.s.url https://example.com/s; git add .gitmodules; git commit -qm m; git rm -q --cached .gitmodules; git add .gitmodules`},
		{"a commit that is undone", `git init -q .; ` + userTree + `git add -A; git commit -qm u; `, `echo b >>a; git commit -qam b; git reset -q HEAD~1; git reset -q --soft HEAD; git commit -qam c; git revert --no-edit HEAD >/dev/null; git cherry-pick HEAD~1 >/dev/null; ` + clean},
	}
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+user, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, c.prepare)
				for _, noLease := range []bool{false, true} {
					if noLease {
						script(t, dir, uid, `find . -mindepth 1 -delete; `+c.prepare)
					}
					out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, NoLease: noLease, Argv: []string{"bash", "-exc", c.script}, Env: []string{roleEnv + "=act"}})
					if code != 0 || strings.Contains(out, "supervisor test:") {
						t.Errorf("exit %d\n%s", code, out)
					}
				}
			})
		}
	}
}

func TestABlobsNameIsThatOfGit(t *testing.T) {
	for _, n := range []int{0, 1, 8, 9, 45, 46, 47, 48, 54, 55, 56, 63, 64, 65, 119, 120, 1000, 70000} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7)
		}
		whole := append(fmt.Appendf(nil, "blob %d\x00", n), b...)
		one, two := sha1.Sum(whole), sha256.Sum256(whole)
		for _, want := range [][]byte{one[:], two[:]} {
			var s blobSum
			var id [32]byte
			copy(id[:], want)
			s.begin(uint(len(want)), uint(n))
			for _, c := range b {
				s.add(c)
			}
			other := s
			if !s.end(&id) {
				t.Errorf("%d bytes, %d: another name", n, len(want))
			}
			if id[len(want)-1]++; other.end(&id) {
				t.Errorf("%d bytes, %d: a wrong name is taken", n, len(want))
			}
		}
	}
}

// TestAnIndexIsJudgedByItsEntries has what git 2.39 writes only with settings that are closed.
func TestAnIndexIsJudgedByItsEntries(t *testing.T) {
	rules := Rules{Roots: []Root{{Path: "/ws"}}, Names: protected.Patterns()}
	blob, err := rules.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sparse := func(name string) []byte {
		e := indexEntry(nil, len(name), name)
		copy(e[24:], []byte{0, 0, 0o40000 >> 8, 0o40000 & 0xff})
		return indexOf(1, e)
	}
	undo := func(name string) []byte {
		return indexOf(0, extension("REUC", append([]byte(name+"\x00100644\x000\x00100644\x00"), make([]byte, 40)...)))
	}
	a := indexEntry(nil, 1, "a")
	for _, c := range []struct {
		name       string
		index, was []byte
		harmless   bool
	}{
		{"an entry", indexOf(1, a), nil, true},
		{"a protected name", indexNaming(".envrc"), nil, false},
		{"a protected name that was there", indexNaming(".envrc", "a"), indexNaming(".envrc", "c"), true},
		{"a directory of a sparse index", sparse("sub/"), nil, false},
		{"one that was there", sparse("sub/"), sparse("sub/"), true},
		{"a solved conflict", undo("a"), nil, true},
		{"a solved conflict at a protected name", undo(".envrc"), nil, false},
		{"a solved conflict that ends early", indexOf(0, extension("REUC", []byte("a\x00100644\x00"))), nil, false},
		{"two shared indexes", indexOf(0, extension("link", make([]byte, 20)), extension("link", make([]byte, 20))), nil, false},
		{"a shared index that is not there, and a replaced entry", indexOf(1, indexEntry(nil, 0, ""), extension("link", make([]byte, 20))), nil, false},
	} {
		fds := [2]int{}
		for i, b := range [][]byte{c.index, c.was} {
			file := filepath.Join(t.TempDir(), "index")
			if err := os.WriteFile(file, b, 0o600); err != nil {
				t.Fatal(err)
			}
			f, err := os.Open(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			fds[i] = int(f.Fd())
		}
		s := new(State)
		s.m.rules = blob
		s.m.n = uint(copy(s.m.path[:], "/ws"))
		s.entries = indexEntries{held: true, tree: -1, dir: -1, prefix: s.m.n}
		s.was.start(fds[1])
		if s.was.header(20) {
			s.was.advance()
		}
		if got := s.harmlessIndex(fds[0], 20); got != c.harmless {
			t.Errorf("%s: harmless is %v", c.name, got)
		}
	}
}

// TestKernelAnIndexGoesByTheRecord: in a work tree of the tool's the index is free, and no such index comes to count in a directory of the user's.
func TestKernelAnIndexGoesByTheRecord(t *testing.T) {
	const blob = `e=$(echo EVIL | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$e,.envrc`
	const user = `git init -q .; git commit -qm one --allow-empty; mkdir sub; : >sub/f; `
	const check = `cd sub; git checkout -q .; git checkout-index -qaf; [ ! -e .envrc ]`
	cases := []struct{ name, prepare, tool, outside string }{
		{"a repository of the tool's", user, `git init -q t; cd t; ` + blob + ` && echo WORKS; cd ..; git worktree add -q w; cd w; ` + blob + ` && echo WORKS; git commit -qm two && echo WORKS`, `test -e w/.git`},
		{"a .git file beside it, afterwards", user, `git init -q t; cd t; ` + blob + ` && echo WORKS; cd ..; echo gitdir: ../t/.git >sub/.git; : >x; mv t/.git sub/.git; cp -r t/.git sub/; true`, check},
		{"a .git file beside it, first", user, `git init -q t; echo gitdir: ../t/.git >sub/.git; : >x; cd t; ` + blob, check},
		{"a .git file of a git directory that comes to be", user, `echo gitdir: ../store >sub/.git; : >x; git init -q --bare store; cd sub; ` + blob, check},
		{"a linked work tree's gitdir is bent", user + `git worktree add -q ../ws/wt; git -C wt checkout -q -b x; `, `git worktree add -q w; echo "$PWD/w/.git" >.git/worktrees/wt/gitdir; : >x; cd wt; ` + blob, `cd wt; git checkout -q .; [ ! -e .envrc ]`},
		{"a linked work tree of the tool's, and a .git file", user, `git worktree add -q w; cd w; ` + blob + `; cd ..; echo gitdir: ../.git/worktrees/w >sub/.git; : >x`, check},
		{"git init in a directory of the user's", user, `git init -q sub; cd sub; ` + blob + `; git update-index --split-index; ` + blob, check},
	}
	for as, uid := range users(t) {
		for _, c := range cases {
			t.Run(c.name+" "+as, func(t *testing.T) {
				t.Parallel()
				dir, rules := workspace(t, uid)
				script(t, dir, uid, c.prepare)
				file := record(t, dir)
				out, _ := run(t, job{Rules: rules, Dir: dir, UID: uid, Made: file, Argv: []string{"bash", "-c", c.tool}, Env: []string{roleEnv + "=act"}})
				if want := strings.Count(c.tool, "echo WORKS"); strings.Count(out, "WORKS") != want || strings.Contains(out, "supervisor test:") {
					t.Errorf("inside, want %d things that work:\n%s", want, out)
				}
				if end, code := run(t, job{Silent: true, Dir: dir, UID: uid, Argv: []string{"bash", "-c", c.outside}}); code != 0 {
					t.Errorf("outside: exit %d\n%s\ninside:\n%s", code, end, out)
				}
			})
		}
	}
}
