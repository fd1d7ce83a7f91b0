package sbpl

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// executeCopies tries to execute copies of its own program, where every sandbox
// can make them, and prints where it could.
func executeCopies() int {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return 2
	}
	if os.WriteFile("/dev/shm/copy", self, 0o755) == nil && execute("/dev/shm/copy") == nil {
		fmt.Println("shared memory")
	}
	fd, err := unix.MemfdCreate("copy", 0)
	if err != nil {
		return 0
	}
	if _, err := unix.Write(fd, self); err == nil && execute(fmt.Sprintf("/proc/self/fd/%d", fd)) == nil {
		fmt.Println("memory")
	}
	return 0
}

// TestKernelExecutesNoCopies has a profile that names the one program which may be
// executed; and, so that the test can fail, one that lets everything be.
func TestKernelExecutesNoCopies(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			self, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			exe := filepath.Join(t.TempDir(), "actor")
			if err := os.WriteFile(exe, self, 0o755); err != nil {
				t.Fatal(err)
			}
			for rules, want := range map[string]string{
				`(version 1)(allow default)`: "shared memory\nmemory\n",
				`(version 1)(deny default)(allow process-fork signal file-read*)(allow process-exec (literal (param "ACTOR")))`: "",
			} {
				p, err := Parse("copies.sb", rules, map[string]string{"ACTOR": exe})
				if err != nil {
					t.Fatal(err)
				}
				policy, _, err := p.Policy(Options{})
				if err != nil {
					t.Fatal(err)
				}
				s, err := sandbox.New(policy)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				cmd := s.Command(exe, "copies")
				cmd.Args[0] = beActor
				if out, err := cmd.Output(); err != nil || string(out) != want {
					t.Errorf("%s: %v, executed a copy in %q, want %q", rules, err, out, want)
				}
			}
		})
	})
}
