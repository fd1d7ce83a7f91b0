package runner

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// stagePath is what the exec.Cmd executes. It is fixed when the Cmd is made,
// since os/exec reads it before it asks for the context.
func (r *Run) stagePath() string {
	if r.launcher == nil {
		l, err := launch.Default()
		if err != nil {
			r.broken = err
			return "/nonexistent/holdfast"
		}
		r.launcher = l
	}
	return r.launcher.Path
}

// enter runs in the middle of exec.Cmd.Start, after every change of the caller.
// What it returns is what Start returns.
func (r *Run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	t := r.tool()
	r.path, r.dir, r.born, r.built, r.inRoot = t.Path, r.startDir(), t.Born, t.Built, r.sandbox.Policy.Root != nil
	if err := r.admit(); err != nil {
		return err
	}
	id := stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}
	if a := r.cmd.SysProcAttr; a != nil && a.Credential != nil {
		id = stage.Identity{UID: int(a.Credential.Uid), GID: int(a.Credential.Gid)}
	}
	var err error
	if r.template, err = r.sandbox.Template(id); err != nil {
		return err
	}
	if err := r.load(id); err != nil {
		r.exe.Close() // a nil one does not mind
		r.own.remove()
		return err
	}
	r.exchange()
	r.began = time.Now()
	return nil
}

// admit refuses a command that cannot enter, or not whole.
func (r *Run) admit() error {
	if err := r.checkFields(); err != nil {
		return err
	}
	if a := r.cmd.SysProcAttr; a != nil {
		for _, f := range []struct {
			name string
			set  bool
		}{
			{"Chroot", a.Chroot != ""}, {"Cloneflags", a.Cloneflags != 0}, {"Unshareflags", a.Unshareflags != 0},
			{"UidMappings", len(a.UidMappings) > 0}, {"GidMappings", len(a.GidMappings) > 0}, {"AmbientCaps", len(a.AmbientCaps) > 0},
			{"Ptrace", a.Ptrace},
		} {
			if f.set {
				return &policy.PolicyError{Field: "SysProcAttr." + f.name, Problem: "cannot be combined with a sandbox, which builds its own", Remedy: "leave it unset; express it in the Policy"}
			}
		}
	}
	if err := r.sandbox.checkDescriptors(r.cmd); err != nil {
		return err
	}
	if r.inRoot {
		r.saved.dir = r.cmd.Dir // it is one inside
	} else if r.born != nil || r.built != nil {
		return &policy.PolicyError{Field: "Cmd.Born", Problem: "applies only with Policy.Root, which is not set"}
	} else if err := r.checkTool(); err != nil {
		return err
	}
	if err := r.launcher.Check(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if extra, most := len(r.cmd.ExtraFiles), r.launcher.MaxFiles-3; extra > most {
		return &policy.PolicyError{Field: "ExtraFiles", Value: fmt.Sprint(extra), Problem: fmt.Sprintf("are more than the %d that a sandbox can pass on", most), Remedy: "pass fewer"}
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && Serves(r.sandbox.Policy.Network) {
		return r.unserved()
	}
	return nil
}

// load makes the stage's program and its control socket.
func (r *Run) load(id stage.Identity) error {
	network, err := r.network()
	if err != nil {
		return err
	}
	if r.template.NeedsOwn {
		if err := r.own.make(r.sandbox.Policy, network, id); err != nil {
			return err
		}
	}
	if err := r.sandbox.fillKept(); err != nil {
		return err
	}
	entry := stage.Run{
		Path: r.path, Argv: r.cmd.Args, Env: r.enterEnviron(), Own: r.own.made, ExtraFiles: len(r.cmd.ExtraFiles), Tell: r.observer.wanted(), Quiet: r.quiet, Ignored: launch.IgnoredSignals(),
		Files: network.Files(), Connects: network.Connects(),
	}
	if len(entry.Argv) == 0 {
		entry.Argv = []string{r.path}
	}
	if tooLong(r.path, entry.Argv, entry.Env) {
		return &fs.PathError{Op: "fork/exec", Path: r.path, Err: syscall.E2BIG}
	}
	if r.inRoot {
		if err := r.enterRoot(&entry); err != nil {
			return err
		}
	}
	if r.program, err = r.template.Sealed(entry); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if r.control, err = stage.NewControl(); err != nil {
		r.program.Close()
		return fmt.Errorf("sandbox: %w", err)
	}
	r.control.Gate = r.pass
	return nil
}

// exchange puts the stage's environment and descriptors in the place of the
// tool's, until os/exec has read them.
func (r *Run) exchange() {
	r.mu.Lock()
	defer r.mu.Unlock()
	extra := r.cmd.ExtraFiles
	r.saved = saved{entered: true, env: r.cmd.Env, extra: extra, dir: r.cmd.Dir}
	r.cmd.ExtraFiles = r.launcher.Files(extra, r.program, r.control.Child, r.given...)
	if r.cmd.Dir = r.dir; r.inRoot {
		r.cmd.Dir = ""
	}
	r.cmd.Env = launch.Environment(3 + len(extra))
	r.closeGate()
}
