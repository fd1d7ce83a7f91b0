// Bashtool is an agent's bash tool: it runs commands that a model has written, one after another, in a sandbox that lives as long as
// this program does (a session). Each command starts a new shell; files, /tmp, HOME, background jobs and the servers that they are on loopback
// last. A job ends with the program, or with its own command's timeout if that comes first.
//
//	bashtool [-workspace DIR] [-host HOST] [-timeout D] [-max-timeout D] [-max-output BYTES]
//
// It reads requests from standard input, one JSON object per line, and answers
// each by one line on standard output, in order:
//
//	{"id": 1, "command": "go test ./...", "timeout_ms": 60000, "cwd": "sub"}
//	{"id": 1, "output": "ok ...\n", "exit": 0, "timed_out": false, "duration_ms": 812, "report": {...}}
//
// What a command has left in the background prints on; the last 256 KiB of each are kept. It is asked for by the number that the answer had, listed, and ended:
//
//	{"id": 2, "job": 1, "offset": 6}
//	{"id": 2, "output": "...", "job": 1, "next": 4711, "ended": false, ...}
//	{"id": 3, "jobs": true}
//	{"id": 3, "jobs": [{"job": 1, "processes": ["npm run dev"]}], ...}
//	{"id": 4, "job": 1, "end": true}
//
// id is any JSON value and comes back as it is. timeout_ms and cwd may be left
// out; cwd is a directory below the workspace, or any that the sandbox shows. A
// command that a signal has ended has "signal" and exit 128 and its number. An
// "error" says why a command did not run; the tool's own failures are in output
// and exit. What the network's rules refused it is in the report's "violations". It
// ends at the end of its input.
//
// Where this host has no sessions each command gets a separate sandbox, and nothing but the workspace lasts: the first answer says so in its
// "note". Another note says that the session has ended, and a new one begun.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
	dir := flag.String("workspace", ".", "`directory` that commands work in")
	timeout := flag.Duration("timeout", 2*time.Minute, "how long a command may take that does not say")
	longest := flag.Duration("max-timeout", 10*time.Minute, "how long any command may take")
	output := flag.Int("max-output", 30_000, "how many `bytes` of a command's output are given back")
	var hosts []string
	flag.Func("host", "a `host` that commands can reach, such as example.org:443 or *.example.org; may be repeated (default: none)", func(s string) error {
		hosts = append(hosts, s)
		return nil
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	t, err := newTool(*dir, hosts, *timeout, *longest, *output)
	if err == nil {
		err = errors.Join(t.serve(ctx, os.Stdin, os.Stdout), t.close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bashtool:", err)
		os.Exit(1)
	}
}

// A tool runs commands in one workspace.
type tool struct {
	sandbox   *sandbox.Sandbox
	session   *sandbox.Session     // nil: it has not begun, or there are none here
	opened    bool                 // there has been one
	single    bool                 // there are none here
	commands  map[int]*sandbox.Cmd // of the session, which have left processes
	workspace string
	timeout   time.Duration
	longest   time.Duration
	maxOutput int
}

// newTool makes the sandbox once: no request can change what it allows.
func newTool(dir string, hosts []string, timeout, longest time.Duration, maxOutput int) (*tool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s, err := sandbox.New(sandbox.WorkspaceNet(dir, hosts...))
	if err != nil {
		return nil, err
	}
	return &tool{sandbox: s, commands: map[int]*sandbox.Cmd{}, workspace: dir, timeout: timeout, longest: longest, maxOutput: maxOutput}, nil
}
