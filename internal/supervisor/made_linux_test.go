package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// record makes the file of a record, outside of the workspace.
func record(t testing.TB, dir string) string {
	t.Helper()
	f, err := os.CreateTemp(filepath.Dir(dir), "record")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(int64(MadeBytes)); err != nil {
		t.Fatal(err)
	}
	if err := f.Chmod(0o666); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// A madeCase is what tools and the user do, one after the other: each line of steps is a script, of one command that shares the record
// ("tool:"), of one of another sandbox ("other:") or of the user ("user:"), which bash runs with -e in a workspace that has the directories app and
// app/sub. A line without a name goes on with the one before.
type madeCase struct{ name, steps string }

const denied = `no() { if "$@" 2>/dev/null; then echo "NOT REFUSED: $*"; exit 9; fi; }; w() { mkdir -p "$(dirname "$1")"; echo evil > "$1"; }; put() { echo evil > "$1"; }
`

// madeWorks are what is free in trees that the tool has made.
var madeWorks = []madeCase{
	{"names of all kinds, in one command", `tool: mkdir -p new/sub
		w new/.vscode/tasks.json; w new/sub/.husky/_/h; put new/.envrc; w new/.cargo/config.toml; put new/rust-toolchain.toml; w new/CVS/Root; put new/x.code-workspace
		mv new/.envrc new/x; mv new/x new/.envrc; ln new/.envrc new/second; ln -s x new/.mcp.json; chmod 600 new/.envrc; mv new/.vscode new/v; mv new/v new/.vscode; echo more >> new/.vscode/tasks.json
		"$SELF" mknod new/.bashrc; "$SELF" creat new/.profile; "$SELF" truncate new/.profile; (cd new; "$SELF" tmpfile .zshrc; "$SELF" bind .pdbrc); rm -rf new; test ! -e new`},
	{"names in the next command's", "tool: mkdir -p new/a\ntool: w new/a/.vscode/tasks.json\ntool: rm -r new/a/.vscode; put new/.envrc\nuser: test -s new/.envrc"},
	{"a tree that was renamed", "tool: mkdir -p new/a; mv new app/moved; w app/moved/a/.vscode/x; mv app/moved there; put there/.envrc; mv there app/sub/"},
	{"a tree at the name of one of the tool's that is gone", "tool: mkdir -p new/a; rm -r new; mkdir -p new/a; put new/a/.envrc; mv new old; mkdir new; put new/.envrc"},
	{"a directory of the user's is renamed and comes back", "tool: mv app x; mv x app; mv app/sub app/other; mv app/other app/sub; no put app/.envrc"},
	{"a directory of the user's is removed and made anew, with links", `tool: rm -r app; mkdir -p app/sub app/bin; ln -s ../sub/f app/bin/f; ln -s sub app/l; ln -s /usr/bin/env app/env; put app/f; mv app/l app/m; rm -r app`},
	{"a link of the user's is changed", "user: ln -s app current; mkdir app2\ntool: rm current; ln -s app2 current; ln -sfn app current; ln -s app t; mv -T t current"},
	{"names of the user's are read, and ordinary ones written, in the user's directories", "user: mkdir app/.vscode; echo x > app/.vscode/s\ntool: cat app/.vscode/s; put app/plain; mkdir -p app/.cargo"},
	{"exchange of two directories of the tool's", `tool: mkdir -p a b; put a/.envrc; "$SELF" exchange a b; put a/.envrc`},
}

// madeHeld are attacks; each has to leave the user's directories without what the tool wants there.
var madeHeld = []madeCase{
	{"in directories that are there", "tool: no put .envrc; no put app/.envrc; no mkdir app/sub/.vscode; no put app/x.code-workspace; mkdir app/.cargo; no put app/.cargo/config.toml"},
	{"in the top of a root that the tool has made", "tool: mkdir -p nested/in; no put nested/.envrc; put nested/in/.envrc"},
	{"of git and of the supervisor, in a new tree", "tool: mkdir new; mkdir -p new/.git; no w new/.git/hooks/pre-commit; no put new/.holdfast-x"},
	{"a file or directory with a name comes out of a new tree", `tool: mkdir new; w new/.vscode/x; put new/.envrc; no mv -T new/.vscode app/.vscode; no mv new/.envrc app/.envrc; no ln new/.envrc app/.envrc; no cp -r new/.vscode app/
		mkdir new/.cargo; put new/.cargo/config.toml; no mv -T new/.cargo app/.cargo; mkdir new/c; put new/c/config.toml; no mv -T new/c app/.cargo; no "$SELF" exchange new/c app/.cargo`},
	{"a name of the user's goes into a new tree", "user: echo good > app/.envrc; mkdir app/.vscode\ntool: mkdir new; no mv app/.envrc new/x; no mv app/.envrc new/.envrc; no ln app/.envrc new/x; no mv app/.vscode new/v; no mv app/.vscode new/.vscode"},
	{"a directory of the user's goes into a new tree and back", `user: mkdir app/sub/.vscode; echo good > app/sub/.vscode/x
tool: mkdir new; mv app/sub new/sub; no put new/sub/.envrc; no put new/sub/.vscode/x; no mv new/sub/.vscode new/v; no rm -rf new/sub/.vscode; mv new/sub app/sub; no put app/sub/.envrc; no put app/sub/.vscode/y
user: grep -q good app/sub/.vscode/x`},
	{"a directory that the user makes in a new tree", "tool: mkdir -p new\nuser: mkdir -p new/users/deep new/.vscode; echo good > new/.vscode/x\ntool: no put new/users/.envrc; no put new/users/deep/.envrc; no put new/.vscode/x; no put new/.vscode/y; no mv new/.vscode new/v; no rm -rf new/.vscode; mv new/users u; no put u/.envrc"},
	{"a directory that the user puts in the place of the tool's", "tool: mkdir new\nuser: rm -r new; mkdir new\ntool: no put new/.envrc"},
	{"a directory that the user moves into the place of the tool's", "tool: mkdir new\nuser: rmdir new; mv app new\ntool: no put new/.envrc; no put new/sub/.envrc"},
	{"a number that the user's directory has from the tool's", `tool: for i in $(seq 200); do mkdir d$i; done
user: for i in $(seq 200); do rmdir d$i; mkdir u$i; done
tool: for i in $(seq 200); do no put u$i/.envrc; done`},
	{"a number that the user's directory has from one that the tool removed", "tool: for i in $(seq 50); do mkdir d$i; rmdir d$i; done\nuser: for i in $(seq 50); do mkdir u$i; done\ntool: for i in $(seq 50); do no put u$i/.envrc; done"},
	{"a new tree comes to the name of the user's directory", `tool: mkdir -p new/sub; put new/.envrc; put new/sub/.envrc; mv app x; no "$SELF" exchange new x; no python3 -c 'import os; os.rename("new", "app")'; no test -e app/.envrc
tool: mkdir app; no put app/.envrc; mkdir app/sub; no put app/sub/.envrc; mkdir -p app/q/r; no put app/q/r/.envrc; no python3 -c 'import os; os.rename("new/sub", "app/s")'; mv x y; no put y/.envrc`},
	{"a new tree is exchanged with the user's directory", `tool: mkdir new; put new/.envrc; no "$SELF" exchange new app; no "$SELF" exchange app new; no test -e app/.envrc`},
	{"a new tree comes to the name of a directory that was removed", `tool: rm -r app; mkdir -p new/sub; put new/.envrc; no python3 -c 'import os; os.rename("new", "app")'; mkdir -p app/sub; no put app/.envrc; no put app/sub/.envrc`},
	{"a new tree comes into one that replaces the user's", `tool: mv app x; mkdir app; mkdir new; put new/.envrc; no python3 -c 'import os; os.rename("new", "app/sub")'; no ln -s ../new app/sub; no ln -s "$PWD/new" app/sub; no ln -s x/../../new app/sub; ln -s ../new l; no mv l app/sub`},
	{"a link to a new tree comes to the name of the user's directory", `tool: mkdir -p new/d; put new/.envrc; mv app x; no ln -s new app; no ln -s "$PWD/new" app; no ln -s ./new/d app; ln -s new l; no mv -T l app; no ln l app; no ln -s l app; no ln -s /proc/self/cwd/new app`},
	{"a link comes first, and then its tree", `tool: mv app x; ln -s later app; mkdir later; no put later/.envrc; no put app/.envrc; mkdir new; put new/.envrc; rmdir later; no python3 -c 'import os; os.rename("new", "later")'`},
	{"a link to a file comes first, and then its tree", `tool: mv app x; put later; ln -s later app; rm later; mkdir later; no put later/.envrc`},
	{"a link of the user's is led to a new tree", "user: ln -s app current\ntool: mkdir new; put new/.envrc; rm current; no ln -s new current; ln -s new t; no mv -T t current; mkdir current; no put current/.envrc"},
	{"another spelling of the user's directory, where case is folded", "tool: mv app x; mkdir APP; no put APP/.envrc"},
	{"by another sandbox's record", "tool: mkdir new; put new/.envrc\nother: no put new/.vimrc; no rm new/.envrc; mkdir new/o; put new/o/.envrc; mv app x\ntool: no put new/o/.vimrc"},
	{"by links, descriptors and /proc", `tool: mkdir new; ln -s ../app new/l; no put new/l/.envrc; no put new/../app/.envrc; no put /proc/self/cwd/app/.envrc; exec 5<app; no put /proc/self/fd/5/.envrc; ln -s ../app/.envrc new/.envrc; no put new/.envrc; (cd app; exec 6<.; mv ../app ../new/in; no put .envrc; no put /proc/self/fd/6/.vimrc)`},
	{"an open file of the user's", "user: echo good > app/.envrc\ntool: exec 5<app/.envrc; mkdir new; no put /proc/self/fd/5; no ln -L /proc/self/fd/5 new/.envrc; grep -q good app/.envrc"},
}

func TestKernelMadeTreesAreFree(t *testing.T)            { eachMade(t, madeWorks) }
func TestKernelWhatTheToolDidNotMakeIsHeld(t *testing.T) { eachMade(t, madeHeld) }

func eachMade(t *testing.T, cases []madeCase) {
	for user, uid := range users(t) {
		for _, c := range cases {
			t.Run(user+"/"+c.name, func(t *testing.T) {
				dir, rules := workspace(t, uid)
				rules.Roots = append(rules.Roots, Root{Path: dir + "/nested", Fold: true})
				records := map[string]string{"tool": record(t, dir), "other": record(t, dir)}
				script(t, dir, uid, "mkdir -p app/sub")
				var steps [][2]string
				for line := range strings.SplitSeq(c.steps, "\n") {
					if who, text, ok := strings.Cut(line, ": "); ok && (who == "tool" || who == "user" || who == "other") {
						steps = append(steps, [2]string{who, text})
					} else {
						steps[len(steps)-1][1] += "\n" + line
					}
				}
				for _, s := range steps {
					out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Silent: s[0] == "user", Made: records[s[0]],
						Argv: []string{"bash", "-ec", denied + s[1]}, Env: []string{roleEnv + "=act"}})
					if code != 0 || strings.Contains(out, "supervisor test:") {
						t.Fatalf("exit %d of %s\n%s", code, s, out)
					}
				}
			})
		}
	}
}
