// Agent is a small but complete harness: a model's loop at the terminal, whose tools (bash, read, write, edit, glob) share one session.
//
//	go run ./examples/agent                                    a scripted model shows itself in an empty directory, offline
//	OPENAI_API_KEY=... go run ./examples/agent make the tests pass
//	OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3 go run ./examples/agent -workspace ~/src/project
//
// With OPENAI_BASE_URL or OPENAI_API_KEY set it asks any endpoint that speaks OpenAI's chat completions. Without a task it asks for tasks at the
// terminal, until the end of the input. Hosts that -host does not name are asked about while the tool waits. Ctrl-C ends
// the call that runs; a second one ends the session. Servers live on from call to call, and end with the session.
//
// What the tools print has a bar before each line and no control characters, so that no tool can imitate a question.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "workspace", ".", "`directory` that the tools may write; the script uses a temporary one")
	flag.DurationVar(&o.longest, "timeout", 2*time.Minute, "how long a call of a tool may take")
	flag.IntVar(&o.output, "max-output", 30_000, "how many `bytes` of a result the model is given")
	flag.Func("host", "a `host` that the tools reach without a question, such as *.example.org:443; may be repeated", func(s string) error {
		o.hosts = append(o.hosts, s)
		return nil
	})
	flag.Parse()
	o.task = strings.Join(flag.Args(), " ")
	o.model = endpointOf(os.Getenv)
	if err := run(o, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

type options struct {
	dir     string
	task    string // "": tasks are asked for
	hosts   []string
	longest time.Duration
	output  int
	model   model // nil: the script
}

// run opens the session and works in it until the tasks, or the user, end it.
func run(o options, in io.Reader, out io.Writer) error {
	if o.model == nil { // the script, which leaves nothing behind
		o.model, o.task = newScript(), "show what a harness does"
		dir, err := os.MkdirTemp("", "agent-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.dir = dir
	}
	user := newTerminal(in, out)
	if o.task != "" {
		user.start() // what was typed before a question is no answer to it
	}
	p := sandbox.WorkspaceNet(o.dir, o.hosts...)
	p.Network.Decide = user.decide
	p.Network.Patience = 5 * time.Minute // a person answers
	s, err := sandbox.New(p)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer end()
	session, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	o.dir = p.Dir // the workspace, as an absolute name
	if err := session.SetDir(o.dir); err != nil {
		return err
	}

	a := newAgent(session, user, o, p.SessionBrief())
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	go func() {
		for range interrupts {
			if !a.interrupt() {
				end()
			}
		}
	}()
	if err = a.work(ctx, o.task); ctx.Err() != nil {
		return errors.New("the session was ended") // and with it all that ran in it
	}
	a.finish(ctx)
	return err
}
