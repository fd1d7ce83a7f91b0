package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// withoutMounts runs a script in a workspace on a host without namespaces, whose names .env are hidden, and returns
// what it printed.
func withoutMounts(t *testing.T, script string) string {
	t.Helper()
	p := workspaceHere(t)
	p.May = []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}
	p.Files.HideNames = []string{".env"}
	p.Env.Set = map[string]string{"OUTSIDE": os.Getenv("HOME")}
	c := commandIn(t, p, script)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if strings.Contains(fmt.Sprint(c.Report()), "files outside can be changed") {
		t.Errorf("said to be lost:\n%s", c.Report())
	}
	return string(out)
}

// TestKernelNothingIsPlantedByWayOfTheOwnDirectory: without mounts HOME and TMPDIR are a directory of the host's, in
// which names are not looked at. To the tool it is another file system, as it is with mounts.
func TestKernelNothingIsPlantedByWayOfTheOwnDirectory(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	withoutNamespaces(t, 1, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.Command("git"), kerneltest.Command("python3"))
		ws := filepath.Join(os.Getenv("HOME"), "ws")
		if out, err := exec.Command("sh", "-c", `mkdir -p "$0/conf" && echo SECRET=42 >"$0/conf/.env" && git init -q "$0/lib" && mkdir -p "$0/lib/.git/hooks"`, ws).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out := withoutMounts(t, `exec 2>&1
			mkdir -p $TMPDIR/x/.git/hooks && echo evil >$TMPDIR/x/.git/hooks/pre-commit && echo evil >$TMPDIR/x/.envrc && mkdir $TMPDIR/x/.vscode && echo built
			python3 -c 'import os; os.rename(os.environ["TMPDIR"]+"/x", "vendor")' && echo RENAMED
			mv -T $TMPDIR/x vendor2; mv $TMPDIR/x/.envrc .; ln $TMPDIR/x/.envrc linked && echo LINKED; ln $TMPDIR/x/.envrc .envrc
			python3 -c 'import os; os.rename("lib", os.environ["TMPDIR"]+"/lib")' && echo TAKEN
			python3 -c 'import os; os.rename("conf", os.environ["TMPDIR"]+"/c")' && cat $TMPDIR/c/.env
			mv -T conf $TMPDIR/c; cat $TMPDIR/c/.env; cat conf/.env; ln conf/.env $TMPDIR/e; cat $TMPDIR/e
			git init -q $TMPDIR/r && git -C $TMPDIR/r config user.name n && git -C $TMPDIR/r config user.email e@f && echo a >$TMPDIR/r/a && git -C $TMPDIR/r add a && git -C $TMPDIR/r commit -qm one && echo committed
			git config --global alias.x status && echo configured
			mkdir -p $TMPDIR/p/q $TMPDIR/s && echo f >$TMPDIR/p/q/f && mv $TMPDIR/p/q $TMPDIR/s/ && echo moved
			echo built >$TMPDIR/out && mv $TMPDIR/out here && cat here && mv here $HOME/there && cat $HOME/there`)
		for _, bad := range []string{"RENAMED", "LINKED", "TAKEN", "SECRET=42"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s:\n%s", bad, out)
			}
		}
		for _, good := range []string{"built\n", "committed\n", "configured\n", "moved\n", "built\nbuilt\n"} {
			if !strings.Contains(out, good) {
				t.Errorf("no %q:\n%s", good, out)
			}
		}
		for _, p := range []string{"vendor/.envrc", "vendor2/.git/hooks/pre-commit", ".envrc", "linked"} {
			if b, err := os.ReadFile(filepath.Join(ws, p)); err == nil || os.IsPermission(err) {
				t.Errorf("%s is there: %s\n%s", p, b, out)
			}
		}
	})
}

// TestKernelModesOutsideStayAsTheyAre: without mounts the supervisor keeps them.
func TestKernelModesOutsideStayAsTheyAre(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	withoutNamespaces(t, 1, func(t *testing.T) {
		home := os.Getenv("HOME")
		file, dir := filepath.Join(home, "outside"), filepath.Join(home, "dir")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		past := time.Unix(1e9, 0)
		for _, p := range []string{file, dir} {
			if err := os.Chtimes(p, past, past); err != nil {
				t.Fatal(err)
			}
		}
		state := func() (s string) {
			for _, p := range []string{file, dir} {
				var st syscall.Stat_t
				if err := syscall.Lstat(p, &st); err != nil {
					t.Fatal(err)
				}
				s += fmt.Sprintf("%o %d %d %d %d;", st.Mode, st.Uid, st.Gid, st.Atim.Sec, st.Mtim.Sec)
			}
			return s
		}
		before := state()
		kerneltest.Need(t, kerneltest.Command("python3"))
		out := withoutMounts(t, `exec 2>&1
			for p in $OUTSIDE/outside $OUTSIDE/dir $OUTSIDE/dir/../outside /proc/self/root$OUTSIDE/outside; do
				chmod 777 $p && echo CHMOD; chmod u+s $p && echo SETUID; chown $(id -u):$(id -g) $p && echo CHOWN; chown -h $(id -u) $p && echo LCHOWN
				touch -c $p && echo TOUCH; touch -c -d 2020-01-01 $p && echo DATED; touch -h -c $p && echo LTOUCH
				python3 -c '
import os, sys
p = sys.argv[1]
def do(what, f):
	try: f(); print(what.upper())
	except OSError: pass
fd = os.open(p, os.O_PATH)
through = "/proc/self/fd/%d" % fd
do("fchmod", lambda: os.chmod(through, 0o777)); do("fchown", lambda: os.chown(through, os.getuid(), os.getgid())); do("futimens", lambda: os.utime(through))
do("setxattr", lambda: os.setxattr(p, "user.x", b"x")); do("removexattr", lambda: os.removexattr(p, "user.x"))' $p
			done
			ln -s $OUTSIDE/dir ld; touch -h -c ld/ && echo LINKSLASH; chown -h $(id -u):$(id -g) ld/ && echo OWNERSLASH
			ln -s $OUTSIDE/outside l && chmod 777 l && echo LINK; touch l && echo LINKTOUCH
			touch -h -d 2001-01-01 l && rm l && echo fine
			for d in . $TMPDIR $HOME; do
				echo x >$d/f && chmod 600 $d/f && chmod 755 $d/f && [ -x $d/f ] && chown $(id -u):$(id -g) $d/f && touch -d 2020-01-02 $d/f && [ $(stat -c %Y $d/f) = $(date -d 2020-01-02 +%s) ] && touch $d/f && mkdir $d/n && chmod 700 $d/n && cp -p $d/f $d/g && echo good
			done
			chmod 755 . && python3 -c 'import os; os.fchmod(os.memfd_create("m"), 0o600); os.fchmod(os.pipe()[0], 0o600); os.utime("f", ns=(5, 6)); print(os.stat("f").st_mtime_ns); fd = os.open("f", os.O_RDONLY); os.utime(fd, (7, 8)); print(int(os.stat("f").st_mtime))'`)
		if after := state(); after != before {
			t.Errorf("before %s, after %s:\n%s", before, after, out)
		}
		for line := range strings.Lines(out) {
			if line == strings.ToUpper(line) && strings.ToLower(line) != line {
				t.Errorf("%s went through:\n%s", strings.TrimSpace(line), out)
			}
		}
		if strings.Count(out, "good\n") != 3 || !strings.Contains(out, "6\n8\n") || !strings.Contains(out, "fine\n") {
			t.Errorf("its own cannot be changed:\n%s", out)
		}
	})
}

// TestKernelDeepTreesWithoutMounts: below PATH_MAX the tool's own trees can be changed, and those outside cannot.
func TestKernelDeepTreesWithoutMounts(t *testing.T) {
	kerneltest.Long(t)
	withoutNamespaces(t, 1, func(t *testing.T) {
		const down = `n=$(printf 'x%.0s' $(seq 200)); down() { for i in $(seq 40); do mkdir $n 2>/dev/null; cd $n; done; }; `
		deep := exec.Command("bash", "-c", down+`cd; mkdir deep; cd deep; down; echo mine >f; chmod 600 f`)
		if out, err := deep.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		defer exec.Command("bash", "-c", `rm -rf ~/deep`).Run()
		out := withoutMounts(t, `exec bash -c '`+strings.ReplaceAll(down, "'", `'"'"'`)+`exec 2>/dev/null; top=$PWD; down; echo own >f && chmod 640 f && touch -d 2020-01-01 f && mv f g && cat g; echo free >.envrc; cat .envrc
			cd $OUTSIDE/deep; down; chmod 666 f && echo CHMOD; touch f && echo TOUCH; echo evil >f && echo WROTE; rm -f f && echo REMOVED; mkdir d && echo MADE
			cd "$top"; rm -rf x* && echo gone; ls'`)
		if out != "own\nfree\ngone\n" {
			t.Errorf("got %q", out)
		}
		if out, err := exec.Command("bash", "-c", down+`cd ~/deep; down; cat f; stat -c %a f`).CombinedOutput(); string(out) != "mine\n600\n" {
			t.Errorf("outside: %v, %q", err, out)
		}
	})
}
