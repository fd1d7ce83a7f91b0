package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelACoveredProcCostsThePIDNamespaceAlone: in a container that covers parts of /proc the default sandbox is refused for processes alone. With
// that accepted, files and network are held by namespaces; a tool sees of processes outside what their numbers, names and states are, and
// nothing that needs the right to trace them; what is covered stays so; what it leaves behind ends with it.
func TestKernelACoveredProcCostsThePIDNamespaceAlone(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
	sets := []walls{sharedPIDs, {name: noOwnProc + " and Landlock", without: append(sharedPIDs.without, kerneltest.Landlock), may: sharedPIDs.may}}
	eachWall(t, sets, func(t *testing.T, w walls) {
		p := workspaceHere(t)
		_, err := New(p)
		f := Probe()
		if os.Getuid() == 0 { // who mounts a procfs, without a user namespace
			if err != nil || !f.Namespaces.Yes() || f.UserNS || f.SharedPIDs {
				t.Errorf("%v, %+v", err, f)
			}
			return
		}
		if !f.Namespaces.Yes() || !f.UserNS || !f.SharedPIDs || f.Namespaces.Remedy == "" {
			t.Fatalf("%+v", f)
		}
		if got := fixture.UnsupportedBounds(t, err); got != "processes" || !strings.Contains(err.Error(), "with a pid namespace and its /proc every bound is held") {
			t.Errorf("New refuses %q: %v", got, err)
		}
		home := os.Getenv("HOME")
		if err := os.WriteFile(filepath.Join(home, "outside"), []byte("secret"), 0o666); err != nil {
			t.Fatal(err)
		}
		p.May = w.may
		p.Env.Set = map[string]string{"OUTSIDE": home + "/outside", "H": fmt.Sprintf("/proc/%d", os.Getpid())}
		c := commandIn(t, p, sharedPIDsScript)
		out, err := c.CombinedOutput()
		first, rest, _ := strings.Cut(string(out), "\n")
		if err != nil || rest != "status\nmaps\nfiles\ntmp\nterminal\n" {
			t.Errorf("%v: %s", err, out)
		}
		want := map[bool]string{true: "processes weaker", false: "processes absent"}[Probe().Landlock.Yes() && !before6(t)]
		if got := weaknesses(c.Report()); got != want {
			t.Errorf("%q, want %q\n%s", got, want, c.Report())
		}
		if left, err := strconv.Atoi(first); err != nil || unix.Kill(left, 0) != unix.ESRCH {
			t.Errorf("what the tool has left behind, %q, is there still: %v", first, err)
		}
	})
}

// sharedPIDsScript prints the number of a process that it leaves in another session, then in lower case what must work, in upper case what must not.
const sharedPIDsScript = `setsid sleep 1000 >/dev/null 2>&1 & echo $!
grep -q '^Pid:' /proc/self/status && echo status
grep -q . /proc/self/maps && echo maps
test -e /proc/self/fd/1 && test "$(readlink /proc/$$/exe)" = "$(readlink -f /bin/sh)" && echo files
echo x >/tmp/file && test ! -e $H/root/tmp/file && echo tmp
(exec 3<>/dev/ptmx) && test -c /dev/pts/ptmx && echo terminal
for f in environ maps auxv io; do (grep -q . $H/$f) 2>/dev/null && echo READ $f; done
(echo x >$H/mem) 2>/dev/null && echo MEMORY
(echo 1000 >$H/oom_score_adj) 2>/dev/null && echo OOM
for l in exe cwd root fd/0 ns/mnt; do readlink $H/$l 2>/dev/null && echo LINK $l; done
(cat $H/root/$OUTSIDE) 2>/dev/null && echo ROOT
(cat $H/cwd/*) 2>/dev/null && echo DIRECTORY
(cat $H/task/*/environ) 2>/dev/null && echo THREAD
(cat $OUTSIDE) 2>/dev/null && echo OUTSIDE
test -e $OUTSIDE && echo NAME
grep -q . /proc/devices 2>/dev/null && echo COVERED
(umount /proc/devices || umount /proc/sys) 2>/dev/null && echo UNCOVERED
(echo x >/proc/sys/kernel/core_pattern) 2>/dev/null && echo SETTING
for f in kcore keys kallsyms interrupts; do (head -c 1 /proc/$f) 2>/dev/null | grep -q . && echo HIDDEN $f; done
true`
