//go:build !linux

package runner

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Session does not exist on this operating system yet.
type Session struct {
	sandbox  *Sandbox
	net      *Network
	own      ownDir
	observer observer
	defaults defaults
	outputs  outputs
}

func (n *Session) over(error) error { return errors.ErrUnsupported }

// Over is not called.
func (n *Session) Over() error { return errors.ErrUnsupported }

// Open says so.
func (s *Sandbox) Open(context.Context) (*Session, error) {
	return nil, &policy.SessionError{Reason: "needs Linux", Remedy: "run single commands", Err: errors.ErrUnsupported}
}

// Prepared are none.
type Prepared struct{ Of *Sandbox }

// Keep says so, too.
func (p *Prepared) Keep(n int) error {
	if n == 0 {
		return nil
	}
	_, err := p.Of.Open(context.Background())
	return err
}

// endBorrowed is not called.
func (n *Session) endBorrowed() int { return 0 }

// Wrap is not called.
func (n *Session) Wrap(*exec.Cmd) error { return errors.ErrUnsupported }

// WaitPort is not called.
func (n *Session) WaitPort(context.Context, uint16) error { return errors.ErrUnsupported }

// DialInside is not called.
func (n *Session) DialInside(context.Context, uint16) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}

// SetEnv is not called.
func (n *Session) SetEnv([]string) error { return errors.ErrUnsupported }

// SetHosts is not called.
func (n *Session) SetHosts([]string) error { return errors.ErrUnsupported }

// SetDir is not called.
func (n *Session) SetDir(string) error { return errors.ErrUnsupported }

// Dir is not called.
func (n *Session) Dir() string { return "" }

// WatchPorts is not called.
func (n *Session) WatchPorts() {}

// Ports is not called.
func (n *Session) Ports() ([]policy.Port, error) { return nil, errors.ErrUnsupported }

// WaitPorts is not called.
func (n *Session) WaitPorts(context.Context, []policy.Port) ([]policy.Port, error) {
	return nil, errors.ErrUnsupported
}

// Forward is not called.
func (n *Session) Forward(uint16) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.ErrUnsupported
}

// Extend is not called.
func (n *Session) Extend(time.Duration) error { return errors.ErrUnsupported }

// Pause is not called.
func (n *Session) Pause() error { return errors.ErrUnsupported }

// UntilPause is not called.
func (n *Session) UntilPause() context.Context { return context.Background() }

// Resume is not called.
func (n *Session) Resume() error { return errors.ErrUnsupported }

// Output is not called.
func (n *Session) Output(int, int64) (policy.Output, error) {
	return policy.Output{}, errors.ErrUnsupported
}

// Close is not called.
func (n *Session) Close() error { return errors.ErrUnsupported }

// Processes is not called.
func (n *Session) Processes() ([]policy.Process, error) { return nil, errors.ErrUnsupported }

// Signal is not called.
func (n *Session) Signal(int, os.Signal) error { return errors.ErrUnsupported }
