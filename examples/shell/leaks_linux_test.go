package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// A leak is a script that tries for a file outside of the session: $P, in directory $D, whose content is "leaked=SECRET".
type leak struct {
	name, script string
	programs     bool // it is a program that tries, which the sandbox bounds whatever the interpreter does
}

var leaks = []leak{
	{"a redirection writes", `echo planted > $D/planted`, false},
	{"a redirection appends", `echo more >> $P`, false},
	{"a redirection of all output", `exec > $D/planted; echo x`, false},
	{"a redirection truncates", `: > $P`, false},
	{"a redirection reads", `read x < $P; echo $x`, false},
	{"a substitution reads", `echo "$(<$P)"`, false},
	{"mapfile reads", `mapfile -t a < $P; echo ${a[0]}`, false},
	{"a program reads what the shell has opened", `cat < $P`, false},
	{"a link leads out", `ln -sf $P l; read x < l; echo $x`, false},
	{"a link of a directory leads out", `ln -sfn $D l; echo x > l/planted; echo l/*`, false},
	{"a glob lists", `for f in $D/*; do echo $f; done`, false},
	{"a glob of a part of a name", `echo $D/th*`, false},
	{"source", `source $P; echo $leaked`, false},
	{"source by way of ..", `cd /usr; . ..$P; echo $leaked`, false},
	{"source by PATH", `PATH=$D; source there 2>/dev/null; echo $leaked`, false},
	{"test -e", `test -e $P && echo yes`, false},
	{"[ -e", `[ -e $P ] && echo yes`, false},
	{"[ -r", `[ -r $P ] && echo yes`, false},
	{"[ -x of the directory's file", `[ ! -x $P ] || echo yes`, false},
	{"[[ -e", `[[ -e $P ]] && echo yes`, false},
	{"[[ -r", `[[ -r $P ]] && echo yes`, false},
	{"[[ -w, deep in a condition", `[[ -n "" || ( a == a && ! ! -w $P ) ]] && echo yes`, false},
	{"[[ -nt", `[[ $P -nt /usr/bin ]] && echo yes`, false},
	{"[[ -O", `[[ -O $P ]] && echo yes`, false},
	{"eval [[ -r", `eval '[[ -r $P ]] && echo yes'`, false},
	{"eval of eval", `eval "eval '[[ -r $P ]] && echo yes'"`, false},
	{"builtin eval", `builtin eval '[[ -r $P ]] && echo yes'`, false},
	{"command -- eval", `command -- eval '[[ -x $P ]] && echo yes'`, false},
	{"a trap", `trap '[[ -r $P ]] && echo yes' EXIT`, false},
	{"a sourced script", `echo '[[ -r $P ]] && echo yes' > s; . ./s`, false},
	{"a function in a substitution", `f() { [[ -x $1 ]]; }; echo $(f $P && echo yes)`, false},
	{"a here-document", "cat <<E\n$([[ -r $P ]] && echo yes)\nE\n", false},
	{"an alias", "shopt -s expand_aliases\nalias t='test -r'\nt $P && echo yes", false},
	{"cd", `cd $D && echo yes`, false},
	{"cd of builtin and command", `builtin cd $D && echo yes; command cd $D && echo yes; command -- cd $D && echo yes; command command -- builtin cd $D && echo yes`, false},
	{"cd and a relative name", `cd $D; read x < there; echo $x`, false},
	{"pushd", `pushd $D && echo yes`, false},
	{"PWD that is set", `PWD=$D; read x < there; echo $x; echo th*`, false},
	{"pwd -P", `ln -sfn $D l; cd l; PWD=$D pwd -P; pwd -P`, false},
	{"command -v of a path", `command -v $P`, false},
	{"command -v by PATH", `PATH=$D command -v there`, false},
	{"type -p by PATH", `PATH=$D type -p there`, false},
	{"type of a path", `type $P`, false},
	{"type in the directory", `PATH=; cd $D; type ./there`, false},
	{"a program outside", `$P; echo $?`, false},
	{"a program outside by PATH", `PATH=$D there; echo $?`, false},
	{"exec", `exec $P`, false},
	{"a program that tries", `cat $P; ls $D`, true},
}

// TestKernelNothingOutsideIsReached: each script has the same output whether or not the file is there, which nothing has changed. And each
// leak is one: with an interpreter whose programs alone are in the session, as a harness that wraps its exec handler has it, it is seen.
func TestKernelNothingOutsideIsReached(t *testing.T) {
	inShell(t, func(t *testing.T, sh *shell, workspace string) {
		begin := sh.state
		for _, at := range []struct{ name, dir string }{{"outside", t.TempDir()}, {"hidden", filepath.Join(workspace, "hidden")}} {
			t.Run(at.name, func(t *testing.T) {
				for _, l := range leaks {
					sh.state = begin
					if seen(t, at.dir, workspace, l, sh.run, at.name == "hidden") {
						t.Errorf("ESCAPE: %s: %s", l.name, l.script)
					}
					if at.name == "outside" && sh.outside && seen(t, at.dir, workspace, l, sh.naive, false) == l.programs {
						t.Errorf("%s is no leak, or the sandbox does not bound programs: %s", l.name, l.script)
					}
				}
			})
		}
	})
}

// seen reports whether a script has changed a file of dir or has told of it: by its content or name if the directory is known to the
// script, and else by anything that it says otherwise where there is no such file.
func seen(t *testing.T, dir, workspace string, l leak, run func(ctx context.Context, script string, f files) (int, error), known bool) bool {
	t.Helper()
	const content = "leaked=SECRET; echo $leaked\n"
	file, planted := filepath.Join(dir, "there"), filepath.Join(dir, "planted")
	os.Remove(planted)
	write(t, file, content, 0o755)
	said := func(dir string) string {
		out, status := printed(t, func(ctx context.Context, f files) (int, error) {
			status, err := run(ctx, "cd "+workspace+"; D="+dir+" P="+dir+"/there\n"+l.script, f)
			if err != nil { // a naive interpreter stops at its own errors
				f.err.WriteString(err.Error())
			}
			return status, nil
		}, !known)
		return fmt.Sprint(strings.ReplaceAll(out, dir, "DIR"), status)
	}
	first := said(dir)
	_, err := os.Lstat(planted)
	now, _ := os.ReadFile(file)
	if err == nil || string(now) != content {
		return true
	}
	if known {
		return strings.Contains(first, "SECRET") || strings.Contains(first, "DIR/there")
	}
	return first != said(dir+"-not")
}

// naive interprets with the handlers that an interpreter has by itself, but for programs.
func (s *shell) naive(ctx context.Context, script string, f files) (int, error) {
	file, ok := parse(script, f)
	if !ok {
		return syntaxError, nil
	}
	r, err := interp.New(interp.Env(expand.ListEnviron(s.state.Env...)), interp.StdIO(f.in, f.out, f.err),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc {
			return func(ctx context.Context, args []string) error {
				hc := interp.HandlerCtx(ctx)
				where, err := interp.LookPathDir(hc.Dir, hc.Env, args[0])
				if err != nil {
					return interp.ExitStatus(127)
				}
				c := s.sess.CommandContext(ctx, where, args[1:]...)
				c.Dir = hc.Dir
				c.Stdin, c.Stdout, c.Stderr = hc.Stdin, hc.Stdout, hc.Stderr
				err = c.Run()
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					return interp.ExitStatus(exit.ExitCode())
				}
				return err
			}
		}))
	if err != nil {
		return 0, err
	}
	return ended(r.Run(ctx, file))
}

// TestKernelWhatAScriptLeaves: nothing of a script's is made in this process's directories, protected names stay, and no secret variable is
// the script's. What one script leaves the next has.
func TestKernelWhatAScriptLeaves(t *testing.T) {
	inShell(t, func(t *testing.T, sh *shell, workspace string) {
		for _, c := range []struct{ name, script, want string }{
			{"the environment", `echo "[$SHELL_TEST_TOKEN]"; sh -c 'echo "[$SHELL_TEST_TOKEN]"'`, "[]\n[]\n"},
			{"a protected name", `{ echo evil > .envrc; } 2>/dev/null || echo no; [ -e .envrc ] || echo none`, "no\nnone\n"},
			{"names of the interpreter's own FIFOs", `d=${TMPDIR:-/tmp}; echo x > $d/sh-interp-planted; cat $d/sh-interp-planted; rm $d/sh-interp-planted; { echo x > /dev/null/sh-interp-planted; } 2>/dev/null || echo no`, "x\nno\n"},
			{"a link in the directory of its FIFOs", `ln -sf ` + workspace + `/hidden/file ${TMPDIR:-/tmp}/sh-interp-l; read x < ${TMPDIR:-/tmp}/sh-interp-l; echo [$x]`, "[]\n"},
			{"files of /tmp are the session's", `echo kept > /tmp/f; f=$(mktemp); echo hi > $f; cat $f /tmp/f`, "hi\nkept\n"},
			{"the next script has them", `cat /tmp/f; cat < /tmp/f; mkdir -p /tmp/d; cd /tmp/d; export LASTS=yes; V=no`, "kept\nkept\n"},
			{"and the directory, and what was exported", `pwd; echo $LASTS [$V]; sh -c 'pwd; echo $LASTS'; cd ` + workspace, "/tmp/d\nyes []\n/tmp/d\nyes\n"},
			{"the directory has been removed", `mkdir gone; cd gone; rmdir ../gone; echo done`, "done\n"},
			{"what comes after that", `cd ` + workspace + `; echo here`, "here\n"},
			{"a program only the session has", `printf '#!/bin/sh\necho ran\n' > /tmp/p; chmod +x /tmp/p; /tmp/p; PATH=/tmp:$PATH; p; rm /tmp/p; p 2>/dev/null; echo $?`, "ran\nran\n127\n"},
			{"a script that is none", `if true; then`, ""},
		} {
			t.Setenv("SHELL_TEST_TOKEN", "SECRET")
			if got, _ := sh.printed(t, c.script, false); got != c.want {
				t.Errorf("%s: %q, want %q", c.name, got, c.want)
			}
		}
		if entries, _ := filepath.Glob(filepath.Join(os.TempDir(), "sh-interp-*")); len(entries) > 0 {
			t.Errorf("ESCAPE: %v", entries)
		}
		if got, _ := sh.printed(t, `cat <(echo x); echo $?`, false); sh.outside && got != "" || !sh.outside && got != "x\n0\n" {
			t.Errorf("a process substitution: %q", got)
		}
	})
}

// TestKernelAScriptEndsWithItsContext, in the middle of a program, and of a loop of the interpreter's.
func TestKernelAScriptEndsWithItsContext(t *testing.T) {
	inShell(t, func(t *testing.T, sh *shell, _ string) {
		for _, script := range []string{"echo begun; sleep 1000", "echo begun; while :; do :; done"} {
			ctx, cancel := context.WithCancel(t.Context())
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := sh.run(ctx, script, files{nil, write, write})
				write.Close()
				ended <- err
			}()
			if _, err := read.Read(make([]byte, 6)); err != nil {
				t.Error(err)
			}
			cancel()
			if err := <-ended; err == nil {
				t.Errorf("%s: it has ended by itself", script)
			}
			read.Close()
		}
		if out, _ := sh.printed(t, "echo on", false); out != "on\n" {
			t.Errorf("after that: %q", out)
		}
	})
}
