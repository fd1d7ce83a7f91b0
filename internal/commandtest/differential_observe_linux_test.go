package commandtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"syscall"
)

// sentinels are what errors are compared with.
var sentinels = map[string]error{
	"fs.ErrNotExist": fs.ErrNotExist, "fs.ErrPermission": fs.ErrPermission, "fs.ErrInvalid": fs.ErrInvalid, "os.ErrClosed": os.ErrClosed,
	"exec.ErrNotFound": exec.ErrNotFound, "exec.ErrDot": exec.ErrDot, "exec.ErrWaitDelay": exec.ErrWaitDelay,
	"context.Canceled": context.Canceled, "context.DeadlineExceeded": context.DeadlineExceeded,
	"os.ErrProcessDone": os.ErrProcessDone, "errors.ErrUnsupported": errors.ErrUnsupported,
	"ENOENT": syscall.ENOENT, "EACCES": syscall.EACCES, "ENOEXEC": syscall.ENOEXEC, "ENOTDIR": syscall.ENOTDIR, "ELOOP": syscall.ELOOP,
	"E2BIG": syscall.E2BIG, "EPERM": syscall.EPERM, "EINVAL": syscall.EINVAL, "EPIPE": syscall.EPIPE, "ETXTBSY": syscall.ETXTBSY,
	"ENAMETOOLONG": syscall.ENAMETOOLONG, "ENOTTY": syscall.ENOTTY, "errCase": errCase,
}

// errCase is an error that cases return from readers, writers and Cancel.
var errCase = errors.New("the case's own error")

// err notes all that can be asked of an error.
func (w *world) err(key string, err error) {
	w.saw(key, fmt.Sprintf("%v", err))
	if err == nil {
		return
	}
	w.saw(key+", type", fmt.Sprintf("%T", err))
	for _, name := range slices.Sorted(maps.Keys(sentinels)) {
		if errors.Is(err, sentinels[name]) {
			w.saw(key+", is "+name, true)
		}
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		w.saw(key+", Stderr", fmt.Sprintf("%q", exit.Stderr))
		w.saw(key+", code", exit.ExitCode())
	}
	var look *exec.Error
	if errors.As(err, &look) {
		w.saw(key+", exec.Error", look.Name)
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		w.saw(key+", PathError", path.Op+" "+path.Path)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		w.saw(key+", SyscallError", call.Syscall)
	}
}

// state notes all that can be asked of a command that has been started, or not.
func (w *world) state(c *command) {
	w.saw("Process is nil", c.Process == nil)
	w.saw("ProcessState is nil", c.ProcessState == nil)
	s := c.ProcessState
	if s == nil {
		return
	}
	ws := s.Sys().(syscall.WaitStatus)
	w.saw("state", fmt.Sprintf("%v; code %d success %t exited %t; signalled %t by %v; core %t; status %#x", s, s.ExitCode(), s.Success(), s.Exited(),
		ws.Signaled(), ws.Signal(), ws.CoreDump(), uint32(ws)&^0x80))
	w.saw("the state's pid is the process's", s.Pid() == c.Process.Pid)
	_, rusage := s.SysUsage().(*syscall.Rusage)
	w.saw("usage is there", rusage && s.UserTime()+s.SystemTime() > 0)
}

// fields is what a caller finds in a Cmd's fields.
func (c *command) fields() map[string]string {
	return map[string]string{
		"Path": *c.path, "Args": fmt.Sprintf("%q", c.Args), "Env": fmt.Sprintf("%t %q", c.Env == nil, c.Env), "Dir": c.Dir,
		"ExtraFiles": names(c.ExtraFiles), "SysProcAttr": fmt.Sprintf("%p", c.SysProcAttr), "Err": fmt.Sprint(c.Err), "WaitDelay": fmt.Sprint(c.WaitDelay),
		"Stdin": fmt.Sprintf("%T", c.Stdin), "Cancel is nil": fmt.Sprint(c.Cancel == nil),
	}
}

func names(files []*os.File) string {
	var list []string
	for _, f := range files {
		if f == nil {
			list = append(list, "nil")
		} else {
			list = append(list, f.Name())
		}
	}
	return fmt.Sprint(files == nil, list)
}

// run runs a command, its output into buffers, and notes everything.
func (w *world) run(c *command) {
	var out, errs strings.Builder
	if c.Stdout == nil {
		c.Stdout = &out
	}
	if c.Stderr == nil {
		c.Stderr = &errs
	}
	before := c.fields()
	err := c.Start()
	w.err("Start", err)
	if err == nil {
		w.saw("Start leaves the fields alone", reflect.DeepEqual(before, c.fields()))
		w.err("Wait", c.Wait())
	}
	w.after(c, before)
	w.saw("stdout", out.String())
	w.saw("stderr", errs.String())
}

// after notes what is left in a command when it has ended.
func (w *world) after(c *command, before map[string]string) {
	w.state(c)
	after := c.fields()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if name != "SysProcAttr" {
			w.saw("field "+name, after[name])
		}
		if before[name] != after[name] {
			w.saw("field "+name+" was", before[name])
		}
	}
	w.saw("String", stringOf(c))
}

// stringOf is what String returns, if it returns.
func stringOf(c *command) (s string) {
	defer func() {
		if e := recover(); e != nil {
			s = "(panics)"
		}
	}()
	return c.String()
}
