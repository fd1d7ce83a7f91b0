package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelPrivateDirectoriesShareMemory: HOME, /tmp and /dev/shm are of one tmpfs, of which eight fit into the machine's memory.
func TestKernelPrivateDirectoriesShareMemory(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
			var machine unix.Sysinfo_t
			if err := unix.Sysinfo(&machine); err != nil {
				t.Fatal(err)
			}
			total := machine.Totalram * uint64(machine.Unit)
			limited := Workspace(t.TempDir())
			limited.Files.PrivateBytes = 8 << 20
			for _, p := range []Policy{Workspace(t.TempDir()), limited} {
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				got := strings.Fields(outputOf(t, s.Command("sh", "-c", `stat -c %d ~ /tmp /dev/shm | uniq; stat -f -c '%b %S' /tmp; head -c 4M /dev/zero >/tmp/f && stat -c %s /tmp/f`)))
				if len(got) != 4 || got[3] != fmt.Sprint(4<<20) {
					t.Fatalf("one device, its blocks, and a file of 4 MiB: %q", got)
				}
				blocks, _ := strconv.ParseUint(got[1], 10, 64)
				size, _ := strconv.ParseUint(got[2], 10, 64)
				least, most := total/10, total/8
				if p.Files.PrivateBytes != 0 {
					least, most = p.Files.PrivateBytes, p.Files.PrivateBytes
				}
				if bytes := blocks * size; bytes < least || bytes > most {
					t.Errorf("the private tmpfs holds %d bytes; want %d to %d", bytes, least, most)
				}
			}
		})
	})
}

// TestKernelTheSandboxIsKilledForMemoryBeforeTheHarness: its processes have a higher oom_score_adj than the harness, whose own stays, in single commands and
// in a session.
func TestKernelTheSandboxIsKilledForMemoryBeforeTheHarness(t *testing.T) {
	for _, without := range [][]kerneltest.Feature{nil, {kerneltest.Namespaces}} {
		kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
			kerneltest.InChild(t, kerneltest.Child{As: as, Without: without}, func(t *testing.T) {
				const own, script = "/proc/self/oom_score_adj", "cat /proc/self/oom_score_adj; cat /proc/$PPID/oom_score_adj"
				p := Workspace(t.TempDir())
				if without != nil {
					p = p.InContainer()
				}
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				for _, score := range []int{0, 300, 800, 1000, -500} {
					if err := os.WriteFile(own, []byte(fmt.Sprint(score)), 0); err != nil && score < 0 {
						t.Logf("lowering it takes CAP_SYS_RESOURCE: %v", err)
						continue
					} else if err != nil {
						t.Fatal(err)
					}
					want := min(max(score, 0)+300, 1000)
					got := outputOf(t, s.Command("sh", "-c", script))
					if without == nil {
						session, err := s.Open(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						got += "\n" + outputOf(t, session.Command("sh", "-c", script))
						session.Close()
					}
					for _, g := range strings.Fields(got) {
						if g != fmt.Sprint(want) {
							t.Errorf("harness %d: inside %q; want %d each", score, got, want)
						}
					}
					if after, err := os.ReadFile(own); err != nil || strings.TrimSpace(string(after)) != fmt.Sprint(score) {
						t.Errorf("the harness had %d and has %q: %v", score, after, err)
					}
				}
			})
		})
	}
}
