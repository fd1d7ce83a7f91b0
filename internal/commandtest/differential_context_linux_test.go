package commandtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// until runs a tool that waits for the end of its input, does something to it
// once it runs, and notes the end.
func until(script string, prepare func(w *world, c *command), act func(w *world, c *command, cancel func())) func(w *world) {
	return func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := w.make(ctx, "/bin/bash", []string{"-c", script})
		in, err := c.StdinPipe()
		w.must(err)
		defer in.Close()
		out, err := c.StdoutPipe()
		w.must(err)
		if prepare != nil {
			prepare(w, c)
		}
		before := c.fields()
		w.must(c.Start())
		lines := bufio.NewReader(out)
		line, err := lines.ReadString('\n')
		w.must(err)
		w.saw("first line", line)
		act(w, c, cancel)
		rest, err := io.ReadAll(lines)
		w.err("ReadAll", err)
		w.saw("output", string(rest))
		w.err("Wait", c.Wait())
		w.after(c, before)
		w.saw("context", ctx.Err())
	}
}

// waitForInput looks up every second: a signal that arrives just before bash's
// read(2) is noticed only after it.
const waitForInput = "echo ready; until read -t 1 x; do [ $? -gt 128 ] || break; done; echo got $x; exit 6"

func cancelIt(_ *world, _ *command, cancel func()) { cancel() }

// deadline is a context whose deadline passes when a test says so: a command that takes long to start is not started
// after it.
type deadline struct {
	context.Context
	past chan struct{}
}

func (d deadline) Done() <-chan struct{} { return d.past }

func (d deadline) Err() error {
	select {
	case <-d.past:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// contextCases are about contexts, Cancel and WaitDelay.
var contextCases = []diffCase{
	{name: "a context that lives", run: func(w *world) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		w.run(w.make(ctx, "/bin/echo", []string{"x"}))
	}},
	{name: "a context that is cancelled before Start", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.run(w.make(ctx, "/bin/echo", []string{"x"}))
	}},
	{name: "a context that is cancelled between Command and Start", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		c := w.make(ctx, "/bin/echo", []string{"x"})
		cancel()
		w.run(c)
	}},
	{name: "a context that is past its deadline", run: func(w *world) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
		defer cancel()
		w.run(w.make(ctx, "/bin/echo", []string{"x"}))
	}},
	{name: "a context that is cancelled and a tool that is missing", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		w.run(w.make(ctx, "/nonexistent/tool", nil))
	}},
	{name: "a context that is cancelled with a cause", run: func(w *world) {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(errCase)
		w.run(w.make(ctx, "/bin/true", nil))
	}},
	{name: "cancelled while it runs", run: until(waitForInput, nil, cancelIt)},
	{name: "a deadline while it runs", run: func(w *world) {
		ctx := deadline{context.Background(), make(chan struct{})}
		c := w.make(ctx, "/bin/bash", []string{"-c", "echo ready; exec sleep 1000"})
		out, err := c.StdoutPipe()
		w.must(err)
		w.must(c.Start())
		_, err = bufio.NewReader(out).ReadString('\n')
		w.must(err)
		close(ctx.past)
		w.err("Wait", c.Wait())
		w.state(c)
	}},
	{name: "cancelled after its end", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		c := w.make(ctx, "/bin/true", nil)
		w.must(c.Run())
		cancel()
		w.state(c)
	}},
	{name: "a Cancel that interrupts", run: until("trap 'echo interrupted; exit 5' INT; "+waitForInput, func(w *world, c *command) {
		c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	}, cancelIt)},
	{name: "a Cancel that lets the tool succeed", run: until("trap 'exit 0' TERM; "+waitForInput, func(w *world, c *command) {
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	}, cancelIt)},
	{name: "a Cancel that says the process is done", run: until("trap 'exit 0' TERM; "+waitForInput, func(w *world, c *command) {
		c.Cancel = func() error { c.Process.Signal(syscall.SIGTERM); return os.ErrProcessDone }
	}, cancelIt)},
	{name: "a Cancel that fails", run: until("trap 'exit 0' TERM; "+waitForInput, func(w *world, c *command) {
		c.Cancel = func() error { c.Process.Signal(syscall.SIGTERM); return errCase }
	}, cancelIt)},
	{name: "a Cancel that does nothing, and WaitDelay", run: until("trap '' TERM; "+waitForInput, func(w *world, c *command) {
		c.Cancel, c.WaitDelay = func() error { return nil }, 20*time.Millisecond
	}, cancelIt)},
	{name: "a nil Cancel", run: until(waitForInput, func(w *world, c *command) { c.Cancel = nil }, func(w *world, c *command, cancel func()) {
		cancel()
		w.must(c.Process.Signal(syscall.SIGTERM))
	})},
	{name: "a nil Cancel and WaitDelay", run: until(waitForInput, func(w *world, c *command) { c.Cancel, c.WaitDelay = nil, 20*time.Millisecond }, cancelIt)},
	{name: "a Cancel without a context", run: func(w *world) {
		c := w.command("/bin/true")
		c.Cancel = func() error { return nil }
		w.run(c)
	}, differs: []diff{
		{"cancel", "Start", "exec: command with a non-nil Cancel was not created with CommandContext", "<nil>"},
		{"cancel", "Start, type", "*errors.errorString", absent}, {"cancel", "Start leaves the fields alone", absent, "true"},
		{"cancel", "Process is nil", "true", "false"}, {"cancel", "ProcessState is nil", "true", "false"}, {"cancel", "Wait", absent, "<nil>"},
		{"cancel", "state", absent, exitedWell}, {"cancel", "the state's pid is the process's", absent, "true"}, {"cancel", "usage is there", absent, "true"},
	}},
	{name: "an orphan that holds the pipe, and no WaitDelay", run: func(w *world) {
		w.run(w.sh("sleep 0.3 & echo started"))
	}},
	{name: "an orphan that holds the pipe, and WaitDelay", run: func(w *world) {
		defer killMarked(w.T, orphan)
		c := w.sh("(exec -a " + orphan + " sleep 1000) & " + untilIs(orphan) + "echo started")
		c.WaitDelay = 50 * time.Millisecond
		w.run(c)
		w.saw("alive after Wait", len(marked(w.T, orphan)))
	}, differs: []diff{
		{"background", "alive after Wait", "1", "0"},
		{"background", "Wait", "exec: WaitDelay expired before I/O complete", "<nil>"},
		{"background", "Wait, type", "*errors.errorString", absent},
		{"background", "Wait, is exec.ErrWaitDelay", "true", absent},
	}},
	{name: "an orphan that holds the pipe of a cancelled tool", run: func(w *world) {
		defer killMarked(w.T, orphan)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c := w.make(ctx, "/bin/bash", []string{"-c", "(exec -a " + orphan + " sleep 1000) & " + untilIs(orphan) + "echo started; wait"})
		c.WaitDelay = 50 * time.Millisecond
		out := &signalOnWrite{f: cancel}
		c.Stdout = out
		w.must(c.Start())
		w.err("Wait", c.Wait())
		w.saw("stdout", out.String())
		w.saw("alive after Wait", len(marked(w.T, orphan)))
		w.state(c)
	}, differs: []diff{{"background", "alive after Wait", "1", "0"}}},
	{name: "many at once with one context", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var list []*command
		for range 8 {
			c := w.make(ctx, "/bin/sleep", []string{"1000"})
			w.must(c.Start())
			list = append(list, c)
		}
		cancel()
		for i, c := range list {
			w.err(fmt.Sprint("Wait ", i), c.Wait())
		}
	}},
}

// signalOnWrite calls f once something was written.
type signalOnWrite struct {
	strings.Builder
	f func()
}

func (s *signalOnWrite) Write(p []byte) (int, error) {
	n, err := s.Builder.Write(p)
	s.f()
	return n, err
}
