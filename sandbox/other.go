//go:build !linux && !darwin

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os/exec"
	"runtime"

	"github.com/holdfast-dev/holdfast/internal/host"
)

// There is no engine for this operating system yet. Everything builds, policies
// can be made and checked, and no tool runs.

func (r *run) stagePath() string { return "/nonexistent/holdfast" }

var errInvalid = fs.ErrInvalid

func unsupported() error {
	return fmt.Errorf("sandbox: there is no engine for %s yet: %w", runtime.GOOS, errors.ErrUnsupported)
}

type contact struct{ own string }

// Probe returns the facts about this host.
func Probe() Host { return host.Read() }

var probed = Probe

var glance = Probe

func (s *Sandbox) compile() error { return unsupported() }

func (s *Sandbox) explain() string { return "" }

// Wrap puts a command that was made elsewhere into the sandbox.
func (s *Sandbox) Wrap(cmd *exec.Cmd) error { return unsupported() }

// ReportOf returns the report of a wrapped command.
func ReportOf(cmd *exec.Cmd) *Report { return nil }

func (r *run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	return unsupported()
}

const ownLetters = 26

func (r *run) isHomed() bool                                        { return false }
func (r *run) dialInside(context.Context, uint16) (net.Conn, error) { return nil, unsupported() }
func (r *run) watch()                                               {}
func (r *run) settle()                                              {}
func (r *run) abandon()                                             {}
func (r *run) kill() error                                          { return unsupported() }
func (r *run) failure() error                                       { return unsupported() }
func (r *run) startError(err error) error                           { return err }
func (r *run) waitError(err error) error                            { return err }
func (r *run) report() *Report                                      { return &Report{Tool: r.tool(), Status: "no sandbox"} }
