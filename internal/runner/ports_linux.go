package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// portEvery is how often WaitPort looks: the kernel tells no process outside when a socket begins to listen.
const portEvery = 5 * time.Millisecond

// WaitPort returns nil when a process of the session listens at a TCP port.
func (n *Session) WaitPort(ctx context.Context, port uint16) error {
	if err := n.sandbox.mayListen(); err != nil {
		return err
	}
	tick := time.NewTicker(portEvery)
	defer tick.Stop()
	changes := socketChanges{session: n}
	for listens, err := false, error(nil); ; {
		if changes.may() || err != nil {
			listens, err = n.Listens(port)
		}
		if over := n.err(nil); over != nil {
			return over
		}
		// A process that is ending has no network namespace any more, before any other sign of it can be seen.
		if listens || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) && !errors.Is(err, syscall.EINVAL) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("sandbox: port %d of the session, in which %s: %w", port, n.listening(), errors.Join(ctx.Err(), err))
		case <-n.ended:
		case <-tick.C:
		}
	}
}

// listening says at which addresses its processes listen.
func (n *Session) listening() string {
	ports, err := n.Ports()
	if err != nil {
		return "it is not known what listens"
	}
	var list []string
	for _, p := range ports {
		list = append(list, p.Protocol+" "+netip.AddrPortFrom(p.Address, p.Port).String())
	}
	if len(list) == 0 {
		return "nothing listens"
	}
	return "processes listen at " + errtext.Shorten(strings.Join(list, ", "))
}

// mayListen refuses to wait for servers where no tool can serve: without a network namespace and without a supervisor for that.
func (s *Sandbox) mayListen() error {
	if s.meets() || s.Plan.Namespaces.Net || s.Policy.Network.Host || slices.Contains(s.Policy.Open, policy.BoundNetwork) {
		return nil
	}
	return &policy.UnsupportedError{Bound: policy.BoundNetwork, What: "no tool can serve",
		Reason: "there is no network namespace", Remedy: "see Probe's Namespaces; protect names (Files.Protect); or share the harness's network by Network.Host"}
}

// Listens reports whether a TCP port has a listener. In the harness's own network namespace one counts if a process of the session has it.
func (n *Session) Listens(port uint16) (bool, error) {
	list, err := n.sockets("tcp", "tcp6")
	wanted := map[uint64]bool{}
	for _, s := range list {
		if s.Port.Port == port {
			wanted[s.inode] = true
		}
	}
	if err != nil || len(wanted) == 0 || n.sandbox.Plan.Namespaces.Net {
		return len(wanted) > 0, err
	}
	processes, _ := n.Processes()
	return len(holders(processes, wanted)) > 0, nil
}

// sockets reads tables of the network namespace that init is in (proc_pid_net(5)).
func (n *Session) sockets(tables ...string) (list []socket, err error) {
	dir, err := n.procNet()
	if err != nil {
		return nil, err
	}
	return readSockets(dir, socketsIn, tables...)
}

// procNet is the directory of these tables.
func (n *Session) procNet() (string, error) { return procNet(n.cmd.Process.Pid) }

// socketChanges says when the tables are worth reading. The kernel walks all of the machine's buckets for one of TCP, which takes milliseconds; how
// many sockets are in use it has counted (proc_net_sockstat in net/ipv4/proc.c), which takes some 20 us.
type socketChanges struct {
	session *Session
	counts  string
	read    time.Time
}

// unseenAtMost is how long a socket that has taken another's place between two looks is not seen.
const unseenAtMost = time.Second

// may reports whether the sockets may be others than when it last did.
func (c *socketChanges) may() bool {
	counts := c.session.socketsInUse()
	if counts != "" && counts == c.counts && time.Since(c.read) < unseenAtMost {
		return false
	}
	c.counts, c.read = counts, time.Now()
	return true
}

// socketsInUse counts those that are bound or connected; "": it cannot be read.
func (n *Session) socketsInUse() (counts string) {
	dir, err := n.procNet()
	if err != nil {
		return ""
	}
	for _, name := range []string{"sockstat", "sockstat6"} { // a kernel without IPv6 has no second
		text, _ := os.ReadFile(dir + name)
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) > 2 && (strings.HasPrefix(f[0], "TCP") || strings.HasPrefix(f[0], "UDP")) {
				counts += f[0] + f[2] // what follows are the machine's
			}
		}
	}
	return counts
}

// DialInside connects to a server at one of Network.Listen.
func (n *Session) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	if err := n.sandbox.mayDial(port); err != nil {
		return nil, err
	}
	if over := n.err(nil); over != nil {
		return nil, over
	}
	return n.net.DialInside(ctx, port)
}
