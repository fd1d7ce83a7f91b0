package trust

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

const (
	drainTime = time.Second // for a program that ended and left its output open
	maxOutput = 1 << 20
)

var runTime = 10 * time.Second // tests change it

// ErrTooLong says that a program printed more than 1 MiB.
var ErrTooLong = errors.New("the output is longer than 1 MiB")

// Run executes a program, whose path [Places.Program] has returned, and returns what it prints to its standard output.
// It starts in "/", where no project's settings are, with env as its whole environment, nothing to read and its errors
// thrown away. After ten seconds, after 1 MiB of output, and at its end, it is killed with the processes of its group.
// The error is ErrTooLong, context.DeadlineExceeded, or os/exec's.
func Run(program string, env []string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	out := &bounded{end: cancel}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = "/", append([]string{}, env...), out, drainTime
	ownGroup(cmd)
	err := cmd.Run()
	if cmd.Process != nil {
		_ = cmd.Cancel() // what it left behind in its group
	}
	switch {
	case out.tooLong:
		return nil, ErrTooLong
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return out.text, err
}

// bounded keeps what a program prints, up to maxOutput, and ends it then.
type bounded struct {
	text    []byte
	end     func()
	tooLong bool
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.tooLong = b.tooLong || len(b.text)+len(p) > maxOutput; b.tooLong {
		b.end()
		return 0, ErrTooLong
	}
	b.text = append(b.text, p...)
	return len(p), nil
}
