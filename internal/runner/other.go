//go:build !linux && !darwin

package runner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
)

// There is no way into a sandbox on this operating system yet. Everything builds, policies
// can be made and checked, and no tool runs.

// Engine is empty where no tool runs.
type Engine struct{}

type contact struct{ path string }

const ownLetters, ownHome = 26, ""

// Unsupported is the error of whatever needs an engine.
func Unsupported() error {
	return fmt.Errorf("sandbox: there is no engine for %s yet: %w", runtime.GOOS, errors.ErrUnsupported)
}

// Wrap puts a command that was made elsewhere into the sandbox.
func (s *Sandbox) Wrap(cmd *exec.Cmd) error { return Unsupported() }

// Of returns the run of a wrapped command; there is none.
func Of(cmd *exec.Cmd) *Run { return nil }

func (s *Sandbox) isHomed() bool { return false }

func canMakeIn(dir string) bool { return true }

func removeTree(dir string) {}

func (r *Run) stagePath() string { return "/nonexistent/holdfast" }

func (r *Run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	return Unsupported()
}

// DialInside connects to a port of the tool's loopback.
func (r *Run) DialInside(context.Context, uint16) (net.Conn, error) { return nil, Unsupported() }

// Account returns what is known of the run.
func (r *Run) Account() Account {
	return Account{Tool: r.tool().Path, Status: "no sandbox"}
}

// Start returns why nothing can be started.
func (r *Run) Start() error {
	if r == nil {
		return errNoCommand
	}
	return r.cmd.Start()
}

// Wait returns that nothing was started.
func (r *Run) Wait() error {
	if r == nil {
		return errors.New("exec: not started")
	}
	return r.cmd.Wait()
}

// Output returns why nothing can be started.
func (r *Run) Output() ([]byte, error) {
	if r == nil {
		return nil, errNoCommand
	}
	return r.cmd.Output()
}

func (r *Run) watch()      {}
func (r *Run) kill() error { return Unsupported() }
