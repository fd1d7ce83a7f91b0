package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/proxy/clientenv"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Run is the life of one command: its way into the sandbox, its network, its end. What belongs to
// the sandbox, which other commands share, is behind the field of that name. It is the command's private
// context, which makes it a hook: exec.Cmd.Start reads Path, then asks its
// context whether it is done, then reads ExtraFiles, Env, Dir and SysProcAttr.
// In that question the Run sees every change the caller has made, refuses what
// it must, and puts in the stage's program. os/exec asks two more times, and
// each is used:
//
//	1st, in Start, before anything is opened    enter
//	2nd, in Start, after the process started    restore, watch: put the fields back
//	3rd, in the goroutine that watches          wait until the caller's context is done or the sandbox is empty
//
// That order is not documented. A test pins it; if it changed, the stage would
// find no program and exit, not run the tool.
type Run struct {
	caller  context.Context
	sandbox *Sandbox // nil: broken says why
	session *Session // nil: the command has a sandbox for itself
	broken  error    // why there is no sandbox
	cmd     *exec.Cmd
	tool    func() Tool
	quiet   bool // a method of Run reads the control socket
	gated   bool // and the caller's reader has to wait for the tool
	gate    *gate

	making sync.Mutex // held while net is made
	net    *Network
	own    *ownDir // the session's, for a command of one

	observer observer

	plain      bool // it is the session's own command, or borrowed
	prepared   *Prepared
	borrowed   bool     // the session was prepared for a single command, which this is
	unprepared string   // why a single command took no prepared one; "": it did, or the sandbox prepares none
	defaultEnv []string // the session's, when the run was made
	defaultDir string
	printed    atomic.Pointer[numbered] // what it prints; nil: it was not started, or has no session

	dir      string   // startDir, as it was when the run entered
	withheld int      // variables of the harness that the tool does not get; -1: Env.AsGiven
	secrets  []string // names in the command's own Env that look like secrets

	mu      sync.Mutex
	asked   int
	refused error
	saved   saved
	reaping bool          // os/exec may be writing the ProcessState
	contact               // what connects the run with its stage
	decided chan struct{} // closed: the tool was executed, or will never be
	told    chan struct{} // closed: the evidence is here, or never will be
	empty   chan struct{} // closed: every process is dead
	gone    chan struct{} // closed: no process of a session's command is left
	over    chan struct{} // closed: the stage has ended or was killed, and the others follow
	hurry   func()        // ends what waits for the stage's messages; nil: they end by themselves
	endOver func()        // closes over, once, and hurries
	cut     error         // why what the tool had left was ended while Wait read its output; nil: it was not
	began   time.Time
	ended   time.Time
}

// A Tool is what a command says of its tool that exec.Cmd has no field for. It is asked for when the
// command enters its sandbox.
type Tool struct {
	Path string
	// Born and Built are called while the walls are built, or nil; see sandbox.Cmd.
	Born, Built func(pid int) error
	// Function is the name of a function of this program, which is the tool; "": it is what Path is. The run is one of a session.
	Function string
}

// saved is what enter has replaced in the exec.Cmd.
type saved struct {
	entered bool
	stdout  io.Writer
	stderr  io.Writer
	env     []string
	extra   []*os.File
	dir     string
}

var (
	closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	never  = make(chan struct{})
)

// New returns the run of a command that has not been made yet. broken is an error that Start must return,
// and s is then nil.
func New(ctx context.Context, s *Sandbox, broken error, tool func() Tool) *Run {
	r := &Run{caller: ctx, sandbox: s, broken: broken, tool: tool, own: new(ownDir), decided: make(chan struct{}), told: make(chan struct{}), empty: make(chan struct{}), gone: make(chan struct{}), over: make(chan struct{})}
	r.endOver = sync.OnceFunc(func() {
		close(r.over)
		if r.hurry != nil {
			r.hurry()
		}
	})
	if s != nil && s.Policy.Observe != nil {
		r.observer = newObserver(s.Policy.Observe, &s.number)
	}
	return r
}

// New returns the run of a single command that may take what waits.
func (p *Prepared) New(ctx context.Context, s *Sandbox, broken error, tool func() Tool) *Run {
	r := New(ctx, s, broken, tool)
	r.prepared = p
	return r
}

// Close refuses further runs of the sandbox, and ends what waits for one.
func (p *Prepared) Close() error {
	if !p.Of.close() {
		return os.ErrClosed
	}
	return p.Keep(0)
}

// New returns the run of a command of the session.
func (n *Session) New(ctx context.Context, tool func() Tool) *Run {
	r := New(ctx, n.sandbox, nil, tool)
	r.session, r.own = n, &n.own
	r.defaultEnv, r.defaultDir = n.defaults.get()
	r.observer.session = n.observer.session
	return r
}

// Command makes the exec.Cmd that this run is the context of.
func (r *Run) Command() *exec.Cmd {
	r.cmd = exec.CommandContext(r, r.stagePath())
	r.cmd.Cancel = r.kill
	return r.cmd
}

// Deadline is the caller's context's.
func (r *Run) Deadline() (time.Time, bool) { return r.caller.Deadline() }

// Value is the caller's context's.
func (r *Run) Value(key any) any { return r.caller.Value(key) }

// Err is why Start must not go on: our refusal, or the caller's context's.
func (r *Run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		return r.refused
	}
	return r.caller.Err()
}

// Done is the hook; see Run.
func (r *Run) Done() <-chan struct{} {
	r.mu.Lock()
	r.asked++
	asked := r.asked
	r.mu.Unlock()
	switch asked {
	case 1:
		select {
		case <-r.caller.Done():
			return r.caller.Done()
		default:
		}
		if err := r.enter(); err != nil {
			r.giveBack()
			r.mu.Lock()
			r.refused = err
			r.mu.Unlock()
			return closed
		}
		return never
	case 2:
		r.restore()
		r.watch()
		return never // not nil: a goroutine has to watch
	}
	select {
	case <-r.caller.Done():
		return r.caller.Done()
	case <-r.empty:
		return never
	}
}

// restore gives the exec.Cmd back the fields that enter replaced.
func (r *Run) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved.entered {
		r.cmd.Env, r.cmd.ExtraFiles, r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.saved.env, r.saved.extra, r.saved.dir, r.saved.stdout, r.saved.stderr
		r.saved = saved{}
	}
}

// Environ is the environment that the tool would get now.
func (r *Run) Environ() []string {
	if r.sandbox == nil {
		return r.cmd.Environ()
	}
	return r.environ(r.startDir()).Vars
}

// environ is the environment of a tool that starts in dir; "": the harness's own directory.
func (r *Run) environ(dir string) Environ {
	p := r.sandbox.Policy
	inside, withheld := r.sandbox.Env.Of(p.Env)
	if passed := len(inside); r.sandbox.keepsFromProxies() {
		inside = slices.DeleteFunc(inside, func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			_, set := p.Env.Set[name]
			return !set && !slices.Contains(p.Env.Pass, name) && clientenv.NamesProxy(name)
		})
		withheld += passed - len(inside)
	}
	if dir != "" {
		if pwd, err := filepath.Abs(dir); err == nil {
			inside = append(inside, "PWD="+pwd)
		}
	}
	n, _ := r.network() // enter fails with the error
	network := r.NetworkVariables()
	inside = append(n.Redact(append(inside, r.own.variables(r.sandbox)...)), network...)
	inside = r.sandbox.Env.unique(inside)
	own := r.cmd.Env // that the caller has chosen, for the command or for its session
	if own == nil {
		own = r.defaultEnv
	}
	if own == nil {
		return Environ{Vars: inside, Withheld: withheld}
	}
	own = (&exec.Cmd{Env: own}).Environ()
	if p.Env.AsGiven || slices.Contains(p.Open, policy.BoundEnvironment) {
		return GivenEnviron(own, inside)
	}
	return OwnEnviron(own, os.Environ(), inside, network)
}

// Plain makes the run one that is not the caller's: without the session's defaults, without an id, and without the policy's deadline for a command.
func (r *Run) Plain() { r.plain, r.defaultEnv, r.defaultDir = true, nil, "" }

// startDir is the directory that the tool starts in: the command's Dir, its session's, or, if both are empty and the
// harness's own is not there inside (an empty private one in its place is not), the policy's. "" is the harness's own.
func (r *Run) startDir() string {
	dir := r.sandbox.Policy.Dir
	if r.cmd.Dir == "" && r.defaultDir != "" {
		return r.defaultDir
	}
	if r.cmd.Dir != "" || dir == "" || r.sandbox.Policy.Root != nil {
		return r.cmd.Dir
	}
	if wd, err := os.Getwd(); err == nil {
		if shown, hosts := r.sandbox.look(wd); shown && hosts {
			return ""
		}
	}
	return dir
}

// enterEnviron is the environment that the run starts with. It notes what the report says of it.
func (r *Run) enterEnviron() []string {
	e := r.environ(r.dir)
	own := r.cmd.Env != nil || r.defaultEnv != nil
	if r.withheld, r.secrets = e.Withheld, e.Secrets; own && r.sandbox.Policy.Env.AsGiven {
		r.withheld = -1
	}
	if own {
		r.noteOwnEnv(e.Vars)
		r.secrets = append(r.secrets, slices.DeleteFunc(r.made().Secrets(e.Vars), func(name string) bool { return slices.Contains(r.secrets, name) })...)
	}
	return e.Vars
}

// noteOwnEnv notes that what the tool has of the command's own Env does not lead to the proxies.
func (r *Run) noteOwnEnv(vars []string) {
	if n := r.made(); n != nil && !r.sandbox.Plan.Uses(plan.Capture) {
		n.NoteEnv(vars)
	}
}

// account begins a run's Account.
func (r *Run) account() Account {
	a := Account{Sandbox: r.sandbox, Tool: r.tool().Path, Status: "promised"}
	own := reflect.ValueOf(r.cmd.Cancel).Pointer() == reflect.ValueOf(r.kill).Pointer() // else it need not end the run, and os/exec does so after WaitDelay
	if at, ok := r.caller.Deadline(); ok && r.cmd.Cancel != nil && (own || r.cmd.WaitDelay > 0) {
		a.Deadline = at
	}
	if r.sandbox == nil {
		a.Status = "no sandbox"
		if r.broken != nil {
			a.Status += ": " + r.broken.Error()
		}
	}
	return a
}

// network returns the run's, and makes it if there is none yet: when the run's
// environment is first asked for, or in Start.
func (r *Run) network() (*Network, error) {
	r.making.Lock()
	defer r.making.Unlock()
	if r.net != nil || r.sandbox == nil {
		return r.net, nil
	}
	if r.session != nil {
		r.net = r.session.net
		return r.net, nil
	}
	n, err := r.sandbox.Networks.New(r.sandbox.NetConfig, r.sandbox.Plan.Namespaces.Net, &r.observer)
	if err != nil {
		return nil, err
	}
	r.net = n
	return n, nil
}

// made is the run's network; nil: there is none, or none yet.
func (r *Run) made() *Network {
	r.making.Lock()
	defer r.making.Unlock()
	return r.net
}

// giveBack ends the run's network and removes its own directory; those of a session stay.
func (r *Run) giveBack() {
	if r.borrowed {
		r.session.endBorrowed()
	}
	if r.session != nil {
		return
	}
	r.making.Lock()
	n := r.net
	r.making.Unlock()
	n.Close()
	r.own.remove()
}

// NetworkVariables make programs use what the run has of a network.
func (r *Run) NetworkVariables() []string {
	n, err := r.network()
	if err != nil || n == nil {
		return nil // enter fails with it
	}
	if !r.gated && r.cmd.Cancel == nil && r.cmd.WaitDelay == 0 && !n.of.serves {
		return nil // no goroutine serves a proxy that explains
	}
	place := r.sandbox.NetConfig.Dir
	if r.sandbox.Plan.Own {
		place = r.own.name()
	}
	return n.Variables(place)
}

// unserved refuses a command without a goroutine that could serve its network.
func (r *Run) unserved() error {
	return &policy.PolicyError{Field: "Cmd.Cancel", Problem: "is nil, so os/exec starts no goroutine that serves the network while the tool runs", Remedy: "set WaitDelay, leave Cancel as it is, or use this type's Start, Run or CombinedOutput"}
}

// checkFields refuses a command that would not start the stage, or nothing in it, and what execve(2) cannot carry.
func (r *Run) checkFields() error {
	if r.sandbox.closed.Load() {
		return fmt.Errorf("sandbox: the Sandbox was closed: %w", os.ErrClosed)
	}
	if r.cmd.Path != r.stagePath() {
		return &policy.PolicyError{Field: "Cmd.Path", Value: r.cmd.Path, Problem: "the embedded Cmd's Path was changed, which would start a program outside of the sandbox",
			Remedy: "set the Path of the sandbox's Cmd, or make a new command"}
	}
	if r.path == "" {
		r.cmd.Err = errors.New("exec: no command") // as os/exec does
		return r.cmd.Err
	}
	for i, a := range r.cmd.Args {
		if strings.ContainsRune(a, 0) {
			return &policy.PolicyError{Field: fmt.Sprintf("Args[%d]", i), Value: a, Problem: "contains a NUL byte", Remedy: "remove it", Err: syscall.EINVAL}
		}
	}
	if err := checkVariables(r.cmd.Env); err != nil {
		return err
	}
	for _, f := range [][2]string{{"Path", r.path}, {"Dir", r.cmd.Dir}} {
		if strings.ContainsRune(f[1], 0) {
			return &policy.PolicyError{Field: f[0], Value: f[1], Problem: "contains a NUL byte", Remedy: "remove it", Err: syscall.EINVAL}
		}
	}
	return nil
}
