package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// contact is what connects a run with its stage.
type contact struct {
	given    []*os.File // what the stage is given beside its own
	exe      *os.File   // the last of them, if the run has opened it
	launcher *launch.Launcher
	control  *stage.Control
	program  *os.File
	template *stage.Template
	path     string // the tool's, as it was when the run entered
	own      string // the run's own directory; "": it has none
	watching bool
	silent   bool // the stage died without a word
	stuck    int  // a process that was killed and has not ended; set before empty is closed
}

// stagePath is what the exec.Cmd executes. It is fixed when the Cmd is made,
// since os/exec reads it before it asks for the context.
func (r *run) stagePath() string {
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
func (r *run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	if err := r.admit(); err != nil {
		return err
	}
	id, err := r.identity()
	if err != nil {
		return err
	}
	if r.template, err = r.sandbox.ready.Template(id); err != nil {
		return err
	}
	if err := r.load(id); err != nil {
		r.exe.Close() // a nil one does not mind
		r.removeOwn()
		return err
	}
	r.exchange()
	r.began = time.Now()
	return nil
}

// admit refuses a command that cannot enter, or not whole.
func (r *run) admit() error {
	if err := r.checkCmd(); err != nil {
		return err
	}
	r.path, r.dir = r.tool(), r.startDir()
	if r.inLayout() {
		r.saved.dir = r.cmd.Dir // it is one inside
	} else if r.hooks.born() != nil || r.hooks.built() != nil {
		return &PolicyError{Field: "Cmd.Born", Problem: "applies only with Policy.Root, which is not set"}
	} else if err := r.checkTool(); err != nil {
		return err
	}
	if err := r.launcher.Check(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if extra, most := len(r.cmd.ExtraFiles), r.launcher.MaxFiles-3; extra > most {
		return &PolicyError{Field: "ExtraFiles", Value: fmt.Sprint(extra), Problem: fmt.Sprintf("are more than the %d that a sandbox can pass on", most), Remedy: "pass fewer"}
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && runner.Serves(r.sandbox.ready.Policy.Network) {
		return r.unserved()
	}
	return nil
}

// load makes the stage's program and its control socket.
func (r *run) load(id stage.Identity) error {
	network, err := r.network()
	if err != nil {
		return err
	}
	if err := r.makeOwn(id); err != nil {
		return err
	}
	entry := stage.Run{
		Path: r.path, Argv: r.cmd.Args, Env: r.enterEnviron(), Own: r.own, ExtraFiles: len(r.cmd.ExtraFiles), Quiet: r.quiet, Ignored: launch.IgnoredSignals(),
		Files: network.Files(), Connects: network.Connects(),
	}
	if len(entry.Argv) == 0 {
		entry.Argv = []string{r.path}
	}
	if tooLong(r.path, entry.Argv, entry.Env) {
		return &fs.PathError{Op: "fork/exec", Path: r.path, Err: syscall.E2BIG}
	}
	if r.inLayout() {
		if err := r.layoutRun(&entry); err != nil {
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
func (r *run) exchange() {
	r.mu.Lock()
	defer r.mu.Unlock()
	extra := r.cmd.ExtraFiles
	r.saved = saved{entered: true, env: r.cmd.Env, extra: extra, dir: r.cmd.Dir}
	r.cmd.ExtraFiles = r.launcher.Files(extra, r.program, r.control.ChildEnd(), r.given...)
	if r.cmd.Dir = r.dir; r.inLayout() {
		r.cmd.Dir = ""
	}
	r.cmd.Env = launch.Environment(3 + len(extra))
	r.shut()
}

// checkCmd refuses what would break out of the sandbox's hands.
func (r *run) checkCmd() error {
	if err := r.checkEmbedded(); err != nil {
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
				return &PolicyError{Field: "SysProcAttr." + f.name, Problem: "cannot be combined with a sandbox, which builds its own", Remedy: "leave it unset; express it in the Policy"}
			}
		}
	}
	if err := r.checkDescriptors(); err != nil {
		return err
	}
	return r.checkStrings()
}

// checkTool finds out what execve would say where that can be known before
// anything is started.
func (r *run) checkTool() error {
	fail := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: r.path, Err: err} }
	if r.dir != "" {
		// os/exec's order: the directory is entered before the tool is looked up;
		// and its words: it looks at the directory itself unless SysProcAttr is set.
		info, err := os.Stat(r.dir)
		var errno syscall.Errno
		switch {
		case errors.As(err, &errno) && r.cmd.SysProcAttr == nil:
			return &fs.PathError{Op: "chdir", Path: r.dir, Err: errno}
		case err != nil:
			return fail(errno)
		case !info.IsDir():
			return fail(syscall.ENOTDIR)
		case !r.isAnotherUser() && unix.Faccessat(unix.AT_FDCWD, r.dir, unix.X_OK, unix.AT_EACCESS) == unix.EACCES:
			return fail(syscall.EACCES)
		}
	}
	p := r.toolPath()
	info, err := os.Stat(p)
	var errno syscall.Errno
	if errors.As(err, &errno) && !r.sandbox.sees(p) {
		return fail(errno)
	}
	if err == nil && !r.sandbox.sees(p) {
		return &PolicyError{Field: "Path", Value: r.path, Problem: "the policy does not show the tool", Remedy: "add it, or its directory, to Files.Read", Err: fs.ErrNotExist}
	}
	if err == nil && (info.IsDir() || info.Mode().Perm()&0o111 == 0) {
		return fail(syscall.EACCES)
	}
	if err := r.checkDir(); err != nil || r.quiet {
		return err // a method of ours hears what execve says inside
	}
	return r.checkExecutable()
}

// toolPath is the tool's path as os/exec takes it: relative to Dir.
func (r *run) toolPath() string {
	if filepath.IsAbs(r.path) {
		return r.path
	}
	return filepath.Join(r.dir, r.path)
}

// identity is who the stage will run as.
func (r *run) identity() (stage.Identity, error) {
	id := stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}
	if a := r.cmd.SysProcAttr; a != nil && a.Credential != nil {
		id = stage.Identity{UID: int(a.Credential.Uid), GID: int(a.Credential.Gid)}
	}
	return id, nil
}

// watch begins to read what the stage says. It is called once the process has
// been started, by os/exec's second question or by our own Start.
func (r *run) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching || r.control == nil {
		return
	}
	r.watching = true
	r.program.Close()
	r.exe.Close() // a nil one does not mind
	r.control.Passed()
	go r.listen()
}

// listen follows the run to its end.
func (r *run) listen() {
	err := r.control.AwaitStart()
	r.silent = errors.Is(err, io.EOF) || err != nil
	if r.net != nil && r.control.Held {
		r.net.Serve(r.control)
	}
	close(r.decided)
	r.control.AwaitEvidence()
	close(r.told)
	r.control.Drain()
	r.control.AwaitEmpty(r.over, stage.MostEnd)
	r.stuck = r.control.Stuck
	r.closeNetwork()
	r.removeOwn()
	r.ended = time.Now()
	r.control.Close()
	r.control.Release()
	close(r.empty) // the last: Wait returns now
}

// settle waits until the sandbox is empty and everything has been said.
func (r *run) settle() {
	r.restore()
	r.watch()
	if r.isWatching() {
		r.stageEnded()
		<-r.empty
	}
}

// abandon lets go of what enter has opened when Start failed after it.
func (r *run) abandon() {
	r.restore()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching {
		return
	}
	r.closeNetwork()
	if r.control == nil {
		return
	}
	r.program.Close()
	r.exe.Close()
	r.control.Close()
	r.control = nil
	r.removeOwn()
}

// killProcess ends the stage, and with it everything.
func (r *run) killProcess() error { return r.cmd.Process.Kill() }

// failure is the error of a tool that was never executed; nil: it was. It is
// called after decided is closed.
func (r *run) failure() error {
	<-r.decided
	if r.control.Held {
		return nil // listen goes on, and may yet hear of a failure
	}
	f := r.control.Failed
	switch {
	case f != nil && f.Exec():
		if hidden := (*PolicyError)(nil); f.Errno == syscall.ENOENT && !r.inLayout() && errors.As(r.checkExecutable(), &hidden) {
			return hidden
		}
		return &fs.PathError{Op: "fork/exec", Path: r.path, Err: f.Errno}
	case f != nil && r.template.StepName(f.Step) == "enter the working directory":
		return &fs.PathError{Op: "chdir", Path: r.dir, Err: f.Errno}
	case f != nil && r.control.GateErr != nil:
		return r.control.GateErr
	case f != nil:
		e := &StartError{Step: r.template.StepName(f.Step), In: placeName(f.Where), Err: f.Errno, Found: f.Found}
		if f.Step < len(r.sandbox.ready.Plan.Steps) {
			e.Field = r.sandbox.ready.Plan.Steps[f.Step].Field
		}
		return e
	}
	return nil // killed on the way, as a process of os/exec's may be: Wait tells
}

// waitError adds what the run knows to os/exec's result.
func (r *run) waitError(err error) error {
	switch {
	case r.control == nil || r.cmd.ProcessState == nil:
		return err
	case r.stuck != 0:
		return &StuckError{PID: r.stuck, Err: err}
	case r.control.Deadline:
		return &deadlineError{err}
	case r.control.Lost != nil:
		return r.processError(err)
	case !r.control.Held && r.cmd.ProcessState.Exited():
		return &StartError{Step: "run the stage", In: placeName(wire.InStage), Err: errSilent}
	}
	return err
}

// processError is the error of a run that ended with a process of the sandbox's own; nil:
// it did not.
func (r *run) processError(err error) *ProcessError {
	lost := r.control.Lost
	switch {
	case lost == nil:
		return nil
	case lost.Keeper:
		return &ProcessError{Process: "keeper", Status: "ended", Err: err}
	case lost.Status.Signaled():
		return &ProcessError{Process: "init", Status: "was killed: " + lost.Status.Signal().String(), Err: err}
	}
	return &ProcessError{Process: "init", Status: fmt.Sprintf("ended with status %d", lost.Status.ExitStatus()), Err: err}
}

// errSilent: a stage that exits without having said that the tool was held has
// not run it.
var errSilent = errors.New("the stage exited without reporting a status")
