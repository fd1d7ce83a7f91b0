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
	sessionMethods
	sandbox  *Sandbox
	net      *Network
	own      ownDir
	observer observer
	defaults defaults
	outputs  outputs
}

// sessionMethods are not called: Open makes no Session.
type sessionMethods interface {
	over(error) error
	Over() error
	endBorrowed() int
	Wrap(*exec.Cmd) error
	WaitPort(context.Context, uint16) error
	DialInside(context.Context, uint16) (net.Conn, error)
	SetEnv([]string) error
	SetHosts([]string) error
	SetDir(string) error
	Dir() string
	WatchPorts()
	Ports() ([]policy.Port, error)
	WaitPorts(context.Context, []policy.Port) ([]policy.Port, error)
	Forward(uint16) (netip.AddrPort, error)
	Extend(time.Duration) error
	Pause() error
	UntilPause() context.Context
	Resume() error
	Output(int, int64) (policy.Output, error)
	Close() error
	Processes() ([]policy.Process, error)
	Signal(int, os.Signal) error
}

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
