// Shell runs scripts in an interpreter of this program (mvdan.cc/sh), as harnesses do that have no bash of their own, within a session:
//
//	shell [-outside] [-workspace DIR] [SCRIPT...]
//
// Without a SCRIPT it reads one from standard input. The directory and the exported variables of one script are those of the next, and
// the status is that of the last.
//
// Such an interpreter starts programs and also opens, lists and asks for files itself: a sandbox around the programs alone leaves
// redirections, globs, test and source unbounded. There are two ways out:
//
//	inside.go    the interpreter runs inside the session, as a function of this program. Nothing of it is left outside: use this one
//	outside.go   the interpreter stays in this process, and the session serves its handlers. No process is started for a script without
//	             programs, and Go functions of the harness can be its builtins. calls.go and rewrite.go have what no handler is
//	             asked about. Its memory and time stay the harness's: no limit of the policy bounds "while :; do x=$x$x; done"
//
// It is a separate module, so that the interpreter is no dependency of Holdfast.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func main() {
	outside := flag.Bool("outside", false, "interpret in this process, and let the session serve what the interpreter does")
	workspace := flag.String("workspace", ".", "`directory` that scripts work in")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	status, err := run(ctx, *workspace, *outside, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "shell:", err)
	}
	os.Exit(status)
}

// run opens a session, and returns the status of the last script.
func run(ctx context.Context, workspace string, outside bool, scripts []string) (status int, err error) {
	p := sandbox.Workspace(workspace)
	p.Observe = func(e policy.Event) {
		if e.Kind == policy.EventDenied {
			fmt.Fprintln(os.Stderr, "[sandbox]", e.Denied)
		}
	}
	s, err := sandbox.New(p)
	if err != nil {
		return 125, err
	}
	sess, err := s.Open(ctx)
	if err != nil {
		return 125, err
	}
	defer sess.Close()
	sh, err := open(sess, outside)
	if err != nil {
		return 125, err
	}
	stdin := os.Stdin
	if len(scripts) == 0 {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return 125, err
		}
		if stdin, err = os.Open(os.DevNull); err != nil {
			return 125, err
		}
		scripts = []string{string(text)}
	}
	for _, script := range scripts {
		if status, err = sh.run(ctx, script, files{stdin, os.Stdout, os.Stderr}); err != nil {
			return 125, err
		}
	}
	return status, nil
}
