package sandbox

import (
	"context"
	"net"
	"os/exec"
	"regexp"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/runner"
)

// Cmd is an [exec.Cmd] whose process runs inside a sandbox. The embedded *exec.Cmd is a real one: any API that takes an
// *exec.Cmd may start it, and it enters the same sandbox, or fails. Set its fields as usual before that.
//
// The differences from os/exec are listed in the package's documentation.
type Cmd struct {
	*exec.Cmd

	// Path is the path of the tool, as [exec.Cmd.Path] is elsewhere. It may be
	// changed before Start. (The embedded Cmd's Path is the stage's and must stay.)
	Path string

	// Born, if set, is called in a sandbox with a [policy.Policy.Root] with the id of its first process, which has done
	// nothing yet; Built once everything but the system call filters is in place. An error ends the run: it is
	// Start's. They are called by another goroutine than Start's.
	Born, Built func(pid int) error

	run *runner.Run
}

// newCmd makes a command as exec.CommandContext does: it looks the name up now
// and leaves a failure for Start. broken is an error that Start must return.
func newCmd(ctx context.Context, s *Sandbox, broken error, name string, arg []string) *Cmd {
	if s == nil && broken == nil {
		broken = errNoSandbox
	}
	ready, prepared := (*runner.Sandbox)(nil), (*runner.Prepared)(nil)
	if s != nil {
		ready, prepared = s.ready, &s.prepared
	}
	c := commandOf(func(ctx context.Context, tool func() runner.Tool) *runner.Run {
		return prepared.New(ctx, ready, broken, tool)
	}, ctx, name, arg)
	if s != nil && s.ready.Policy.Root != nil {
		c.Path, c.Cmd.Err = name, nil // it is looked for inside
	}
	return c
}

// commandOf makes a command that is run's.
func commandOf(run func(context.Context, func() runner.Tool) *runner.Run, ctx context.Context, name string, arg []string) *Cmd {
	model := exec.Command(name, arg...) // resolves the name as os/exec does
	c := &Cmd{Path: model.Path}
	c.run = run(ctx, func() runner.Tool { return runner.Tool{Path: c.Path, Born: c.Born, Built: c.Built} })
	c.Cmd = c.run.Command()
	c.Cmd.Args, c.Cmd.Err = model.Args, model.Err
	return c
}

// Start is [exec.Cmd.Start]. It returns when the tool has been executed inside, and otherwise the error: os/exec's
// when the tool cannot be found, entered or executed, a [*StartError] when a wall could not be built.
func (c *Cmd) Start() error { return c.run.Start() }

// Wait is [exec.Cmd.Wait], for all processes inside, or for a [Session]'s tool.
func (c *Cmd) Wait() error { return c.run.Wait() }

// Run is [exec.Cmd.Run].
func (c *Cmd) Run() error {
	if err := c.run.Start(); err != nil {
		return err
	}
	return c.run.Wait()
}

// Output is [exec.Cmd.Output].
func (c *Cmd) Output() ([]byte, error) { return c.run.Output() }

// CombinedOutput is [exec.Cmd.CombinedOutput].
func (c *Cmd) CombinedOutput() ([]byte, error) { return c.run.CombinedOutput() }

// String is [exec.Cmd.String]: the tool and its arguments.
func (c *Cmd) String() string {
	if c.Cmd.Err != nil {
		return strings.Join(c.Args, " ")
	}
	var b strings.Builder
	b.WriteString(c.Path)
	for i, a := range c.Args {
		if i > 0 {
			b.WriteByte(' ')
			b.WriteString(a)
		}
	}
	return b.String()
}

// Environ returns the environment that the tool would get now: what the policy lets pass,
// and what the command's own Env adds to that.
func (c *Cmd) Environ() []string { return c.run.Environ() }

// Report says which bound held in this run, by which mechanisms, on what evidence. Before Start it says what is
// promised. It may be called while another goroutine is in Wait; until then it knows no exit status.
func (c *Cmd) Report() *Report { return reportOf(c.run.Account()) }

// NetworkEnviron returns the variables that make tools use what the policy's [Network] gives them: the proxies, the trust bundle,
// placeholders, agents' sockets. Every command has its own already; with [Env].AsGiven an Env of the caller's own needs them.
func (c *Cmd) NetworkEnviron() []string { return c.run.NetworkVariables() }

// ID is the number of a started command in its [Session], 0: it is in none.
func (c *Cmd) ID() int { return c.run.ID() }

// WaitOutput waits until what a command of a [Session] has printed matches, and returns that. All that is kept of it is searched, see docs/sessions.md.
// The error wraps [io.EOF] when nothing more can be printed. Stdout and Stderr may be nil, or writers, and not files.
func (c *Cmd) WaitOutput(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	return c.run.WaitOutput(ctx, pattern)
}

// DialInside connects to a server that the tool has at a port of its loopback, one of [policy.Network.Listen]. It does not wait for the server
// to listen: until then the error wraps ECONNREFUSED. The command must have been started.
func (c *Cmd) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	return c.run.DialInside(ctx, port)
}
