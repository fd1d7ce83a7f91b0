package supervisor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"golang.org/x/sys/unix"
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
	{"a directory of the user's is made anew, with links to links", `tool: rm -r app; mkdir -p app/bin; ln -s /usr/bin/env app/bin/a; ln -s a app/bin/b; ln -s b app/bin/c; app/bin/c true`},
	{"a link of the user's is changed", "user: ln -s app current; mkdir app2\ntool: rm current; ln -s app2 current; ln -sfn app current; ln -s app t; mv -T t current"},
	{"names of the user's are read, and ordinary ones written, in the user's directories", "user: mkdir app/.vscode; echo x > app/.vscode/s\ntool: cat app/.vscode/s; put app/plain; mkdir -p app/.cargo"},
	{"a new tree is copied to where the user's directory was, as mv and shutil.move do on EXDEV", `tool: rm -r app; mkdir -p new/sub; put new/sub/f; no python3 -c 'import os; os.rename("new", "app")'; python3 -c 'import shutil; shutil.move("new", "app")'; test -e app/sub/f -a ! -e new`},
	{"a new tree is renamed to where the user's directory was that the user has removed", `user: rm -r app
tool: mkdir new; put new/f; python3 -c 'import os; os.rename("new", "app")'; put app/.envrc; mkdir new; rm -r app; python3 -c 'import os; os.rename("new", "app")'`},
	{"exchange of two directories of the tool's", `tool: mkdir -p a b; put a/.envrc; "$SELF" exchange a b; put a/.envrc`},
}

// madeHeld are attacks; each has to leave the user's directories without what the tool wants there.
var madeHeld = []madeCase{
	{"in directories that are there", "tool: no put .envrc; no put app/.envrc; no mkdir app/sub/.vscode; no put app/x.code-workspace; mkdir app/.cargo; no put app/.cargo/config.toml"},
	{"in the top of a root that the tool has made", "tool: mkdir -p nested/in; no put nested/.envrc; put nested/in/.envrc"},
	{"in what is a home outside", "tool: mkdir -p home/in; no put home/in/.envrc; mkdir new; put new/.envrc; mv new home/new; no put home/new/.vimrc; no mv home/new/.envrc home/in/.envrc"},
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
	{"a link to a link comes first, and then its tree", `tool: mkdir new; put new/.envrc; ln -s nowhere l; mv app x; ln -s l app; rm l; no ln -s new l; ln -s new m; no mv -T m l; mkdir nowhere; no put nowhere/.envrc; ln -s loop loop2; ln -s loop2 loop; mv x app || rm app; no ln -s loop app`},
	{"a link to a file comes first, and then its tree", `tool: mv app x; put later; ln -s later app; rm later; mkdir later; no put later/.envrc`},
	{"a link of the user's is led to a new tree", "user: ln -s app current\ntool: mkdir new; put new/.envrc; rm current; no ln -s new current; ln -s new t; no mv -T t current; mkdir current; no put current/.envrc"},
	{"another spelling of the user's directory, where case is folded", "tool: mv app x; mkdir APP; no put APP/.envrc"},
	{"another directory of the user's, born at the same time, with a new tree in it", `user: for i in $(seq 100); do rm -rf a b; mkdir -p a/pkg b; test "$(stat -c %w a)" != "$(stat -c %w b)" || break; done
tool: mkdir b/pkg; put b/pkg/.envrc; mv a x; no python3 -c 'import os; os.rename("b", "a")'; no test -e a/pkg/.envrc; mv x a`},
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
				rules.Roots = append(rules.Roots, Root{Path: dir + "/nested", Fold: true}, Root{Path: dir + "/home", Fold: true, Home: true})
				records := map[string]string{"tool": record(t, dir), "other": record(t, dir)}
				script(t, dir, uid, "mkdir -p app/sub")
				var steps [][2]string
				if os.Getenv("SUPERVISOR_WITHOUT_CALLS") != "" { // a socket takes pidfd_getfd(2)
					c.steps = strings.ReplaceAll(c.steps, `; "$SELF" bind .pdbrc`, "")
				}
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

// TestKernelMadeTreesOnAnOverlay: as in a container's image, where a directory of the user's gets another birth when it is first changed.
func TestKernelMadeTreesOnAnOverlay(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	for _, c := range append([]madeCase{{"a directory that is copied up", "tool: put app/f; put app/sub/f; chmod 700 app; no put app/.envrc; no put app/sub/.envrc; no mkdir app/.vscode"}}, append(madeWorks, madeHeld...)...) {
		text, single := strings.CutPrefix(c.steps, "tool: ")
		if !single || strings.Contains(text, "user: ") || strings.Contains(text, "tool: ") || strings.Contains(text, "other: ") {
			continue // another mount of the overlay is another device
		}
		text = strings.ReplaceAll(strings.ReplaceAll(text, "mv app x; mv x app;", ""), "mv app/sub app/other; mv app/other app/sub;", "") // EXDEV: a copy comes back
		t.Run(c.name, func(t *testing.T) {
			dir, rules := workspace(t, self)
			rules.Roots = append(rules.Roots, Root{Path: dir + "/nested", Fold: true}, Root{Path: dir + "/home", Fold: true, Home: true})
			layer := filepath.Dir(dir)
			script(t, layer, self, "mkdir -p lower/app/sub upper work")
			out, code := run(t, job{Rules: rules, Dir: dir, UID: self, Layer: layer, Made: record(t, dir), Argv: []string{"bash", "-ec", denied + text}, Env: []string{roleEnv + "=act"}})
			if code == noOverlay {
				t.Skip("needs an overlay: " + out)
			}
			if code != 0 {
				t.Fatalf("exit %d of %s\n%s", code, text, out)
			}
		})
	}
}

// TestKernelAFullRecord: nothing more is free, no directory comes to another name, and all else works: what is removed and made anew among it.
func TestKernelAFullRecord(t *testing.T) {
	dir, rules := workspace(t, self)
	made := record(t, dir)
	fill := func(count, kind uint32) {
		b := make([]byte, MadeBytes)
		table := (*madeTable)(unsafe.Pointer(&b[0]))
		table.made = count
		for i := range table.slot {
			table.slot[i].kind = kind
		}
		if err := os.WriteFile(made, b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name        string
		count, kind uint32
		script      string
	}{
		{"of directories", madeMost, slotNone, "mkdir -p new/in; no put new/.envrc; no put new/in/.envrc; mv app x; mkdir -p app/sub; no put app/sub/.envrc; rm -rf app x new; mkdir -p app/sub"},
		{"of anything", madeMost, slotName, `mkdir -p new/in; no put new/.envrc; put app/f; mv app/f app/g; rm app/g; ln -s app l; rm l; ln -s app l; mv app x; mkdir -p app/sub; no put app/.envrc; no put app/sub/.envrc; no put l/.envrc
			no python3 -c 'import os; os.rename("new", "n2")'; mv new n2; no put n2/in/.envrc; rm -rf app x n2`},
	} {
		script(t, dir, self, "mkdir -p app/sub")
		fill(c.count, c.kind)
		if out, code := run(t, job{Rules: rules, Dir: dir, UID: self, Made: made, Argv: []string{"bash", "-ec", denied + c.script}}); code != 0 {
			t.Errorf("%s: exit %d\n%s", c.name, code, out)
		}
	}
}

// TestTheRecordKeepsWhatFits: each entry is found again until it is forgotten, and none more than there is room for is made.
func TestTheRecordKeepsWhatFits(t *testing.T) {
	f, err := os.OpenFile(record(t, t.TempDir()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, int(MadeBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	s := new(State)
	ShareMade(s, uintptr(unsafe.Pointer(&b[0])), int(f.Fd()))
	table, kept := s.recorded(), 0
	for i := range uint64(madeMost + 1000) {
		if s.enterMade(slotMade, 7, i, i+1, 0) {
			kept++
		} else if i < madeMost*9/10 {
			t.Fatalf("entry %d does not fit", i)
		}
	}
	if kept != int(table.made) || kept > madeMost {
		t.Errorf("%d entries, and the record says %d", kept, table.made)
	}
	for i := range uint64(100) {
		if e := table.find(7, i, 0, false); e == nil || e.key != i+1 || table.find(8, i, 0, false) != nil || table.find(7, i, 0, true) != nil {
			t.Errorf("entry %d is %v", i, e)
		}
		s.forgetMade(7, i)
		if table.find(7, i, 0, false) != nil {
			t.Errorf("entry %d is there", i)
		}
	}
	if !s.enterMade(slotMade, 7, 5, 9, 0) || !s.enterMade(slotOld, 7, 5, 10, 0) || int(table.made) != kept-100 {
		t.Errorf("a number that is used anew: %d made", table.made)
	}
	if e := table.find(7, 5, 0, false); e == nil || e.kind != slotOld || e.key != 10 {
		t.Errorf("it is %v", e)
	}
	if nameHash([]byte("App\x00zz")) != nameHash([]byte("aPP/\x00zz")) || nameHash([]byte("app\x00zz")) == nameHash([]byte("apq\x00zz")) {
		t.Error("names that a file system folds are not the same, or others are")
	}
}

// TestALargeTreesNamesFit: 100,000 names that a tree of the user's had, in directories whose numbers are close to each other, as rm -rf enters them.
func TestALargeTreesNamesFit(t *testing.T) {
	f, err := os.OpenFile(record(t, t.TempDir()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, int(MadeBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	s := new(State)
	ShareMade(s, uintptr(unsafe.Pointer(&b[0])), int(f.Fd()))
	for i := range uint64(100000) {
		ino, name := 1e6+i/100*100, fmt.Sprintf("d%d\x00\x00\x00", i%100)
		if i >= 60000 {
			ino, name = 1e6+(i-60000)/100*100, fmt.Sprintf("l%d\x00\x00\x00", i%100)
		}
		if !s.enterMade(slotName, 7, ino, nameHash([]byte(name)), i) || s.recorded().full != 0 {
			t.Fatalf("name %d does not fit", i)
		}
	}
}

// TestKernelARaceForTheRecord: another program puts the user's directory in the place of that which the tool has just made.
func TestKernelARaceForTheRecord(t *testing.T) {
	kerneltest.Need(t, kerneltest.Command("python3"))
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			script(t, dir, uid, "mkdir app; echo x > app/mark")
			made := record(t, dir)
			scripts := [2]string{`
import os
won = 0
for i in range(3000):
    try: os.mkdir("n")
    except FileExistsError: pass
    try: os.close(os.open("n/.envrc", os.O_CREAT | os.O_WRONLY))
    except OSError: pass
    try: os.unlink("n/.envrc")
    except OSError: pass
    try: os.rmdir("n")
    except OSError: won += os.path.exists("n/mark")
print("met", won)
`, `
import os
for i in range(6000):
    for a, b in ("app", "n"), ("n", "app"):
        try:
            if os.path.exists(a + "/mark"): os.rename(a, b)
        except OSError: pass
`}
			var wait sync.WaitGroup
			for i := range scripts {
				wait.Go(func() {
					out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Silent: i == 1, Made: made, Argv: []string{"python3", "-c", scripts[i]}})
					if code != 0 {
						t.Errorf("exit %d\n%s", code, out)
					}
					t.Log(out)
				})
			}
			wait.Wait()
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Made: made, Argv: []string{"bash", "-ec", denied + `cd "$(dirname */mark)"; no put .envrc; no mkdir .vscode; test ! -e .envrc`}})
			if code != 0 {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}

// FuzzReadNames: whatever the memory holds, what is read of it is bounded.
func FuzzReadNames(f *testing.F) {
	f.Add(uint32(3), uint16(9), []byte("/ws/x"))
	f.Fuzz(func(t *testing.T, used uint32, size uint16, path []byte) {
		b := make([]byte, DenialBytes)
		binary.NativeEndian.PutUint32(b[NamesUsed:], used)
		table := (*denialTable)(unsafe.Pointer(&b[0]))
		table.names.size[0] = size
		copy(table.names.path[0][:], path)
		made, _ := ReadNames(b)
		if n := len(made.List); n > NameRoom || used > 0 && (n == 0 || !bytes.HasPrefix(table.names.path[0][:], []byte(made.List[0]))) {
			t.Errorf("%d names", n)
		}
	})
}

// TestOnlyWhatWasJustMadeIsRecorded: another program puts something else at the name between mkdir(2) and the look at it, or at an open file's path.
func TestOnlyWhatWasJustMadeIsRecorded(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(record(t, dir), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, int(MadeBytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(b)
	rules, err := (&Rules{Roots: []Root{{Path: dir, Fold: true}}, Names: []protected.Pattern{{Path: ".envrc"}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	s := new(State)
	Begin(s, rules, nil)
	proc, err := unix.Open("/proc", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	if r := Prepare(s, proc, -1); r < 0 {
		t.Fatal(r)
	}
	ShareMade(s, uintptr(unsafe.Pointer(&b[0])), int(f.Fd()))
	at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(at)
	recorded := func(name string, between func(path string) error) bool {
		sp := &s.resolved[0]
		sp.reset()
		sp.dir, sp.inside = at, true
		copy(sp.name[:], name+"\x00")
		s.beforeMade()
		if err := between(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if r := s.afterMade(); r != 0 {
			t.Fatal(r)
		}
		if s.statx(at, &sp.name[0]) != 0 {
			t.Fatal("it is not there")
		}
		return s.kindSeen() == slotMade
	}
	make := func(path string) error { return os.Mkdir(path, 0o755) }
	if !recorded("made", make) {
		t.Error("what was just made is not recorded")
	}
	if err := make(dir + "/users"); err != nil {
		t.Fatal(err)
	}
	var then, present unix.Timespec
	unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &then)
	for present.Nano() <= then.Nano() { // the clock of file systems
		unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &present)
	}
	if recorded("users", func(string) error { return nil }) {
		t.Error("an older directory is recorded")
	}
	if recorded("copied", func(path string) error {
		return errors.Join(make(path), os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	}) {
		t.Error("one that was written before it was born is recorded")
	}

	free := func(of, path string) bool {
		file, err := unix.Open(filepath.Join(dir, of), unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(file)
		s.m.n = uint(copy(s.m.path[:], filepath.Join(dir, path)))
		s.m.judge()
		sp := &s.resolved[0]
		sp.reset()
		sp.obj = file
		return s.m.byName&hitWhole != 0 && s.isFree(sp)
	}
	for _, d := range []string{"made", "users"} {
		if err := os.WriteFile(filepath.Join(dir, d, ".envrc"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !free("made/.envrc", "made/.envrc") || free("users/.envrc", "users/.envrc") || free("users/.envrc", "made/.envrc") {
		t.Error("an open file is judged by a path where another is")
	}
}

// TestWhatWasRenamedIsTakenBack also where another session has put a directory with something in it, or a file, at the old name.
func TestWhatWasRenamedIsTakenBack(t *testing.T) {
	for _, occupied := range []string{"", "mkdir new; touch new/f", "mkdir new", "touch new"} {
		dir := t.TempDir()
		script(t, dir, self, "mkdir app; touch app/.envrc;"+occupied)
		at, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(at)
		s := new(State)
		for i, name := range []string{"new", "app"} { // the rename in hand was that of new to app
			s.resolved[i].reset()
			s.resolved[i].dir = at
			copy(s.resolved[i].name[:], name+"\x00")
		}
		s.takeBack()
		moved, _ := filepath.Glob(dir + "/*/.envrc")
		if _, err := os.Lstat(dir + "/app"); err == nil || len(moved) != 1 {
			t.Errorf("%q: %v, at %q", occupied, err, moved)
		}
	}
}
