package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/function"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A Session is a living sandbox: its namespaces and what lies in them, its network, and its init, from Open to Close. Any
// number of commands run in it, each as a Run whose stage hands it to that init.
type Session struct {
	sandbox *Sandbox
	id      stage.Identity
	cmd     *exec.Cmd // the stage
	control *stage.Control
	init    occupant
	net     *Network
	own     ownDir
	ready   *stage.Template // of the commands for which a process stands ready; nil: none does
	began   time.Time

	defaults defaults        // of its commands
	outputs  outputs         // which they have printed
	answers  callback.Memory // of Files.Decide, for the session
	forwards forwards
	deadline deadline
	hosts    hosts
	pause    pause

	copying sync.Once // makes program
	program *os.File  // a copy of this program's file, for functions
	failed  error     // why there is none

	discarded supervisor.Names // set before ended is closed

	observer observer
	drained  chan struct{} // closed: init and all below it have ended
	empty    chan struct{} // closed: every process is dead, or is waited for no more
	ended    chan struct{} // closed: every process is dead, and everything given back
	told     chan struct{} // closed: the observer knows, too
	closing  sync.Once
	mu       sync.Mutex
	sock     *os.File // the harness's and the commands' way to init; nil: it is closed
	entrance *os.File // and that of commands for which a process stands ready; nil: there is none
	asked    bool     // Close was called, or the context has ended
	members  map[*stage.Control]member
	left     sync.Cond     // a member has left
	watching chan struct{} // closed: WatchPorts has ended; nil: it has not begun
}

// A member is what a session knows of a command that has processes.
type member struct {
	tool           string
	printed        *numbered       // nil: its output is not kept, nor has it a number: it is the session's own, as the server of its files
	decided, ended <-chan struct{} // as Run's decided and empty
	endStageless   func()          // ends the command if its stage has ended
}

// Open begins a session. It ends with ctx, with Close, or with the harness.
func (s *Sandbox) Open(ctx context.Context) (*Session, error) { return s.open(ctx, ctx) }

// open is Open with another context for the start.
func (s *Sandbox) open(ctx, starting context.Context) (*Session, error) {
	if s.closed.Load() {
		return nil, fmt.Errorf("sandbox: the Sandbox was closed: %w", os.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.holdsSessions(); err != nil {
		return nil, err
	}
	n := &Session{sandbox: s, id: stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}, drained: make(chan struct{}), empty: make(chan struct{}), ended: make(chan struct{}), told: make(chan struct{}), members: map[*stage.Control]member{}}
	if observe := s.Policy.Observe; observe != nil {
		n.observer = newObserver(observe, &s.number)
		n.observer.session = n.observer.run
	}
	n.left.L = &n.mu
	if err := n.start(starting); err != nil {
		n.release()
		return nil, host.ShortOf(err)
	}
	go n.follow()
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			n.deadline.struck.Store(true)
		}
		n.Close()
	})
	go func() { <-n.ended; stop() }()
	return n, nil
}

// holdsSessions refuses sessions where this host or policy cannot hold them.
func (s *Sandbox) holdsSessions() error {
	no := func(needs, remedy string) error {
		return &policy.SessionError{Reason: "needs " + needs, Remedy: remedy + "; or run single commands", Err: errors.ErrUnsupported}
	}
	switch {
	case s.Policy.Root != nil:
		return no("a policy of Files: Policy.Root is set", "use Files")
	case s.Policy.Nested:
		return no("a policy without Nested: the Landlock domain around each of its tools refuses mounts", "do not set Policy.Nested")
	case s.Plan.Apart == nil && !slices.Contains(slices.Concat(s.Policy.May, s.Policy.Open), policy.BoundProcesses):
		return no("Landlock, which keeps its commands from each other's memory and which this host does not have", "see Probe's Landlock, or name processes in Policy.May")
	}
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Max < leastSessionFiles {
		return no(fmt.Sprintf("%d descriptors, of which this program's hard limit leaves %d", leastSessionFiles, files.Max), "raise the limit (ulimit -Hn)")
	}
	return nil
}

// leastSessionFiles is what a session's init has to be able to number: its own descriptors lie above those of any tool.
const leastSessionFiles = 600

func (n *Session) start(ctx context.Context) (err error) {
	s := n.sandbox
	if n.net, err = s.Networks.New(s.NetConfig, s.Plan.Namespaces.Net, &n.observer); err != nil {
		return err
	}
	t, err := s.Template(n.id, true)
	if err != nil {
		return err
	}
	if t.NeedsOwn {
		if err := n.own.make(s.Policy, n.net, n.id); err != nil {
			return err
		}
	}
	l, err := launch.Default()
	if err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if s.Plan.Ready {
		n.ready = t
	}
	ends, err := n.connect()
	for _, end := range ends {
		defer end.Close()
	}
	if err != nil {
		return err
	}
	made := s.made()
	if made != nil {
		ends = append(ends, made)
	}
	program, err := t.Sealed(stage.Run{Made: made != nil, Ready: n.ready != nil, Path: "/", Argv: []string{"session"}, Own: n.own.made, Quiet: true, Files: n.net.files, Connects: n.net.connects,
		Serves: true, Ignored: launch.IgnoredSignals(), Given: len(ends), Layout: l.Layout(3)})
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer program.Close()
	if n.control, err = stage.NewControl(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	n.cmd = &exec.Cmd{Path: l.Path, Env: l.Layout(3).Env, Dir: "/", ExtraFiles: l.Files(nil, program, n.control.Child, ends...)}
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("sandbox: start the session's stage: %w", err)
	}
	n.control.KillBelow = killBelow
	hurry := n.control.Passed()
	stop := context.AfterFunc(ctx, func() {
		n.cmd.Process.Kill()
		hurry()
	})
	n.control.AwaitStart()
	switch inTime := stop(); {
	case !inTime:
		err = ctx.Err()
	case n.control.Started:
		n.held()
		return nil
	default:
		err = failedStart(s.Plan.ForSession(), t, n.control.Failed)
	}
	n.cmd.Process.Kill()
	hurry()
	n.cmd.Wait()
	n.control.Drain()
	n.control.AwaitEmpty(nil, stage.MostEnd)
	return err
}

// held is what follows a start, once init has said that it waits for commands.
func (n *Session) held() {
	n.init, _ = occupantOf(n.control.AwaitInit())
	if n.began = time.Now(); n.sandbox.Policy.Observe != nil {
		n.observer.started(n.began, policy.Started{PID: n.cmd.Process.Pid})
	}
	n.net.Serve(n.control, n.processesToDial(), n.cmd.Process.Pid)
}

// connect makes the sockets between the harness and init, and returns init's ends.
func (n *Session) connect() (ends []*os.File, err error) {
	for _, own := range []**os.File{&n.sock, &n.entrance} {
		if own == &n.entrance && n.ready == nil {
			break
		}
		harness, init, err := stage.SessionSocket()
		if err != nil {
			return ends, fmt.Errorf("sandbox: %w", err)
		}
		*own, ends = harness, append(ends, init)
	}
	return ends, nil
}

// follow waits for the session's end.
func (n *Session) follow() {
	release, released := n.control.AtEnd(func(scratch *os.File) { n.discarded = n.sandbox.discarded(scratch) }), make(chan struct{})
	go func() { release(); close(released) }() // the mounts end while the stage does
	n.control.Drain()
	close(n.drained)
	n.mu.Lock()
	watching := n.watching
	n.mu.Unlock()
	if watching != nil {
		<-watching // while the stage's number is not another process's
	}
	n.cmd.Wait()
	n.control.AwaitEmpty(nil, stage.MostEnd)
	close(n.empty)
	n.release()
	<-released
	close(n.ended)
	if n.sandbox.Policy.Observe != nil {
		n.tellEnd()
	}
	close(n.told)
}

// tellEnd tells the observer of the session's end, after that of its commands.
func (n *Session) tellEnd() {
	at := time.Now()
	n.mu.Lock()
	for len(n.members) > 0 {
		n.left.Wait()
	}
	n.mu.Unlock()
	s := n.net.Summary().Gateway
	e := policy.Ended{Status: "session ended", ExitCode: -1, Duration: at.Sub(n.began), Denied: s.Denied, Sent: s.Sent, Received: s.Received, Discarded: n.discarded.List}
	if err := n.err(nil); !errors.Is(err, os.ErrClosed) {
		e.Err = err.Error()
	}
	n.observer.ended(at, e)
}

// release gives back what the session has.
func (n *Session) release() {
	if n.net != nil {
		n.net.Close()
	}
	n.own.remove()
	n.outputs.close()
	n.deadline.stop()
	n.copying.Do(func() { n.failed = os.ErrClosed })
	n.mu.Lock()
	n.program.Close() // a nil one does not mind
	n.sock.Close()
	n.entrance.Close()
	n.sock = nil
	n.mu.Unlock()
	if n.control != nil {
		n.control.Close()
	}
}

// Close ends the session with all that runs in it, and returns when every process is dead. What does not end within half a minute is a [*StuckError].
func (n *Session) Close() error {
	first := false
	n.closing.Do(func() {
		first = true
		n.mu.Lock()
		n.asked = true
		if n.sock != nil {
			stage.EndSession(n.sock) // if that fails, init is dead: what it has left the stage ends, or at its end the keeper
		}
		n.mu.Unlock()
	})
	if !n.await(n.empty) {
		return &StuckError{PID: max(n.init.pid, 1)}
	}
	<-n.told
	if n.control.Stuck != 0 {
		return &StuckError{PID: n.control.Stuck}
	}
	if !first {
		return os.ErrClosed
	}
	return nil
}

// err is the error of a session that is over; nil: it is not.
func (n *Session) err(from error) error {
	select {
	case <-n.ended:
	default:
		return nil
	}
	n.mu.Lock()
	asked := n.asked
	n.mu.Unlock()
	switch e := lostError(n.control.Lost, from); {
	case n.deadline.struck.Load():
		return &policy.SessionError{Reason: "has ended", Err: &deadlineError{from}}
	case asked:
		return &policy.SessionError{Reason: "was closed", Err: errors.Join(os.ErrClosed, from)}
	case e != nil:
		return &policy.SessionError{Reason: "has ended", Err: e}
	case n.control.Deadline:
		return &policy.SessionError{Reason: "has ended", Err: &deadlineError{from}}
	}
	return &policy.SessionError{Reason: "has ended: its stage was killed", Err: from}
}

// way returns a descriptor of the way to init of commands with this template, which the caller closes, and whether that is the template of the
// session's own program.
func (n *Session) way(t *stage.Template) (way *os.File, own bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sock == nil {
		return nil, false, &policy.SessionError{Reason: "has ended"}
	}
	sock := n.sock
	if own = t == n.ready && n.entrance != nil; own {
		sock = n.entrance
	}
	f, err := stage.Duplicate(sock)
	if err != nil {
		return nil, false, fmt.Errorf("sandbox: %w", err)
	}
	return f, own, nil
}

// lives reports whether init listens.
func (n *Session) lives() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sock != nil && stage.SessionLives(n.sock)
}

// over is the error of a session that is over or about to be, of a command that ended with from; nil: it is not.
func (n *Session) over(from error) error {
	n.mu.Lock()
	asked := n.asked
	n.mu.Unlock()
	if asked || !n.lives() {
		n.await(n.ended)
	}
	return n.err(from)
}

// Over is the error of a session that is over or about to be; nil: it is not.
func (n *Session) Over() error { return n.over(nil) }

// join notes a command that has processes, and leave one that has none any more.
func (n *Session) join(c *stage.Control, m member) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.members[c] = m
}

func (n *Session) leave(c *stage.Control) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.members, c)
	n.left.Broadcast()
}

// newCall makes what a tool gets that is a function of this program.
func (n *Session) newCall(name string, args []string) (*function.Call, error) {
	n.copying.Do(func() { n.program, n.failed = function.Program() })
	if n.failed != nil {
		return nil, n.failed
	}
	n.mu.Lock()
	program, err := stage.Duplicate(n.program) // the session may end while the call's process is started
	n.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return function.New(name, args[min(1, len(args)):], program)
}
