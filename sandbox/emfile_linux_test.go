package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// TestKernelStartWithoutDescriptors: a harness that has no descriptors left gets an error
// from Start that says so, whichever of them is the one that is missing; nothing is left
// of the attempt, and with enough of them the same sandbox works.
func TestKernelStartWithoutDescriptors(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			var l unix.Rlimit // the hard limit stays: what other tests of this user have in messages is held against it
			unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
			l.Cur = 200
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
				t.Fatal(err)
			}
			s := attackSandbox(t, attackPolicy(t, "", allSets[0]), allSets[0])
			run := func() error {
				c := s.Command("true")
				c.Dir = "/"
				return c.Run()
			}
			if err := run(); err != nil { // what is kept for the life of the process
				t.Fatal(err)
			}
			refused, worked := 0, 0
			for spare := range 30 {
				taken := takeAllBut(spare)
				err := run()
				again := takeAllBut(0)
				for _, fd := range slices.Concat(taken, again) {
					unix.Close(fd)
				}
				if len(again) != spare {
					t.Errorf("of %d spare descriptors %d are left: %v", spare, len(again), err)
				}
				switch {
				case err == nil:
					worked++
				case errors.Is(err, unix.EMFILE):
					refused++
				default:
					t.Errorf("with %d spare descriptors: %v", spare, err)
				}
				if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
					t.Errorf("with %d spare descriptors: a child is left: %d, %v", spare, pid, err)
				}
			}
			if refused == 0 || worked == 0 {
				t.Errorf("%d times refused, %d times not", refused, worked)
			}
			if err := run(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestKernelSessionsWithoutDescriptors: the error of the session for which too few are left says which limit it is, and with others closed one can be opened.
func TestKernelSessionsWithoutDescriptors(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 600, Max: 600}); err != nil {
				t.Fatal(err)
			}
			s := attackSandbox(t, attackPolicy(t, "", allSets[0]), allSets[0])
			var all []*Session
			var err error
			for err == nil && len(all) < 200 {
				var n *Session
				if n, err = s.Open(t.Context()); err == nil {
					all = append(all, n)
				}
			}
			if len(all) == 0 || !errors.Is(err, unix.EMFILE) || !strings.Contains(err.Error(), "ulimit -n") {
				t.Errorf("%d were opened: %v", len(all), err)
			}
			for _, n := range all {
				n.Close()
			}
			n, err := s.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n.Close()
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 500, Max: 500}); err != nil {
				t.Fatal(err)
			}
			var refused *policy.SessionError
			if _, err = s.Open(t.Context()); !errors.As(err, &refused) || !strings.Contains(err.Error(), "ulimit -Hn") {
				t.Errorf("below the limit of a session: %v", err)
			}
		})
	})
}

// TestKernelASessionBelowTheSoftLimit: init's descriptors are numbered above it, and a command has its own limit.
func TestKernelASessionBelowTheSoftLimit(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			var l unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
				t.Fatal(err)
			}
			l.Cur = 100
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
				t.Fatal(err)
			}
			p := attackPolicy(t, "", allSets[0])
			p.Limits.Rlimits.NoFile = rlimit.At(50)
			n, err := attackSandbox(t, p, allSets[0]).Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			for range 3 { // beside each other's descriptors
				c := n.Command("sh", "-c", "ulimit -Sn")
				c.Dir = "/"
				if out, err := c.CombinedOutput(); string(out) != "50\n" || err != nil {
					t.Errorf("%q, %v", out, err)
				}
			}
		})
	})
}

// takeAllBut uses up the descriptors that are free, but for some.
func takeAllBut(spare int) (taken []int) {
	for {
		fd, err := unix.Dup(0)
		if err != nil {
			break
		}
		taken = append(taken, fd)
	}
	for ; spare > 0 && len(taken) > 0; spare-- {
		unix.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	return taken
}

// TestKernelALackOfDescriptorsIsNotTheHosts: where New cannot find out what the host has for want of descriptors, it says so, even if the
// policy would run without namespaces: a tool that uses descriptors or processes up must not make the next sandbox weaker. Nothing is remembered of it.
func TestKernelALackOfDescriptorsIsNotTheHosts(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100}); err != nil {
				t.Fatal(err)
			}
			p := workspaceHere(t).InContainer()
			p.May = append(p.May, policy.BoundNetwork, policy.BoundSyscalls)
			var made *Sandbox
			refused := 0
			for spare := range 60 {
				taken := takeAllBut(spare)
				s, err := New(p)
				for _, fd := range taken {
					unix.Close(fd)
				}
				if err == nil {
					made = s
					break
				}
				if refused++; errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("with %d spare descriptors: %v", spare, err)
				}
			}
			if made == nil || refused == 0 || !Probe().Namespaces.Yes() {
				t.Fatalf("%v, refused %d times, then %+v", made, refused, Probe().Namespaces)
			}
			c := made.Command("true")
			if err := c.Run(); err != nil || !c.Report().Held() {
				t.Errorf("%v\n%v", err, c.Report())
			}
		})
	})
}

// TestKernelALackOfNamespacesIsNotTheHosts: a quota on user namespaces that another process has used up (ENOSPC), for the first or the second of
// a sandbox, is a lack of this moment: New says so and makes nothing weaker, and it works when the other has ended.
func TestKernelALackOfNamespacesIsNotTheHosts(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: []kerneltest.Feature{kerneltest.MoreUserNamespaces}}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.IsRoot, kerneltest.HasMountSetattr)
		allow := func(most string) {
			if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte(most), 0); err != nil {
				t.Fatal(err)
			}
		}
		allow("2")
		other := exec.Command("cat")
		other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
		end, err := other.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t).InContainer()
		p.May = append(p.May, policy.BoundNetwork, policy.BoundSyscalls)
		for _, most := range []string{"1", "2"} {
			allow(most)
			if _, err := New(p); err == nil || errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "user.max_user_namespaces") {
				t.Errorf("with %s namespaces, of which another process has one: %v", most, err)
			}
			if f := Probe().Namespaces; f.Answer != host.Unknown || f.Reason == "" || f.Remedy == "" {
				t.Errorf("with %s namespaces: %+v", most, f)
			}
		}
		end.Close()
		if err := other.Wait(); err != nil {
			t.Fatal(err)
		}
		allow("1000") // the kernel takes namespaces down some time after their last process has ended, those of the trials, too
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		if f := Probe(); !f.Namespaces.Yes() || !f.UserNS {
			t.Errorf("%+v", f.Namespaces)
		}
		c := s.Command("true")
		if err := c.Run(); err != nil || !c.Report().Held() {
			t.Errorf("%v\n%v", err, c.Report())
		}
	})
}
