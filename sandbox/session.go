package sandbox

import (
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/inside"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Session is a living sandbox: its commands, one after another or at once, share processes, /tmp, HOME, loopback and IPC.
// Descriptors, environment, directory, umask and limits are each command's. Wait returns when its tool has ended; what that left
// lives until the command is cancelled or the session ends. It is safe for concurrent use.
type Session struct {
	live  *runner.Session
	files *inside.Files

	mu     sync.Mutex
	serves *runner.Run    // the latest server of files; nil: none has started
	denied []Violation    // of those before it
	told   map[string]int // how many denials of one operation and path of the latest are errors of files
}

// Open begins a session, which ends with Close, with ctx, or with this process. A [*policy.SessionError] says what it lacks.
func (s *Sandbox) Open(ctx context.Context) (*Session, error) {
	live, err := s.ready.Open(ctx)
	if err != nil {
		return nil, err
	}
	live.WatchPorts()
	n := &Session{live: live}
	n.files = inside.New(n.startFiles, live.Over, live.Dir, n.denial)
	return n, nil
}

// Command is [exec.Command] inside the session.
func (s *Session) Command(name string, arg ...string) *Cmd {
	return commandOf(s.live.New, context.Background(), name, arg)
}

// CommandContext is [exec.CommandContext] inside. ctx ends all that it starts.
func (s *Session) CommandContext(ctx context.Context, name string, arg ...string) *Cmd {
	if ctx == nil {
		panic("nil Context")
	}
	return commandOf(s.live.New, ctx, name, arg)
}

// Wrap is [Sandbox.Wrap] for a command of the session.
func (s *Session) Wrap(cmd *exec.Cmd) error { return s.live.Wrap(cmd) }

// SetEnv sets the environment, to be filtered, of commands without an Env.
func (s *Session) SetEnv(env []string) error { return s.live.SetEnv(env) }

// SetHosts replaces [policy.Network.Hosts], and closes what goes to other hosts.
func (s *Session) SetHosts(hosts ...string) error { return s.live.SetHosts(hosts) }

// SetDir sets where commands made afterwards without a Dir, and relative names of Files, begin.
func (s *Session) SetDir(dir string) error { return s.live.SetDir(dir) }

// Output returns what the command with an ID has printed from an offset on.
func (s *Session) Output(id int, offset int64) (policy.Output, error) {
	return s.live.Output(id, offset)
}

// WaitPort waits for a listener at a TCP port, for ctx, or for the end.
func (s *Session) WaitPort(ctx context.Context, port uint16) error { return s.live.WaitPort(ctx, port) }

// Ports lists who listens in the session at TCP and UDP ports.
func (s *Session) Ports() ([]policy.Port, error) { return s.live.Ports() }

// WaitPorts returns Ports when that differs from known.
func (s *Session) WaitPorts(ctx context.Context, known []policy.Port) ([]policy.Port, error) {
	return s.live.WaitPorts(ctx, known)
}

// Forward leads from the harness's loopback to one of [policy.Network.Listen].
func (s *Session) Forward(port uint16) (netip.AddrPort, error) { return s.live.Forward(port) }

// Extend sets or moves the session's deadline, to a time from now.
func (s *Session) Extend(in time.Duration) error { return s.live.Extend(in) }

// Pause stops all that runs inside until Resume: docs/sessions.md.
func (s *Session) Pause() error { return s.live.Pause() }

// Resume continues what Pause has stopped.
func (s *Session) Resume() error { return s.live.Resume() }

// DialInside is [Cmd.DialInside] for a server of any of its commands.
func (s *Session) DialInside(ctx context.Context, port uint16) (net.Conn, error) {
	return s.live.DialInside(ctx, port)
}

// Close ends all in the session, or is a [*StuckError]. A second: [os.ErrClosed].
func (s *Session) Close() error { return s.live.Close() }

// Processes lists what runs in the session: a look at what changes meanwhile.
func (s *Session) Processes() ([]policy.Process, error) { return s.live.Processes() }

// Signal signals a process by its number inside, or returns [os.ErrProcessDone].
func (s *Session) Signal(pid int, sig os.Signal) error { return s.live.Signal(pid, sig) }
