package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
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

// TestKernelMoreDescriptorsInMessagesThanTheHardLimit: another program of the same user, whose limit is higher than the harness's, has them there. What New
// finds is not that the host has less; a run works, or its error says which limit it is.
func TestKernelMoreDescriptorsInMessagesThanTheHardLimit(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 700, Max: 700}); err != nil {
			t.Fatal(err)
		}
		full := func(do func() error) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			for range 3 {
				if err := unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(make([]int, 250)...), nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			err = do()
			if err == nil || errors.Is(err, unix.ETOOMANYREFS) && !errors.Is(err, errors.ErrUnsupported) && strings.Contains(err.Error(), "ulimit -Hn") {
				return err
			}
			t.Error(err)
			return err
		}
		p := attackPolicy(t, "", w)
		found := full(func() error {
			_, err := New(p.InContainer())
			return err
		})
		s := attackSandbox(t, p, w)
		held := func(c *Cmd) (all string) {
			for _, b := range c.Report().Bounds {
				all += fmt.Sprintln(b.Bound, b.State)
			}
			return all
		}
		if w.name == noLandlock {
			p.May = append(p.May, policy.BoundProcesses)
			s = attackSandbox(t, p, w)
		}
		refused := full(func() error {
			n, err := s.Open(t.Context())
			if err == nil {
				n.Close()
			}
			return err
		})
		n, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		t.Logf("New: %v\nOpen: %v", found, refused)
		for _, command := range []func(string, ...string) *Cmd{s.Command, n.Command} {
			var last *Cmd
			run := func() error {
				last = command("true")
				last.Dir = "/"
				return last.Run()
			}
			if err := run(); err != nil {
				t.Error(err)
			}
			before := held(last)
			refused := full(run)
			if now := held(last); refused == nil && now != before {
				t.Errorf("held with room for messages:\n%swithout:\n%s", before, now)
			}
			t.Logf("Run: %v", refused)
			if err := run(); err != nil || held(last) != before {
				t.Errorf("%v\n%s", err, held(last))
			}
		}
	})
}
