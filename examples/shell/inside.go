package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
)

// interpreter is the function that runs in the session. Its descriptor 3 takes what it leaves, as JSON.
var interpreter = sandbox.Func("interpreter", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
	syscall.CloseOnExec(3) // the script's programs have no part of it
	answer := os.NewFile(3, "left")
	var begin state
	if err := json.Unmarshal([]byte(args[0]), &begin); err != nil {
		return err
	}
	l, err := interpret(ctx, begin, args[1], files{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		return err
	}
	return json.NewEncoder(answer).Encode(l)
})

// left is what a script has left.
type left struct {
	Status int
	State  state
}

// interpret runs a script with the interpreter's own handlers: everything that it opens, lists and starts is inside.
func interpret(ctx context.Context, begin state, script string, f files) (left, error) {
	l := left{syntaxError, begin}
	file, ok := parse(script, f)
	if !ok {
		return l, nil
	}
	if _, err := os.Stat(begin.Dir); err != nil { // removed since
		fmt.Fprintln(f.err, err)
		begin.Dir, l.State.Dir = "/", "/"
	}
	r, err := interp.New(interp.Dir(begin.Dir), interp.Env(expand.ListEnviron(begin.Env...)), interp.StdIO(f.in, f.out, f.err))
	if err != nil {
		return l, err
	}
	l.Status, err = ended(r.Run(ctx, file))
	l.State = stateOf(r, r.Dir)
	return l, err
}

// maxLeft bounds what is read of a process that hostile code may hold.
const maxLeft = 4 << 20

func (s *shell) interpretInside(ctx context.Context, script string, f files) (int, error) {
	begin, err := json.Marshal(s.state)
	if err != nil {
		return 0, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer read.Close()
	c := interpreter.CommandContext(ctx, s.sess, string(begin), script)
	c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = f.in, f.out, f.err, []*os.File{write}
	err = c.Start()
	write.Close()
	if err != nil {
		return 0, err
	}
	text, readErr := io.ReadAll(io.LimitReader(read, maxLeft))
	read.Close()
	if err := c.Wait(); err != nil {
		return 0, err
	}
	var l left
	if readErr == nil {
		readErr = json.Unmarshal(text, &l)
	}
	if readErr != nil {
		return 0, fmt.Errorf("what the script has left: %w", readErr)
	}
	s.state = l.State
	return l.Status, nil
}
