package runner

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/output"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
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
	r.path, r.function, r.dir, r.born, r.built, r.inRoot = t.Path, t.Function, r.startDir(), t.Born, t.Built, r.sandbox.Policy.Root != nil
	if err := r.admit(); err != nil {
		return err
	}
	id := stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}
	if a := r.cmd.SysProcAttr; a != nil && a.Credential != nil {
		id = stage.Identity{UID: int(a.Credential.Uid), GID: int(a.Credential.Gid)}
	}
	if r.sandbox.Policy.Nested && id.UID == 0 {
		return &policy.PolicyError{Field: "Nested", Value: "user 0", Problem: "is for commands of an ordinary user: what uid 0 mounts and marks in its own namespaces is the machine's root's",
			Remedy: "set the command's SysProcAttr.Credential, or run the harness as an ordinary user"}
	}
	r.id = id
	r.borrow(id)
	var err error
	if r.template, err = r.sandbox.Template(id, r.session != nil); err != nil {
		return err
	}
	stdout, stderr, err := r.tap()
	if err != nil {
		return err
	}
	if err := r.load(id); err != nil {
		r.forgetOutput()
		r.exe.Close() // a nil one does not mind
		r.way.Close()
		if r.call != nil {
			r.call.Close()
		}
		return err
	}
	r.exchange(stdout, stderr)
	if !r.quiet { // a method of Run abandons it itself
		launch.AtEndOfStart(r.cmd, r.abandonUnstarted)
	}
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
	if a := r.cmd.SysProcAttr; a != nil && a.Setctty && a.Ctty > 0 && a.Ctty == r.launcher.Layout(3+len(r.cmd.ExtraFiles)).Swapped {
		return &policy.PolicyError{Field: "SysProcAttr.Ctty", Value: fmt.Sprint(a.Ctty), Problem: "is the descriptor that a stage is executed from", Remedy: "put the terminal elsewhere among ExtraFiles"}
	}
	if err := r.sandbox.checkDescriptors(r.cmd); err != nil {
		return err
	}
	if r.session != nil {
		if err := r.admitTo(r.session); err != nil {
			return err
		}
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
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && r.sandbox.Networks.serves {
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
	if r.files = r.cmd.ExtraFiles; r.function != "" {
		if r.call, err = r.session.newCall(r.function, r.cmd.Args); err != nil {
			return err
		}
		r.files = append(slices.Clip(r.files), r.call.Files()...)
	}
	if r.template.NeedsOwn && r.session == nil {
		if err := r.own.make(r.sandbox.Policy, network, id); err != nil {
			return err
		}
	}
	if err := r.sandbox.fillKept(); err != nil {
		return err
	}
	entry := stage.Run{
		Path: r.path, Argv: r.cmd.Args, Env: r.enterEnviron(), Own: r.own.made, ExtraFiles: len(r.files), Tell: r.sandbox.Policy.Observe != nil, Quiet: r.quiet, Ignored: launch.IgnoredSignals(),
		Files: network.files, Connects: network.connects, Layout: r.launcher.Layout(3 + len(r.files)),
	}
	if len(entry.Argv) == 0 || r.function != "" {
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
	if a := r.cmd.SysProcAttr; r.session == nil {
		entry.Apart = r.apart()
		entry.OwnTTY = !entry.Apart && (a == nil || !a.Foreground)
	}
	if made := r.sandbox.made(); made != nil && r.session == nil {
		r.given = append(r.given[:0], made)
		entry.Given, entry.Made = 1, true
	}
	if r.session != nil {
		entry.Enters, entry.Given, entry.Batch, entry.Untimed = true, 1, r.sandbox.Plan.Batch, r.plain && !r.borrowed
		if r.way, entry.Shares, err = r.session.way(r.template); err != nil {
			return err
		}
		r.given = append(r.given[:0], r.way)
		entry.Exe, entry.Last = r.function != "", r.borrowed
	}
	if r.program, err = r.template.Sealed(entry); err != nil {
		return host.ShortOf(fmt.Errorf("sandbox: start: %w", err))
	}
	if r.control, err = stage.NewControl(); err != nil {
		r.program.Close()
		return fmt.Errorf("sandbox: %w", err)
	}
	r.control.Gate, r.control.KillBelow = r.pass, killBelow
	return nil
}

// exchange puts the stage's environment and descriptors in the place of the
// tool's, and what keeps its output in that of its writers, until os/exec has read them.
func (r *Run) exchange(stdout, stderr io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved = saved{entered: true, env: r.cmd.Env, extra: r.cmd.ExtraFiles, dir: r.cmd.Dir, stdout: r.cmd.Stdout, stderr: r.cmd.Stderr}
	r.cmd.Stdout, r.cmd.Stderr = stdout, stderr
	r.cmd.ExtraFiles = r.launcher.Files(r.files, r.program, r.control.Child, r.given...)
	if r.cmd.Dir = r.dir; r.inRoot {
		r.cmd.Dir = ""
	}
	r.cmd.Env = r.launcher.Layout(3 + len(r.files)).Env
	r.closeGate()
}

// tap returns what os/exec gets for Stdout and Stderr: for a session's command what keeps its output, if that is no file of the caller's.
func (r *Run) tap() (stdout, stderr io.Writer, err error) {
	stdout, stderr = r.cmd.Stdout, r.cmd.Stderr
	if r.session == nil || r.plain {
		return stdout, stderr, nil
	}
	p := r.session.outputs.begin()
	r.printed.Store(p)
	defer func() {
		if err != nil {
			r.forgetOutput()
		}
	}()
	same := sameWriter(stdout, stderr)
	if stdout, err = tapped(p.log, stdout); err != nil {
		return nil, nil, err
	}
	if same {
		return stdout, stdout, nil
	}
	stderr, err = tapped(p.log, stderr)
	return stdout, stderr, err
}

// tapped is what keeps what goes to a writer. A nil one is the null device to os/exec: a pipe that is read has the same to say to a tool.
func tapped(log *output.Log, w io.Writer) (io.Writer, error) {
	if w == nil {
		f, err := log.Pipe()
		if err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		return f, nil
	}
	if _, is := w.(*os.File); is {
		return w, nil
	}
	return log.Tee(w), nil
}

// sameWriter reports whether os/exec takes two writers for one.
func sameWriter(a, b io.Writer) bool {
	defer func() { recover() }() // of a type that cannot be compared
	return a == b
}

// forgetOutput says that the command was not started.
func (r *Run) forgetOutput() {
	if p := r.printed.Load(); p != nil {
		p.log.Abandon()
		r.session.outputs.forget(p.id)
	}
}

// borrow makes a single command's run that of a session that waits for one, and ends with it.
func (r *Run) borrow(id stage.Identity) {
	if r.prepared == nil || r.prepared.want.Load() == 0 {
		return
	}
	if r.unprepared = r.unsuited(); r.unprepared != "" {
		return
	}
	n, why := r.prepared.take(id)
	if r.unprepared = why; n == nil { // it was killed, or a command took it that did not start
		time.AfterFunc(refillAfter, func() { r.prepared.refill() })
		return
	}
	r.session, r.own, r.plain, r.borrowed = n, &n.own, true, true
}

// unsuited says what of the command a session's command has otherwise; "": nothing.
func (r *Run) unsuited() string {
	switch a := r.cmd.SysProcAttr; {
	case a != nil && (a.Credential != nil || a.Setsid || a.Setctty || a.Setpgid || a.Foreground || a.UseCgroupFD):
		return "the command's SysProcAttr has a Credential, or a session, process group, terminal or cgroup"
	case len(r.cmd.ExtraFiles) > stage.MostSessionFiles-3:
		return "the command has too many ExtraFiles"
	case r.made() != nil:
		return "the command was asked for its Environ before, and has a network"
	}
	for _, f := range []any{r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr} {
		if file, is := f.(*os.File); is && isTerminal(file) {
			return "the command has a terminal, which has a name inside only if it was there when the sandbox was made"
		}
	}
	return ""
}

// apart reports whether the tool leaves the harness's session, as that of a session or a prepared sandbox does: the stage passes on what signals it, and a terminal is
// not among the command's files. In the harness's process group, without a shell around the harness, a tool has the kernel send SIGHUP to all of
// that: it stops a child and leaves the group, and its end then orphans the group (kill_orphaned_pgrp in kernel/exit.c). Without a pid namespace a
// tool with a group of its own can enter the harness's.
func (r *Run) apart() bool {
	if a := r.cmd.SysProcAttr; a != nil && (a.Setsid || a.Setctty || a.Setpgid && r.sandbox.Plan.Namespaces.PID || a.Foreground) {
		return false
	}
	for _, f := range []any{r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr} {
		if file, is := f.(*os.File); is && isTerminal(file) {
			return false
		}
	}
	return !slices.ContainsFunc(r.cmd.ExtraFiles, isTerminal)
}

func isTerminal(f *os.File) (is bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		is = err == nil
	})
	return is
}
