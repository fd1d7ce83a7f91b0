package runner

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
		r.begin(f, nil, s, nil, func() {})
		r.end()
		stacks := make([]byte, 1<<20)
		if n := runtime.Stack(stacks, true); strings.Contains(string(stacks[:n]), "refusals).follow") {
			t.Fatal("it is there")
		}
	}
}
