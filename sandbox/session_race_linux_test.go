package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A racer makes one file in each of n directories, at the moment at which the other racer makes another one there: they meet at a
// counter in memory that they share.
var _ = offer(programs, "session racer", func(args []string) {
	base, name := args[0], args[1]
	n, _ := strconv.Atoi(args[2])
	f, err := os.OpenFile(filepath.Join(base, "meet"), os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	page, err := syscall.Mmap(int(f.Fd()), 0, 8, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	met := (*atomic.Int64)(unsafe.Pointer(&page[0]))
	for i := range n {
		met.Add(1)
		for met.Load() < int64(2*(i+1)) {
			runtime.Gosched()
		}
		os.WriteFile(filepath.Join(base, fmt.Sprint(i), name), []byte("ref: refs/heads/main\n"), 0o755)
	}
})

// TestKernelAttackTheCheckOfAnothersSupervisor: one command makes a directory a git directory by its last file while another one makes a
// hook in it. Each of the two is allowed when the other has not happened, and each is another supervisor's to decide.
func TestKernelAttackTheCheckOfAnothersSupervisor(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sessionWalls[:1], func(t *testing.T, w walls) {
		n := kerneltest.Amount(t, 100, 200, 400)
		p := attackPolicy(t, makeGrounds(t, 1), w)
		p.Files.Protect = policy.Protect{}
		base := filepath.Join(p.Files.Write[0], "0")
		for i := range n {
			for _, dir := range []string{"objects", "refs", "hooks"} {
				if err := os.MkdirAll(filepath.Join(base, fmt.Sprint(i), dir), 0o777); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.WriteFile(filepath.Join(base, "meet"), make([]byte, 8), 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		head := s.program("session racer", base, "HEAD", fmt.Sprint(n))
		if err := head.Start(); err != nil {
			t.Fatal(err)
		}
		outputOf(t, s.program("session racer", base, "hooks/pre-commit", fmt.Sprint(n)))
		if t.Failed() {
			head.Process.Kill() // it would wait for the other one
		}
		if err := head.Wait(); err != nil {
			t.Error(err)
		}
		is := func(i int, name string) bool {
			_, err := os.Lstat(filepath.Join(base, fmt.Sprint(i), name))
			return err == nil
		}
		heads, hooks := 0, 0
		for i := range n {
			head, hook := is(i, "HEAD"), is(i, "hooks/pre-commit")
			if head && hook {
				t.Errorf("ESCAPE: directory %d is a git directory with a hook", i)
			}
			if head {
				heads++
			}
			if hook {
				hooks++
			}
		}
		t.Logf("%d HEADs, %d hooks of %d", heads, hooks, n)
		if heads+hooks < n {
			t.Errorf("%d HEADs, %d hooks of %d: each directory has one", heads, hooks, n)
		}
	})
}
