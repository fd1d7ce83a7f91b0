package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/runner"
)

// A Sandbox is a policy made ready for this host. It holds no process: every command or [Session] has walls of its own,
// which end with it. It is safe for concurrent use.
type Sandbox struct {
	ready    *runner.Sandbox
	prepared runner.Prepared
	facts    Host
	obeyed   resolve.Obeyed // see compile.Input

	sshConfigs []string // a test's own, for clientenv.SystemSSHConfigs
}

// New validates the policy, resolves its paths and compiles it for this host, once. The error is a [*PolicyError] for the first
// wrong field, joins an [*UnsupportedError] for each bound this host cannot hold, or tells of a lack.
func New(p Policy) (*Sandbox, error) {
	p = p.Clone()
	if err := p.Validate(); err != nil {
		return nil, err
	}
	s := &Sandbox{ready: &runner.Sandbox{Policy: p, Env: new(runner.FilteredEnv), Made: new(runner.Made), Complete: complete, Secret: presets.Secret}}
	s.prepared.Of = s.ready
	var err error
	if s.ready.Networks, err = runner.NewNetworks(&s.ready.Policy.Network); err != nil {
		return nil, err
	}
	if p.Root == nil {
		s.facts = probed()
	} else {
		s.facts = glance()
	}
	if err := s.facts.Shortage; err != nil {
		return nil, fmt.Errorf("sandbox: find out what this host can hold: %w", err)
	}
	if err := s.compile(); err != nil {
		return nil, err
	}
	return s, nil
}

// Format keeps what a sandbox holds, the policy's environment and the harness's among it, out of whatever prints one.
func (s *Sandbox) Format(f fmt.State, verb rune) { fmt.Fprint(f, "sandbox") }

// Command is [exec.Command] inside the sandbox.
func (s *Sandbox) Command(name string, arg ...string) *Cmd {
	return newCmd(context.Background(), s, nil, name, arg)
}

// CommandContext is [exec.CommandContext] inside. At the end of ctx Cancel is called, which by default kills everything inside.
func (s *Sandbox) CommandContext(ctx context.Context, name string, arg ...string) *Cmd {
	if ctx == nil {
		panic("nil Context")
	}
	return newCmd(ctx, s, nil, name, arg)
}

// Wrap makes a command that was made elsewhere run inside the sandbox, whichever code and method starts it. It must not have been
// started; its pipes may have been made. Its Path becomes the stage's, and the tool is what Path was.
// [ReportOf] returns its report. On macOS the error wraps [errors.ErrUnsupported].
func (s *Sandbox) Wrap(cmd *exec.Cmd) error { return s.ready.Wrap(cmd) }

// Prepare keeps n sandboxes ready, each for one Command, which starts in them as fast as in a [Session]. 0 ends those that wait.
func (s *Sandbox) Prepare(n int) error { return s.prepared.Keep(n) }

// Close lets no more begin; what runs goes on. A second one is [os.ErrClosed].
func (s *Sandbox) Close() error { return s.prepared.Close() }

// Explain prints what will be done for a command of this sandbox, step by step,
// with reasons, and what of each bound is not held here.
func (s *Sandbox) Explain() string { return s.explain() }

// Command is [exec.Command] in the default sandbox, [Workspace] of the present
// working directory, or what [SetDefault] says. Its errors are the command's: Start returns them.
func Command(name string, arg ...string) *Cmd {
	s, err := defaultSandbox()
	return newCmd(context.Background(), s, err, name, arg)
}

// CommandContext is [exec.CommandContext] in the default sandbox.
func CommandContext(ctx context.Context, name string, arg ...string) *Cmd {
	if ctx == nil {
		panic("nil Context")
	}
	s, err := defaultSandbox()
	return newCmd(ctx, s, err, name, arg)
}

// SetDefault sets by which function [Command] and [CommandContext] make the policy for the working directory, in all goroutines from then on:
// [ReadOnly], say, or one that adds [policy.Policy.InContainer]. It is for a program's main; nil is [Workspace].
func SetDefault(policyFor func(dir string) Policy) { defaultPolicy.Store(&policyFor) }

var defaultPolicy atomic.Pointer[func(dir string) Policy]

// defaultSandbox is made anew for every command: it grants what is there now, in the working directory of now. If both are
// as they were, what follows is not worked out again; see memo.
func defaultSandbox() (*Sandbox, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	policyFor := Workspace
	if set := defaultPolicy.Load(); set != nil && *set != nil {
		policyFor = *set
	} else {
		go probed() // New waits for it: a process's first command has it tried while the preset reads the disk
	}
	s, err := New(policyFor(dir))
	if err == nil {
		s.ready.Made = &runner.MadeByProcess
		s.ready.Networks.Scope = "default" // a placeholder that a command has kept is the next command's too
	}
	return s, err
}
