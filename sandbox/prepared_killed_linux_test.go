package sandbox

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A harness whose prepared sandboxes are taken by several commands at once, refilled, and changed in number, until it is killed.
var _ = offer(programs, "prepared harness", func(args []string) {
	p := Workspace(os.TempDir())
	p.Files = Files{Read: []string{"/usr", "/bin", "/lib", "/lib64"}, Private: []string{"/tmp"}}
	for _, b := range strings.Fields(args[0]) {
		p.May = append(p.May, Bound(b))
	}
	s, err := New(p)
	if err != nil {
		panic(err)
	}
	fmt.Println("made")
	for n := 1; ; n++ {
		if err := s.Prepare(n % 4); err != nil {
			panic(err)
		}
		if n == 3 {
			fmt.Println("prepared")
		}
		var wait sync.WaitGroup
		for range 4 {
			wait.Go(func() { sh(s, "setsid sleep 1000 >/dev/null 2>&1 & exit 0").Run() })
		}
		wait.Wait()
	}
})

// TestKernelAPreparedSandboxEndsWithItsHarness: it is killed somewhere between the beginning of Prepare and the next refill; no process, file or mount is left,
// but for a directory of a session without namespaces that was being opened.
func TestKernelAPreparedSandboxEndsWithItsHarness(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:2], func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		adoptOrphans(t)
		mounts := func() string {
			text, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		random, before := rand.New(rand.NewPCG(seed, 0)), mounts()
		n := max(kerneltest.Soak(100), kerneltest.Amount(t, 1, 3, 8))
		for i := range n {
			dir := t.TempDir()
			c, lines := startHarness(t, dir, "prepared harness", strings.Join(boundNames(w.may), " "))
			for after := []string{"made", "prepared"}[i%2]; lines.Scan() && lines.Text() != after; {
			}
			time.Sleep(time.Duration(random.IntN(40_000)) * time.Microsecond) // where it is then does not matter
			if c.Process.Kill(); c.Wait() == nil {
				t.Fatalf("the harness ended by itself: %v", lines.Err())
			}
			reapAll(t, fmt.Sprint(i, " of seed ", seed))
			if list, err := os.ReadDir(dir); len(list) > 0 && !w.bare() || err != nil { // without namespaces: the directory of one that was being opened
				t.Fatalf("%d of seed %d: %v is left, %v", i, seed, list, err)
			}
		}
		if now := mounts(); now != before {
			t.Errorf("mounts are left: %s", now)
		}
		t.Logf("%d harnesses were killed", n)
	})
}
