package runner

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// An agentFilter speaks with one connection of the tool's for one to the agent.
type agentFilter func(inside, outside io.ReadWriter, refused func(string)) error

// ListenAgent makes the socket of the tool's ssh-agent in the run's own directory.
func (n *Network) ListenAgent(dir string, uid, gid int) error {
	if !n.wiring.SSHAgent {
		return nil
	}
	at := filepath.Join(dir, compile.SshFile)
	l, err := net.Listen("unix", at)
	if err == nil {
		n.agent = l
		n.endings = append(n.endings, func() { l.Close() }) // the run has not begun: no other goroutine has the network
		err = os.Chmod(at, 0o600)
	}
	if err == nil && uid != os.Geteuid() {
		err = os.Chown(at, uid, gid)
	}
	if err != nil {
		return fmt.Errorf("sandbox: the ssh agent's socket: %w", err)
	}
	return nil
}

// serveAgent connects what comes to l with the agent at socket, through a filter,
// until the network ends.
func (n *Network) serveAgent(l net.Listener, what, socket string, filter agentFilter) error {
	defer context.AfterFunc(n.ctx, func() { l.Close() })()
	dial := func() (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(n.ctx, "unix", socket)
	}
	refused := func(message string) {
		n.gateway.Deny(policy.Connection{Time: time.Now(), Protocol: what, Host: message, Reason: "the agent is asked for signatures alone"})
	}
	return agent.Serve(l, dial, func(inside, outside io.ReadWriter) error { return filter(inside, outside, refused) })
}
