package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"

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

// startFiles starts the server of Files, until a pause begins: it would be stopped. It is an inside.Start.
func (s *Session) startFiles(ctx context.Context, socket *os.File) (kill func(), gone <-chan struct{}, err error) {
	life, end := context.WithCancel(s.live.UntilPause())
	started := make(chan error, 1)
	go func() {
		defer end()
		c, err := s.filesCommand(life, socket)
		socket.Close()
		if err == nil {
			s.mu.Lock()
			s.denied, s.serves, s.told = s.refused(), c.run, map[string]int{}
			s.mu.Unlock()
		}
		if started <- err; err == nil {
			c.Wait()
		}
	}()
	select {
	case err = <-started:
	case <-life.Done():
		select {
		case err = <-started:
		default:
			err = context.Canceled // by a pause: Start may return after it
		}
	case <-ctx.Done():
		end()
		return nil, nil, context.Cause(ctx)
	}
	if errors.Is(err, context.Canceled) {
		err = context.Cause(life)
	}
	return end, life.Done(), err
}

// filesCommand starts it in the directory that a command has by default, or the root if that is not shown.
func (s *Session) filesCommand(ctx context.Context, socket *os.File) (c *Cmd, err error) {
	for _, dir := range []string{"", "/"} {
		c = (&Function{inside.Server}).CommandContext(ctx, s)
		c.run.Plain()
		c.Stdin, c.Dir = socket, dir
		err = c.Start()
		if hidden := (*PolicyError)(nil); !errors.As(err, &hidden) || hidden.Field != "Dir" {
			break
		}
	}
	return c, err
}

// Report is that of the process which serves Files; Violations are what all such processes of the session were denied, the latest
// 128. Nil: Files has not been used.
func (s *Session) Report() *Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serves == nil {
		return nil
	}
	r := reportOf(s.serves.Account())
	r.Violations = slices.Concat(s.denied, r.Violations)
	return r
}

// refused returns what the servers of Files were denied, the latest 128. The caller holds mu.
func (s *Session) refused() []Violation {
	if s.serves == nil {
		return nil
	}
	all := slices.Concat(s.denied, s.serves.Account().Refused)
	return all[max(0, len(all)-128):]
}

// denial is an inside.Denied. The supervisor counts a denial before it answers the call; each is the reason of one error.
func (s *Session) denial(read bool, names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range slices.Backward(s.serves.Account().Refused) {
		for _, name := range names {
			same := func(p string) bool { return name != "" && (p == path.Clean(name) || path.Base(p) == path.Base(name)) } // the kernel's path is without links
			key := v.Operation + "\x00" + v.Path + "\x00" + v.To
			if (v.Operation == "open for reading") == read && (same(v.Path) || same(v.To)) && v.Count > s.told[key] {
				s.told[key]++
				return &v
			}
		}
	}
	return nil
}
