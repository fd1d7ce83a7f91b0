package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// nowhere is a path below which no file can be: the interpreter's own look-ups begin there. Its directory is no place
// of the session's, since the builtin cd asks this process's kernel (access(2)) and no handler: the directory of a script is its
// variable PWD. And it is the directory for FIFOs, which the interpreter opens without its OpenHandler, by their names alone.
const nowhere = "/dev/null"

// interpretOutside runs a script in this process.
func (s *shell) interpretOutside(ctx context.Context, script string, f files) (int, error) {
	file, ok := parse(script, f)
	if !ok {
		return syntaxError, nil
	}
	if err := rewrite(file); err != nil {
		io.WriteString(f.err, err.Error()+"\n")
		return syntaxError, nil
	}
	h := &handlers{sess: s.sess, sourced: map[string]sourced{}}
	// The last of two values counts: what the script has as its TMPDIR is given back below.
	env := append(slices.Clone(s.state.Env), "TMPDIR="+nowhere)
	r, err := interp.New(interp.Env(users{expand.ListEnviron(env...), h}), interp.StdIO(f.in, f.out, f.err),
		interp.CallHandler(h.call), interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return h.exec }),
		interp.OpenHandler(h.open), interp.ReadDirHandler2(h.readDir), interp.StatHandler(h.stat))
	if err != nil {
		return 0, err
	}
	r.Dir = nowhere
	begin, err := exports("PWD", s.state.Dir, "TMPDIR", expand.ListEnviron(s.state.Env...).Get("TMPDIR").String())
	if err != nil {
		return 0, err
	}
	for _, stmt := range begin.Stmts {
		if err := r.Run(ctx, stmt); err != nil {
			return 0, err
		}
	}
	status, err := ended(r.Run(ctx, file))
	s.state = stateOf(r, r.Vars["PWD"].String())
	return status, err
}

// handlers serve an interpreter by a session.
type handlers struct {
	sess    *sandbox.Session
	sourced map[string]sourced // by the name that the builtin source is given in place of a file's
	sources int
	mu      sync.Mutex
}

// path is what a script means by a name. It is not cleaned: the session's kernel resolves it.
func path(ctx context.Context, name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	return interp.HandlerCtx(ctx).Env.Get("PWD").String() + "/" + name
}

// ofSession before the name of a builtin makes it that of the session's shell.
const ofSession = nowhere + "/builtin/"

// exec runs a program in the session. Its shell looks for it, with the script's PATH, and in what only the session has.
func (h *handlers) exec(ctx context.Context, args []string) error {
	hc := interp.HandlerCtx(ctx)
	script := `cd -- "$1" && shift && exec "$@"`
	name, builtin := strings.CutPrefix(args[0], ofSession)
	if builtin {
		script = `cd -- "$1" && shift && "$@"`
	}
	args = append([]string{"-c", script, "sh", hc.Env.Get("PWD").String(), name}, args[1:]...)
	c := h.sess.CommandContext(ctx, "/bin/sh", args...)
	c.Env = []string{} // none of this process's
	for name, v := range hc.Env.Each {
		if v.Exported && v.Kind == expand.String {
			c.Env = append(c.Env, name+"="+v.Str)
		}
	}
	c.Stdin, c.Stdout, c.Stderr = hc.Stdin, hc.Stdout, hc.Stderr
	err := c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &exit):
		return err
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return interp.ExitStatus(128 + w.Signal())
	}
	return interp.ExitStatus(exit.ExitCode())
}

// devices are files that are no regular ones and the same everywhere. Of others Files opens none, so that a FIFO or a terminal
// cannot hold this process up.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// open is asked for redirections, $(<file), and by source.
func (h *handlers) open(ctx context.Context, name string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if s, ok := h.takeSourced(name); ok {
		return stream{bytes.NewReader(s.text), io.Discard}, s.err
	}
	hc := interp.HandlerCtx(ctx)
	switch name = path(ctx, name); name {
	case "/dev/stdin":
		return stream{hc.Stdin, io.Discard}, nil
	case "/dev/stdout":
		return stream{strings.NewReader(""), hc.Stdout}, nil
	case "/dev/stderr":
		return stream{strings.NewReader(""), hc.Stderr}, nil
	}
	if slices.Contains(devices, name) {
		return os.OpenFile(name, flag&^os.O_CREATE, perm)
	}
	f, err := h.sess.Files().WithContext(ctx).OpenFile(name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return f, nil
}

// pathError is what the interpreter prints of an error; it ends the script at any other one.
func pathError(op, name string, err error) error {
	if _, ok := err.(*fs.PathError); ok {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// readDir is asked for globs.
func (h *handlers) readDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	return h.sess.Files().WithContext(ctx).ReadDir(path(ctx, name))
}

// stat is asked by what rewrite and call have left to the interpreter, which is nothing.
func (h *handlers) stat(ctx context.Context, name string, follow bool) (fs.FileInfo, error) {
	if follow {
		return h.sess.Files().WithContext(ctx).Stat(name)
	}
	return h.sess.Files().WithContext(ctx).Lstat(name)
}

// A stream is a file that others close.
type stream struct {
	io.Reader
	io.Writer
}

func (stream) Close() error { return nil }

// users are variables, and for ~NAME the homes of the session's users: the interpreter asks for "HOME NAME" before it looks into this
// process's list of users.
type users struct {
	expand.Environ
	h *handlers
}

func (u users) Get(name string) expand.Variable {
	user, ok := strings.CutPrefix(name, "HOME ")
	if !ok {
		return u.Environ.Get(name)
	}
	list, _ := u.h.sess.Files().ReadFile("/etc/passwd")
	home := "~" + user // as it was written
	for line := range strings.Lines(string(list)) {
		if f := strings.Split(line, ":"); len(f) > 5 && f[0] == user {
			home = f[5]
			break
		}
	}
	return expand.Variable{Set: true, Kind: expand.String, Str: home}
}

// exports is a script that sets and exports variables.
func exports(pairs ...string) (*syntax.File, error) {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString("export " + pairs[i] + "=" + quoted(pairs[i+1]) + "\n")
	}
	return syntax.NewParser().Parse(strings.NewReader(b.String()), "")
}
