package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// The tool that has as many descriptors under way in messages as it can, until its
// standard input ends.
var _ = offer(programs, "messages", func([]string) {
	var l unix.Rlimit
	unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	l.Cur = l.Max
	fmt.Println(unix.Setrlimit(unix.RLIMIT_NOFILE, &l))
	many := make([]int, 250)
	for n := uint64(0); n < l.Max+1000; {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		for range 4 {
			if err == nil {
				err = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(many...), nil, unix.MSG_DONTWAIT)
				n += uint64(len(many))
			}
		}
		if err != nil {
			fmt.Println("full:", err)
			break
		}
	}
	io.Copy(io.Discard, os.Stdin)
})

// TestKernelAttackMessagesFullOfDescriptors: the kernel counts them by user, and a
// sandbox hands its listeners, and itself, to the harness by such messages.
func TestKernelAttackMessagesFullOfDescriptors(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			p := attackPolicy(t, "", walls{})
			p.Network.Hosts = []string{"example.com"}
			s := attackSandbox(t, p, walls{})
			c := hostile(t, s, "messages")
			in, err := c.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := c.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			r := bufio.NewReader(out)
			raised, _ := r.ReadString('\n')
			full, err := r.ReadString('\n')
			if err != nil || raised != "<nil>\n" || !strings.Contains(full, "too many references") {
				t.Errorf("%q %q %v", raised, full, err)
			}
			if _, err := hostile(t, s, "descriptors").Output(); err != nil {
				t.Errorf("another sandbox of the same user: %v", err)
			}
			in.Close()
			if err := c.Wait(); err != nil {
				t.Error(err)
			}
		})
	})
}
