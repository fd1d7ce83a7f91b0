package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
)

// Cmd is an [exec.Cmd] whose process runs inside a sandbox. The embedded
// *exec.Cmd is a real one: any API that takes an *exec.Cmd may start it, and it
// enters the same sandbox, or fails. Set its fields as usual before that.
//
// The differences from os/exec are listed in the package's documentation.
type Cmd struct {
	*exec.Cmd

	// Path is the path of the tool, as [exec.Cmd.Path] is elsewhere. It may be
	// changed before Start. (The embedded Cmd's Path is the stage's and must stay.)
	Path string

	// Born, if set, is called in a sandbox with a [Policy.Root] once its first
	// process exists, with that process's id, and has done nothing. Built is called
	// once everything but the system call filters is in place. Both wait for the
	// call to return, and an error ends the run: it is Start's. They are called by
	// another goroutine than Start's.
	Born, Built func(pid int) error

	run *run
}

// newCmd makes a command as exec.CommandContext does: it looks the name up now
// and leaves a failure for Start. broken is an error that Start must return.
func newCmd(ctx context.Context, s *Sandbox, broken error, name string, arg []string) *Cmd {
	if s == nil && broken == nil {
		broken = errNoSandbox
	}
	model := exec.Command(name, arg...) // resolves the name as os/exec does
	c := &Cmd{Path: model.Path}
	c.run = newRun(ctx, s, broken)
	c.Cmd = c.run.newExecCmd()
	c.Cmd.Args, c.Cmd.Err = model.Args, model.Err
	c.run.tool, c.run.hooks = func() string { return c.Path }, hooks{c}
	if s != nil && s.ready.Policy.Root != nil {
		c.Path, c.Cmd.Err = name, nil // it is looked for inside
	}
	return c
}

// errNoSandbox is what Start returns for a command of a nil Sandbox.
var errNoSandbox = errors.New("sandbox: the Sandbox is nil: look at the error that New returned")

// Start is [exec.Cmd.Start]. It returns when the tool has been executed inside
// its walls, and otherwise the error: what os/exec would return when the tool
// cannot be found, entered or executed, a [*StartError] when a wall could not
// be built.
func (c *Cmd) Start() error {
	c.run.quiet, c.run.gated = true, true
	if err := c.Cmd.Start(); err != nil {
		c.run.abandon()
		c.run.unshut(false)
		return c.run.startError(err)
	}
	c.run.watch()
	c.run.unshut(true)
	<-c.run.decided
	if err := c.run.failure(); err != nil {
		c.bury()
		return err
	}
	return nil
}

// bury ends an embedded command that was started and whose tool was not, and
// leaves the fields as a failed Start of os/exec leaves them.
func (c *Cmd) bury() {
	if c.Cmd.WaitDelay == 0 {
		c.Cmd.WaitDelay = 1 // the copying goroutines may be stuck in the caller's readers
		defer func() { c.Cmd.WaitDelay = 0 }()
	}
	c.run.reap(c.Cmd.Wait)
	c.run.forget()
}

// Wait is [exec.Cmd.Wait]. It returns when every process inside is dead.
func (c *Cmd) Wait() error {
	err := c.run.reap(c.Cmd.Wait)
	if c.Cmd.ProcessState != nil {
		c.run.settle()
	}
	return c.run.waitError(err)
}

// Run is [exec.Cmd.Run].
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Output is [exec.Cmd.Output].
func (c *Cmd) Output() ([]byte, error) {
	c.run.quiet, c.run.gated = true, c.Cancel != nil // without Cancel, no goroutine watches until the end
	var out []byte
	err := c.run.reap(func() (err error) {
		out, err = c.Cmd.Output()
		return err
	})
	c.run.unshut(false)
	if err = c.finish(err); c.Cmd.Process == nil {
		return nil, err
	}
	return out, err
}

// CombinedOutput is [exec.Cmd.CombinedOutput].
func (c *Cmd) CombinedOutput() ([]byte, error) {
	if c.Stdout != nil {
		return nil, errors.New("exec: Stdout already set")
	}
	if c.Stderr != nil {
		return nil, errors.New("exec: Stderr already set")
	}
	var b bytes.Buffer
	c.Stdout, c.Stderr = &b, &b
	err := c.Run()
	if c.Cmd.Process == nil {
		return nil, err
	}
	return b.Bytes(), err
}

// finish gives the result of an embedded method that started and waited.
func (c *Cmd) finish(err error) error {
	if c.Cmd.Process == nil {
		c.run.abandon()
		return c.run.startError(err)
	}
	c.run.settle()
	if failed := c.run.failure(); failed != nil {
		c.run.forget()
		return failed
	}
	return c.run.waitError(err)
}

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
func (c *Cmd) Environ() []string { return c.run.environ().Vars }

// Report says which bound held in this run, by which mechanisms, on what
// evidence. Before Start it says what is promised. It may be called while another
// goroutine is in one of this type's methods, such as Wait; until that returns it
// does not know the exit status.
func (c *Cmd) Report() *Report { return c.run.report() }
