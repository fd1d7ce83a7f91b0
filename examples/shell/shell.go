package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// A shell runs scripts in a session, one after another.
type shell struct {
	sess    *sandbox.Session
	outside bool
	state   state
}

// A state is what lasts from one script to the next.
type state struct {
	Dir string
	Env []string
}

// files are a script's standard input, output and error.
type files struct{ in, out, err *os.File }

// open makes a shell that begins as a command of the session does.
func open(sess *sandbox.Session, outside bool) (*shell, error) {
	c := sess.Command("/bin/sh", "-c", "pwd")
	dir, err := c.Output()
	if err != nil {
		return nil, err
	}
	// Not os.Environ: the policy keeps secrets out of this one.
	return &shell{sess, outside, state{strings.TrimSuffix(string(dir), "\n"), c.Environ()}}, nil
}

// run runs a script. The error is not the script's, which has a status.
func (s *shell) run(ctx context.Context, script string, f files) (status int, err error) {
	if s.outside {
		return s.interpretOutside(ctx, script, f)
	}
	return s.interpretInside(ctx, script, f)
}

// parse reads a script. An error is printed as a shell does.
func parse(script string, f files) (*syntax.File, bool) {
	file, err := syntax.NewParser().Parse(strings.NewReader(script), "")
	if err != nil {
		fmt.Fprintln(f.err, err)
	}
	return file, err == nil
}

// syntaxError is the status of a script that cannot be parsed.
const syntaxError = 2

// ended tells the status of a script from an error of the interpreter's.
func ended(err error) (status int, _ error) {
	var code interp.ExitStatus
	if errors.As(err, &code) {
		return int(code), nil
	}
	return 0, err
}

// stateOf is the state that a script has left in dir.
func stateOf(r *interp.Runner, dir string) state {
	after := state{Dir: filepath.Clean(dir)}
	for name, v := range r.Vars {
		if v.Exported && v.Kind == expand.String {
			after.Env = append(after.Env, name+"="+v.Str)
		}
	}
	return after
}
