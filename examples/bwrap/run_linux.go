package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// run carries the options out. The status is the command's.
func run(o *options, say *speaker) (int, error) {
	l, err := o.policy()
	if err != nil {
		return 0, err
	}
	s, err := sandbox.New(l.policy)
	if err != nil {
		return 0, l.say(err)
	}
	defer s.Close()
	closeOthers(o.named())
	cmd := s.Command(o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	if o.argv0 != nil {
		cmd.Args[0] = *o.argv0
	}
	if wd, err := os.Getwd(); err == nil {
		cmd.Env = append(cmd.Env, "PWD="+wd) // which Start changes, unless the command starts there
	}
	if o.chdir != nil {
		cmd.Dir = *o.chdir
		cmd.Env = append(cmd.Env, "PWD="+cmd.Dir)
	}
	if err := o.share(cmd); err != nil {
		return 0, err
	}
	if o.newSession {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	o.tell(cmd)
	return o.follow(cmd, l)
}

// named are the descriptors that this program goes on to use.
func (o *options) named() []int {
	named := append([]int{o.sync, o.block, o.usernsBlock, o.info, o.jsonStatus, o.userns, o.userns2, o.pidns}, o.shared...)
	for _, s := range o.steps {
		named = append(named, s.fd)
	}
	return named
}

// share lets the command have the descriptors of --share-fd under their numbers.
func (o *options) share(cmd *sandbox.Cmd) error {
	if len(o.shared) == 0 {
		return nil
	}
	if most := slices.Max(o.shared); most > 2 {
		cmd.ExtraFiles = make([]*os.File, most-2)
	}
	for _, fd := range o.shared {
		file, err := open(fd)
		if err != nil {
			return because(err, "Can't share fd %d", fd)
		}
		if fd > 2 {
			cmd.ExtraFiles[fd-3] = file
		}
	}
	return nil
}

// follow starts the command, passes signals on, and waits until everything
// inside has ended.
func (o *options) follow(cmd *sandbox.Cmd, l layoutOf) (int, error) {
	parent, err := o.parent()
	if err != nil {
		return 0, err
	}
	signals := catch(cmd)
	if err := cmd.Start(); err != nil {
		return 0, o.sayStart(l, err)
	}
	l.close()
	go relay(signals, cmd.Process, o.newSession)
	if parent != nil {
		go parent.await(func() { cmd.Process.Kill() })
	}
	err = cmd.Wait()
	status := statusOf(cmd.ProcessState)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	o.tellEnd(status)
	return status, nil
}

// statusOf is the command's status as a shell has it.
func statusOf(state *os.ProcessState) int {
	if state == nil {
		return 255
	}
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return state.ExitCode()
}

// sayStart words the failure of Start.
func (o *options) sayStart(l layoutOf, err error) error {
	var wall *sandbox.StartError
	var path *fs.PathError
	switch {
	case errors.As(err, &wall):
		return l.sayWall(wall)
	case errors.As(err, &path) && path.Op == "chdir":
		return because(path.Err, "Can't chdir to %s", path.Path)
	case errors.As(err, &path):
		return because(path.Err, "execvp %s", o.command[0])
	}
	return l.say(err)
}

// say words a policy's error: by the step that its field comes from.
func (l layoutOf) say(err error) error {
	var bad *sandbox.PolicyError
	if !errors.As(err, &bad) {
		return err
	}
	s, ok := l.stepOf(bad.Field)
	switch {
	case !ok:
		return err
	case bad.Err != nil && s.fd >= 0:
		return because(bad.Err, "Can't find source path /proc/self/fd/%d", s.fd)
	case bad.Err != nil:
		return because(bad.Err, "Can't find source path %s", s.source)
	}
	return complain("%s %s: %s", s.option, s.dest, bad.Problem)
}

func (l layoutOf) stepOf(field string) (step, bool) {
	var i int
	if n, _ := fmt.Sscanf(field, "Root.Entries[%d]", &i); n != 1 || i >= len(l.steps) {
		return step{}, false
	}
	return l.steps[i], true
}

// sayWall words what could not be built.
func (l layoutOf) sayWall(e *sandbox.StartError) error {
	if s, ok := l.stepOf(e.Field); ok {
		return s.say(e)
	}
	switch {
	case strings.HasPrefix(e.Field, "Locks["):
		return because(e.Err, "Unable to %s", strings.Replace(e.Step, "lock ", "lock file ", 1))
	case e.Step == "check that no user namespace can be made":
		return complaint("creation of new user namespaces was not disabled as requested")
	case e.Step == "clone a process" && errors.Is(e.Err, syscall.EPERM):
		return complaint("No permissions to create a new namespace, likely because the kernel does not allow non-privileged user namespaces. See the output of Holdfast's examples/doctor for what would change it.")
	case e.Step == "clone a process" && errors.Is(e.Err, syscall.ENOSPC):
		return complaint("Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)")
	case e.Step == "clone a process":
		return because(e.Err, "Creating new namespace failed")
	}
	return because(e.Err, "Can't %s", e.Step)
}

// say words why a step failed.
func (s step) say(e *sandbox.StartError) error {
	exists := errors.Is(e.Err, syscall.EEXIST)
	switch entry := s.entry.(type) {
	case rootfs.Symlink:
		switch {
		case e.Found != "":
			return complain("Can't make symlink at %s: existing destination is %s", s.dest, e.Found)
		case errors.Is(e.Err, syscall.EINVAL):
			return complain("Can't make symlink at %s: destination exists and is not a symlink", s.dest)
		}
		return because(e.Err, "Can't make symlink at %s", s.dest)
	case rootfs.Chmod:
		return because(e.Err, "Can't chmod %s %s", s.source, s.dest)
	case rootfs.RemountReadOnly:
		return because(e.Err, "Can't remount readonly on %s", s.dest)
	case rootfs.File:
		return because(e.Err, "Can't create file %s", s.dest)
	case rootfs.DataBind:
		return because(e.Err, "Can't create file at %s", s.dest)
	case rootfs.Proc:
		return because(e.Err, "Can't mount proc on %s", s.dest)
	case rootfs.Overlay, rootfs.TmpOverlay, rootfs.ReadOnlyOverlay:
		if errors.Is(e.Err, syscall.ELOOP) {
			return complain("Can't make overlay mount on %s: Overlay directories may not overlap, nor have become symbolic links", s.dest)
		}
		return because(e.Err, "Can't make overlay mount on %s", s.dest)
	case rootfs.Bind:
		if errors.Is(e.Err, syscall.ESTALE) && entry.File == nil && s.fd >= 0 {
			return because(e.Err, "Race condition binding dirfd")
		}
		if !exists && !errors.Is(e.Err, syscall.EROFS) && !errors.Is(e.Err, syscall.ENOTDIR) && !errors.Is(e.Err, syscall.EACCES) {
			return because(e.Err, "Can't bind mount %s on %s", s.source, s.dest)
		}
	}
	return because(e.Err, "Can't mkdir %s", s.dest)
}
