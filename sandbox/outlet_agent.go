package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/proxy/agent"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

// An agentFilter speaks with one connection of the tool's for one to the agent.
type agentFilter func(inside, outside io.ReadWriter, refused func(string)) error

// listenAgent makes the socket of the tool's ssh-agent in the run's own directory.
func (o *outlet) listenAgent(dir string, uid, gid int) error {
	if o == nil || !o.wiring.SSHAgent {
		return nil
	}
	at := filepath.Join(dir, compile.SshFile)
	l, err := net.Listen("unix", at)
	if err == nil {
		o.agent = l
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
// until the outlet ends.
func (o *outlet) serveAgent(l net.Listener, what, socket string, filter agentFilter) error {
	defer context.AfterFunc(o.ctx, func() { l.Close() })()
	dial := func() (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(o.ctx, "unix", socket)
	}
	refused := func(message string) {
		o.deny(proxy.Event{Time: time.Now(), Protocol: what, Host: message, Reason: "the agent is asked for signatures alone"})
	}
	return agent.Serve(l, dial, func(inside, outside io.ReadWriter) error { return filter(inside, outside, refused) })
}

// agentSocket is the canonical path of an agent's socket.
func agentSocket(field, p, remedy string) (string, error) {
	if p == "" {
		return "", &PolicyError{Field: field, Problem: "the harness has no agent", Remedy: remedy, Err: fs.ErrNotExist}
	}
	real, info, err := resolve.Canonical(p)
	if err == nil && info.Mode()&fs.ModeSocket == 0 {
		err = syscall.ENOTSOCK
	}
	if err != nil {
		return "", &PolicyError{Field: field, Value: p, Problem: "is not the socket of an agent", Remedy: remedy, Err: err}
	}
	return real, nil
}
