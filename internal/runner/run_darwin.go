package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// The stage is this very file, executed with another argv[0].
func init() {
	if len(os.Args) > 0 && os.Args[0] == darwin.StageWord {
		runStage(os.Args)
	}
}

// contact is what connects a run with its process.
type contact struct {
	path     string // the tool's, as it was when the run entered
	tag      string
	entered  bool
	args     []string             // the caller's
	attr     *syscall.SysProcAttr // the caller's
	inside   *os.File             // the pipe's end that the stage gets
	outside  *os.File
	watching bool
	stageErr error // why sandbox-exec was not executed
	trialErr error // why it has not applied the profile
	timer    *time.Timer
	late     bool // ended at the deadline
	denied   *[]Denial
}

func (r *Run) stagePath() string {
	path, err := executable()
	if err != nil {
		r.broken = fmt.Errorf("sandbox: find the harness's own file: %w", err)
		return "/nonexistent/holdfast"
	}
	return path
}

// enter runs in the middle of exec.Cmd.Start, after every change of the caller.
func (r *Run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	t := r.tool()
	r.path, r.dir = t.Path, r.startDir()
	if err := r.checkCmd(t); err != nil {
		return err
	}
	if err := r.checkTool(); err != nil {
		return err
	}
	network, err := r.network()
	if err != nil {
		return err
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && (r.sandbox.NetConfig.Proxied || r.sandbox.NetConfig.SSHAgent) {
		return r.unserved()
	}
	if needed, _ := r.sandbox.Profile.NeedsOwn(); needed {
		uid, gid := user(r.cmd)
		if err := r.own.make(r.sandbox, network, uid, gid); err != nil {
			return err
		}
	}
	if err := r.sandbox.fillKept(); err != nil {
		r.own.remove()
		return err
	}
	env := r.enterEnviron()
	r.tag = newTag()
	e, err := r.sandbox.Emission(darwin.Run{Tag: r.tag, Own: r.own.made, Proxies: network.Ports()})
	if err != nil {
		r.own.remove()
		return err
	}
	if r.outside, r.inside, err = os.Pipe(); err != nil {
		r.own.remove()
		return fmt.Errorf("sandbox: %w", err)
	}
	var args []string
	if len(r.cmd.Args) > 1 {
		args = r.cmd.Args[1:]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved = saved{entered: true, env: r.cmd.Env, extra: r.cmd.ExtraFiles, dir: r.cmd.Dir}
	r.entered, r.args, r.attr = true, r.cmd.Args, r.cmd.SysProcAttr
	tool := r.path
	if !filepath.IsAbs(tool) {
		tool, _ = filepath.Abs(filepath.Join(r.dir, tool)) // sandbox-exec would look in PATH
	}
	r.cmd.Args = darwin.StageArgs(3+len(r.cmd.ExtraFiles), r.sandbox.Limits, darwin.ProfileArgs(darwin.SandboxExec, e, tool, args))
	r.cmd.ExtraFiles = append(slices.Clone(r.cmd.ExtraFiles), r.inside)
	r.cmd.Env, r.cmd.Dir = env, r.dir
	r.cmd.SysProcAttr = ownGroup(r.attr)
	r.closeGate()
	r.began = time.Now()
	return nil
}

// ownGroup makes the run a process group of its own, by which it is killed.
func ownGroup(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	own := syscall.SysProcAttr{}
	if a != nil {
		own = *a
	}
	if !own.Setsid {
		own.Setpgid = true
	}
	return &own
}

// checkCmd refuses what would break out of the sandbox's hands.
func (r *Run) checkCmd(t Tool) error {
	if err := r.checkFields(); err != nil {
		return err
	}
	if t.Born != nil || t.Built != nil {
		return &policy.PolicyError{Field: "Cmd.Born", Problem: "applies only with Policy.Root, which is not set"}
	}
	if a := r.cmd.SysProcAttr; a != nil {
		for _, f := range []struct {
			name string
			set  bool
		}{{"Chroot", a.Chroot != ""}, {"Ptrace", a.Ptrace}, {"Pgid", a.Pgid != 0}, {"Foreground", a.Foreground}} {
			if f.set {
				return &policy.PolicyError{Field: "SysProcAttr." + f.name, Problem: "cannot be combined with a sandbox, which makes a process group of its own", Remedy: "leave it unset"}
			}
		}
	}
	return nil
}

// checkTool finds out what execve would say, which sandbox-exec says in an exit
// status that a tool may have as well.
func (r *Run) checkTool() error {
	fail := func(err error) error { return &fs.PathError{Op: "fork/exec", Path: r.path, Err: err} }
	p := r.path
	if !filepath.IsAbs(p) {
		p = filepath.Join(r.dir, p)
	}
	info, err := os.Stat(p)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return fail(errno)
	case err != nil:
		return fail(err)
	case info.IsDir() || info.Mode().Perm()&0o111 == 0:
		return fail(syscall.EACCES)
	case info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return &policy.PolicyError{Field: "Path", Value: r.path, Problem: "is setuid or setgid, which seatbelt does not execute", Remedy: "use another program", Err: fs.ErrPermission}
	case !r.sandbox.shows(p):
		return &policy.PolicyError{Field: "Path", Value: r.path, Problem: "the policy does not show the tool", Remedy: "add it, or its directory, to Files.Read", Err: fs.ErrNotExist}
	}
	return r.checkDir()
}

// outcome is how the run ended. Its exit status is told to os/exec alone.
func (r *Run) outcome() policy.Ended {
	e := policy.Ended{Status: "ended", ExitCode: -1}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stageErr != nil:
		e.Status, e.Err = "not started", r.stageErr.Error()
	case r.late:
		e.Status, e.Err = "ended at its deadline, "+r.sandbox.Policy.Limits.WallClock.String(), ErrDeadline.Error()
	case r.caller.Err() != nil:
		e.Err = r.caller.Err().Error()
	}
	return e
}

// putBack gives the exec.Cmd its other fields back.
func (r *Run) putBack() {
	if r.entered {
		r.cmd.Args, r.cmd.SysProcAttr = r.args, r.attr
		r.entered = false
	}
}

// watch begins to mind the process, once it has been started.
func (r *Run) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putBack()
	if r.watching || r.inside == nil || r.cmd.Process == nil {
		return
	}
	r.watching = true
	r.inside.Close()
	if r.sandbox.Policy.Observe != nil {
		r.observer.started(r.began, policy.Started{PID: r.cmd.Process.Pid, Tool: r.path, Args: slices.Clone(r.cmd.Args), Dir: r.dir})
	}
	if r.net != nil {
		r.net.Serve()
	}
	pid := r.cmd.Process.Pid
	if limit := r.sandbox.Policy.Limits.WallClock; limit > 0 {
		r.timer = time.AfterFunc(limit, func() {
			r.mu.Lock()
			r.late = true
			r.mu.Unlock()
			killGroup(pid)
		})
	}
	go r.listen(pid)
}

// listen follows the run to its end. The group is killed before anybody has waited
// for its leader, whose number is therefore no other's.
func (r *Run) listen(pid int) {
	text, _ := io.ReadAll(io.LimitReader(r.outside, 1<<16))
	r.outside.Close()
	r.stageErr = stageError(text)
	close(r.decided)
	close(r.told)
	awaitExit(pid)
	killGroup(pid)
	if r.timer != nil {
		r.timer.Stop()
	}
	r.made().Close()
	r.own.remove()
	r.ended = time.Now()
	if r.sandbox.Policy.Observe != nil {
		e := r.outcome()
		for _, v := range r.sandbox.Complete(r, &e) {
			r.observer.denied(v)
		}
		r.observer.ended(r.ended, e)
	}
	close(r.empty)
}

// killGroup kills the process group of the run.
func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) }

// awaitExit returns when the process has ended. It does not wait for it, which is
// os/exec's to do.
func awaitExit(pid int) {
	queue, err := unix.Kqueue()
	if err != nil {
		return
	}
	defer unix.Close(queue)
	change := unix.Kevent_t{Ident: uint64(pid), Filter: unix.EVFILT_PROC, Flags: unix.EV_ADD | unix.EV_ONESHOT, Fflags: unix.NOTE_EXIT}
	var events [1]unix.Kevent_t
	for {
		n, err := unix.Kevent(queue, []unix.Kevent_t{change}, events[:], nil)
		if n > 0 || err != nil && err != unix.EINTR { // ESRCH: it has ended already
			return
		}
	}
}

// settle waits until the group is dead, and then asks, if the exit status leaves
// it open, whether the profile had been applied.
func (r *Run) settle() {
	r.restore()
	r.watch()
	if !r.isWatching() {
		return
	}
	<-r.empty
	if s := r.cmd.ProcessState; s != nil && r.stageErr == nil && r.trialErr == nil && doubtful(s.ExitCode()) {
		r.trialErr = r.sandbox.Try()
	}
}

// abandon lets go of what enter has made when Start failed after it.
func (r *Run) abandon() {
	r.restore()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putBack()
	if r.watching {
		return
	}
	r.made().Close()
	if r.inside == nil {
		return
	}
	r.inside.Close()
	r.outside.Close()
	r.inside = nil
	r.own.remove()
}

// killProcess ends the run's process group.
func (r *Run) killProcess() error {
	err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	if err == syscall.ESRCH {
		err = r.cmd.Process.Kill()
	}
	return err
}

// failure is the error of a run in which sandbox-exec was never executed; nil: it was.
func (r *Run) failure() error {
	<-r.decided
	return r.stageErr
}

// killLeft has nothing to end: every process of a run ends with its tool.
func (r *Run) killLeft() (was bool, stuck error) { return false, nil }

// waitError adds what the run knows to os/exec's result.
func (r *Run) waitError(err error) error {
	r.mu.Lock()
	late := r.late
	r.mu.Unlock()
	switch {
	case r.stageErr != nil:
		return r.stageErr
	case r.trialErr != nil:
		return r.trialErr
	case late && r.cmd.ProcessState != nil:
		return &deadlineError{err}
	}
	return err
}

// DialInside connects to a port of the tool's loopback, which macOS cannot give it.
func (r *Run) DialInside(context.Context, uint16) (net.Conn, error) {
	return nil, &policy.UnsupportedError{Bound: policy.BoundNetwork, What: "Network.Listen: servers inside cannot be reached", Reason: "macOS has no network namespaces", Remedy: "set Network.Host"}
}

// Wrap makes a command that was made elsewhere run inside the sandbox. On macOS a
// command has to be made by a sandbox.
func (s *Sandbox) Wrap(cmd *exec.Cmd) error {
	return fmt.Errorf("sandbox: Wrap on macOS: %w", errors.ErrUnsupported)
}

// Of returns the run of a wrapped command; on macOS there is none.
func Of(cmd *exec.Cmd) *Run { return nil }

// doubtful reports whether an exit status may be sandbox-exec's own.
func doubtful(status int) bool { return status == darwin.ExitProfile || status == darwin.ExitSystem }
