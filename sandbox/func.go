package sandbox

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/holdfast-dev/holdfast/internal/function"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/inside"
)

// A Function of this program runs inside a [Session], as a process.
type Function struct{ name string }

// Func registers a function, for a package-level variable. It runs with what it mentions initialised, before init functions of its
// package. ctx is done at SIGINT and SIGTERM. Func panics on a taken name, and in main.
func Func(name string, body func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error) *Function {
	function.Register(name, body)
	return &Function{name}
}

// Command calls the function. Its error or panic is a [policy.FuncError].
func (f *Function) Command(s *Session, arg ...string) *Cmd {
	return f.CommandContext(context.Background(), s, arg...)
}

// CommandContext is Command with a context.
func (f *Function) CommandContext(ctx context.Context, s *Session, arg ...string) *Cmd {
	if ctx == nil {
		panic("nil Context")
	}
	c := &Cmd{Path: f.name}
	c.run = s.live.New(ctx, func() runner.Tool { return runner.Tool{Path: f.name, Function: f.name} })
	c.Cmd = c.run.Command()
	c.Cmd.Args, c.Cmd.Err = append([]string{f.name}, arg...), nil
	return c
}

// Files are the session's files, as its tools see them.
func (s *Session) Files() *inside.Files { return s.files }

// startFiles starts the server of Files: in the directory that a command has by default, or the root if that is not shown.
func (s *Session) startFiles(socket *os.File) (kill func(), gone <-chan struct{}, err error) {
	for _, dir := range []string{"", "/"} {
		c := (&Function{inside.Server}).Command(s)
		c.run.Plain()
		c.Stdin, c.Dir = socket, dir
		if err = c.Start(); err == nil {
			ended := make(chan struct{})
			go func() {
				c.Wait()
				close(ended)
			}()
			return func() { c.Process.Kill() }, ended, nil
		}
		if hidden := (*PolicyError)(nil); !errors.As(err, &hidden) || hidden.Field != "Dir" {
			break
		}
	}
	return nil, nil, err
}
