// Run runs one tool inside a sandbox and ends as the tool ends: with its exit
// status, or by the signal that killed it.
//
//	run [-preset workspace|readonly|unconfined] [-workspace DIR] [-read P] [-write P]
//	    [-hide P] [-host HOST] [-env NAME[=VALUE]] [-timeout D] [-may BOUND] [-nested] [-report] [-explain] [-allows ACT]
//	    -- TOOL ARG...
//
//	run -session [the same flags] <COMMANDS
//
// With -session it reads commands from standard input, each a line for sh, and runs them one after another in one sandbox: files in /tmp and
// HOME, servers and other jobs last from line to line. A line that ends in & runs beside the next ones, the line "wait" waits for those, and
// the end of the input ends those that still run. Each answer is a line of JSON with the number of its command's line:
//
//	{"command":1,"stdout":"hello\n"}
//	{"command":1,"exit":0}
//
// A command is answered when its output has ended: a job that it leaves by itself should have its output in a file. The status is that of the
// last command that was waited for.
//
// Its own failures have the statuses of env(1) and timeout(1): 124 the time was
// up, 125 no sandbox, 126 the tool cannot be executed, 127 it was not found.
//
// With -may container it runs where no namespaces can be made, as in most containers, and the report (-report) says what is weaker;
// with -may /tmp besides, the tool has the container's /tmp there.
// With -nested, which is for an ordinary user, the tool can build sandboxes, and what it writes to the workspace is a copy.
//
// The tool starts in the present directory, or in the workspace if that lies
// elsewhere.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// The statuses of failures that are not the tool's.
const (
	statusTimeout  = 124
	statusSandbox  = 125
	statusNoExec   = 126
	statusNotFound = 127
)

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(statusSandbox)
	}
	e := run(o, os.Stdout, os.Stderr)
	if e.signal != 0 {
		dieBy(e.signal)
	}
	os.Exit(e.status)
}

// run carries the options out and says how to end.
func run(o options, stdout, stderr io.Writer) ending {
	s, err := sandbox.New(o.policy)
	if err != nil {
		fmt.Fprintln(stderr, "run:", err)
		if weaker, err := sandbox.New(o.policy.InContainer()); err == nil {
			weaker.Close()
			fmt.Fprintln(stderr, "run: -may container accepts what is weaker")
		}
		return ending{status: statusSandbox}
	}
	defer s.Close()
	if o.explain {
		fmt.Fprint(stdout, s.Explain())
		return ending{}
	}
	if o.allows != nil {
		ok, why := s.Allows(*o.allows)
		word := map[bool]string{true: "allowed", false: "refused"}[ok || why.Private]
		fmt.Fprintf(stdout, "%s: %v\n", word, why)
		return ending{status: map[bool]int{true: 0, false: 1}[ok || why.Private]}
	}
	if o.session {
		return serve(s, o, os.Stdin, stdout, stderr)
	}
	cmd := s.Command(o.tool[0], o.tool[1:]...)
	cmd.Dir = o.dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	e := follow(cmd, stderr)
	if o.report {
		fmt.Fprint(stderr, cmd.Report())
	}
	return e
}

// follow runs the tool, passes signals on to it, and judges its end.
func follow(cmd *sandbox.Cmd, stderr io.Writer) ending {
	signals := catch() // before Start: none is lost
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(stderr, "run:", err)
		return ending{status: startStatus(err)}
	}
	defer relay(signals, cmd.Process)()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, sandbox.ErrDeadline):
		fmt.Fprintln(stderr, "run:", err)
		return ending{status: statusTimeout}
	case errors.As(err, &exit):
		return endingOf(exit.ProcessState)
	}
	fmt.Fprintln(stderr, "run:", err)
	return ending{status: statusSandbox}
}

// startStatus tells a tool that cannot run from a sandbox that cannot be.
func startStatus(err error) int {
	var policy *sandbox.PolicyError
	var wall *sandbox.StartError
	var path *fs.PathError
	switch {
	case errors.As(err, &policy), errors.As(err, &wall), errors.Is(err, errors.ErrUnsupported):
		return statusSandbox
	case errors.As(err, &path) && path.Op == "chdir":
		return statusSandbox
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return statusNotFound
	case errors.As(err, &path), errors.Is(err, fs.ErrPermission), errors.Is(err, exec.ErrDot):
		return statusNoExec
	}
	return statusSandbox
}
