package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestWatcherLooksAtNothingOnDemand: no look reaches what is mounted by looking, nor /proc, by whatever path.
func TestWatcherLooksAtNothingOnDemand(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"net/host", "plain"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"plain/link": "../net", "plain/proc": "/proc/self", "plain/loop": "loop", "plain/ok": "../plain"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	w := &watcher{sandbox: &Sandbox{}, autofs: []string{filepath.Join(dir, "net")}}
	for p, want := range map[string]bool{
		"/net": false, "/net/host": false, "/net/absent": false, "/plain/link": false, "/plain/link/host/x": false, "/plain/../net/host": false,
		"/plain/proc/environ": false, "/plain/loop": false, "/plain/absent/x": false,
		"/plain": true, "/plain/absent": true, "/plain/ok/ok": true, "/networks": true,
	} {
		if _, ok := w.find(dir+p, true); ok != want {
			t.Errorf("%s: %v", p, ok)
		}
	}
}

// TestNoGoroutineEmptiesTheRingAfterTheEnd: it has ended when end returns.
func TestNoGoroutineEmptiesTheRingAfterTheEnd(t *testing.T) {
	s := &Sandbox{Policy: policy.Policy{Files: policy.Files{Watch: true}}}
	for range 300 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		var r refusals
		r.begin(f, nil, s, nil, nil, func() {})
		r.end()
		stacks := make([]byte, 1<<20)
		if n := runtime.Stack(stacks, true); strings.Contains(string(stacks[:n]), "refusals).follow") {
			t.Fatal("it is there")
		}
	}
}

// TestWatcherFollowsLongLinks at a cost that grows with their length, and says of a path that is too long that it did not.
func TestWatcherFollowsLongLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 39 {
		next := fmt.Sprint(i + 1)
		if i == 38 {
			next = "d"
		}
		for name, step := range map[string]string{"dots": "./", "ways": "d/../"} {
			target := strings.Repeat(step, 4080/len(step))
			if to := name + next; next != "d" {
				target += to
			} else {
				target += next
			}
			if err := os.Symlink(target, fmt.Sprint(dir, "/", name, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	w := &watcher{sandbox: &Sandbox{}}
	began := time.Now()
	if at, ok := w.find(dir+"/dots0/absent", true); !ok || at.real != dir+"/d/absent" {
		t.Errorf("found %+v", at)
	}
	if took := time.Since(began); took > 500*time.Millisecond {
		t.Error("it took", took)
	}
	if at, ok := w.find(dir+"/ways0", true); ok || !at.tooLong {
		t.Errorf("found %+v", at)
	}
	d := supervisor.Denial{Deed: supervisor.DeedRead, Paths: [2]string{dir + "/ways0"}}
	if v, denied := w.judge(d); !denied || !strings.Contains(v.Why, "too many components") {
		t.Errorf("told: %v, %v", denied, v)
	}
	for p, want := range map[string]string{"/d/../dots38": "/dots38", "/dots38/.": "/d", "/d/.": "/d", "/./d//": "/d"} {
		if at, ok := w.find(dir+p, false); !ok || at.real != dir+want {
			t.Errorf("%s, not followed, is %+v", p, at)
		}
	}
}

// TestAWatcherKeepsOneOfWhatReadsTheSame: ls looks at a directory with a link's name and by it.
func TestAWatcherKeepsOneOfWhatReadsTheSame(t *testing.T) {
	w := newWatcher(&Sandbox{})
	for i, noFollow := range []bool{true, false, true} {
		d := supervisor.Denial{Deed: supervisor.DeedLook, Paths: [2]string{"/root"}, NoFollow: noFollow, Count: 1}
		key := watched{d.Deed, d.Paths, d.NoFollow}
		if at, known := w.seen[key]; known != (i == 2) || known && at != 0 {
			t.Error(at, known)
		}
		w.keep(key, refusedOf(d).printable())
	}
	w.keep(watched{deed: supervisor.DeedRead}, refusedOf(supervisor.Denial{Deed: supervisor.DeedRead, Paths: [2]string{"/root"}, Count: 1}).printable())
	if len(w.list) != 2 || w.list[0].Count != 3 || w.list[1].Count != 1 {
		t.Errorf("%+v", w.list)
	}
}
