package sandbox

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
	if len(os.Args) > 0 && os.Args[0] == stageWord {
		runStage(os.Args)
	}
}

// contact is what connects a run with its process.
type contact struct {
	path     string // the tool's, as it was when the run entered
	own      string // the run's own directory; "": it has none
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

func (r *run) stagePath() string {
	path, err := executable()
	if err != nil {
		r.broken = fmt.Errorf("sandbox: find the harness's own file: %w", err)
		return "/nonexistent/holdfast"
	}
	return path
}

// enter runs in the middle of exec.Cmd.Start, after every change of the caller.
func (r *run) enter() error {
	if r.broken != nil {
		return r.broken
	}
	if err := r.checkCmd(); err != nil {
		return err
	}
	r.path, r.dir = r.tool(), r.startDir()
	if err := r.checkTool(); err != nil {
		return err
	}
	network, err := r.network()
	if err != nil {
		return err
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && (r.sandbox.ready.NetConfig.Proxied || r.sandbox.ready.NetConfig.SSHAgent) {
		return r.unserved()
	}
	if err := r.makeOwn(); err != nil {
		return err
	}
	env := r.enterEnviron()
	r.tag = newTag()
	e, err := r.sandbox.emission(darwin.Run{Tag: r.tag, Own: r.own, Proxies: network.Ports()})
	if err != nil {
		r.removeOwn()
		return err
	}
	if r.outside, r.inside, err = os.Pipe(); err != nil {
		r.removeOwn()
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
	r.cmd.Args = stageArgs(3+len(r.cmd.ExtraFiles), r.sandbox.ready.Limits, profileArgs(sandboxExec, e, tool, args))
	r.cmd.ExtraFiles = append(slices.Clone(r.cmd.ExtraFiles), r.inside)
	r.cmd.Env, r.cmd.Dir = env, r.dir
	r.cmd.SysProcAttr = ownGroup(r.attr)
	r.shut()
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
func (r *run) checkCmd() error {
	if err := r.checkEmbedded(); err != nil {
		return err
	}
	if r.hooks.born() != nil || r.hooks.built() != nil {
		return &PolicyError{Field: "Cmd.Born", Problem: "applies only with Policy.Root, which is not set"}
	}
	if a := r.cmd.SysProcAttr; a != nil {
		for _, f := range []struct {
			name string
			set  bool
		}{{"Chroot", a.Chroot != ""}, {"Ptrace", a.Ptrace}, {"Pgid", a.Pgid != 0}, {"Foreground", a.Foreground}} {
			if f.set {
				return &PolicyError{Field: "SysProcAttr." + f.name, Problem: "cannot be combined with a sandbox, which makes a process group of its own", Remedy: "leave it unset"}
			}
		}
	}
	return r.checkStrings()
}

// checkTool finds out what execve would say, which sandbox-exec says in an exit
// status that a tool may have as well.
func (r *run) checkTool() error {
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
		return &PolicyError{Field: "Path", Value: r.path, Problem: "is setuid or setgid, which seatbelt does not execute", Remedy: "use another program", Err: fs.ErrPermission}
	case !r.sandbox.sees(p):
		return &PolicyError{Field: "Path", Value: r.path, Problem: "the policy does not show the tool", Remedy: "add it, or its directory, to Files.Read", Err: fs.ErrNotExist}
	}
	return r.checkDir()
}

// putBack gives the exec.Cmd its other fields back.
func (r *run) putBack() {
	if r.entered {
		r.cmd.Args, r.cmd.SysProcAttr = r.args, r.attr
		r.entered = false
	}
}

// watch begins to mind the process, once it has been started.
func (r *run) watch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putBack()
	if r.watching || r.inside == nil || r.cmd.Process == nil {
		return
	}
	r.watching = true
	r.inside.Close()
	if r.net != nil {
		r.net.Serve()
	}
	pid := r.cmd.Process.Pid
	if limit := r.sandbox.ready.Policy.Limits.WallClock; limit > 0 {
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
func (r *run) listen(pid int) {
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
	r.closeNetwork()
	r.removeOwn()
	r.ended = time.Now()
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
func (r *run) settle() {
	r.restore()
	r.watch()
	if !r.isWatching() {
		return
	}
	<-r.empty
	if s := r.cmd.ProcessState; s != nil && r.stageErr == nil && r.trialErr == nil && doubtful(s.ExitCode()) {
		r.trialErr = r.sandbox.try(nil)
	}
}

// abandon lets go of what enter has made when Start failed after it.
func (r *run) abandon() {
	r.restore()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putBack()
	if r.watching {
		return
	}
	r.closeNetwork()
	if r.inside == nil {
		return
	}
	r.inside.Close()
	r.outside.Close()
	r.inside = nil
	r.removeOwn()
}

// killProcess ends the run's process group.
func (r *run) killProcess() error {
	err := syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	if err == syscall.ESRCH {
		err = r.cmd.Process.Kill()
	}
	return err
}

// failure is the error of a run in which sandbox-exec was never executed; nil: it was.
func (r *run) failure() error {
	<-r.decided
	return r.stageErr
}

// waitError adds what the run knows to os/exec's result.
func (r *run) waitError(err error) error {
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

func (r *run) dialInside(context.Context, uint16) (net.Conn, error) {
	return nil, &UnsupportedError{Bound: policy.BoundNetwork, What: "Network.Listen: servers inside cannot be reached", Reason: "macOS has no network namespaces", Remedy: "set Network.Host"}
}

// Wrap makes a command that was made elsewhere run inside the sandbox. On macOS a
// command has to be made by [Sandbox.Command].
func (s *Sandbox) Wrap(cmd *exec.Cmd) error {
	return fmt.Errorf("sandbox: Wrap on macOS: %w", errors.ErrUnsupported)
}

// ReportOf returns the report of a wrapped command; on macOS there is none.
func ReportOf(cmd *exec.Cmd) *Report { return nil }

// doubtful reports whether an exit status may be sandbox-exec's own.
func doubtful(status int) bool { return status == exitProfile || status == exitSystem }
