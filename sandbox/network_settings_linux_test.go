package sandbox

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelNetworkSettingsAreOfTheSandboxsNetwork: init lets the tool bind ports below 1024 and send echo requests in its own network
// namespace. The harness's network keeps its settings, a root harness's too; here that is one made for this test.
func TestKernelNetworkSettingsAreOfTheSandboxsNetwork(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			if as == kerneltest.Root {
				runtime.LockOSThread() // for good: the thread ends with the test
				if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
					t.Fatal(err)
				}
			}
			settings := func() (all string) {
				for _, name := range []string{"ip_unprivileged_port_start", "ping_group_range"} {
					// The directory is looked up in the network namespace of the thread that opens it.
					text, err := os.ReadFile("/proc/thread-self/root/proc/sys/net/ipv4/" + name)
					if err != nil {
						t.Fatal(err)
					}
					all += string(text)
				}
				return all
			}
			before := settings()
			c := commandIn(t, workspaceHere(t), "cd /proc/sys/net/ipv4 && cat ip_unprivileged_port_start ping_group_range; { echo 5000 >ip_unprivileged_port_start; } 2>/dev/null && echo WROTE; true")
			out, err := c.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "0\n") || strings.Contains(string(out), "WROTE") || len(strings.Fields(string(out))) != 3 {
				t.Errorf("%v: inside %q", err, out)
			}
			if after := settings(); after != before {
				t.Errorf("outside: before %q, after %q", before, after)
			}
		})
	})
}
