package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A run is one command's way into its sandbox. It is the command's private
// context, which makes it a hook: exec.Cmd.Start reads Path, then asks its
// context whether it is done, then reads ExtraFiles, Env, Dir and SysProcAttr.
// In that question the run sees every change the caller has made, refuses what
// it must, and puts in the stage's program. os/exec asks two more times, and
// each is used:
//
//	1st, in Start, before anything is opened    enter
//	2nd, in Start, after the process started    started: put the fields back
//	3rd, in the goroutine that watches          wait until the caller's context is done or the sandbox is empty
//
// That order is not documented. A test pins it; if it changed, the stage would
// find no program and exit, not run the tool.
type run struct {
	caller  context.Context
	sandbox *Sandbox
	broken  error // why there is no sandbox
	cmd     *exec.Cmd
	tool    func() string // the tool's path
	quiet   bool          // a method of ours reads the control socket
	gated   bool          // and the caller's reader has to wait for the tool
	gate    *gate

	hooks hooks

	making sync.Mutex // held while these are made
	net    *runner.Network
	named  string // what its own directory is called, or will be

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
	over    chan struct{} // closed: the stage has ended or was killed, and the others follow
	ending  sync.Once     // closes over
	began   time.Time
	ended   time.Time
}

// saved is what enter has replaced in the exec.Cmd.
type saved struct {
	entered bool
	env     []string
	extra   []*os.File
	dir     string
}

// hooks are the command's functions that are called while its walls are built.
type hooks struct{ cmd *Cmd }

func (h hooks) born() func(pid int) error {
	if h.cmd == nil {
		return nil
	}
	return h.cmd.Born
}

func (h hooks) built() func(pid int) error {
	if h.cmd == nil {
		return nil
	}
	return h.cmd.Built
}

var (
	closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
	never  = make(chan struct{})
)

func newRun(ctx context.Context, s *Sandbox, broken error) *run {
	return &run{caller: ctx, sandbox: s, broken: broken, decided: make(chan struct{}), told: make(chan struct{}), empty: make(chan struct{}), over: make(chan struct{})}
}

// newExecCmd makes the exec.Cmd that this run is the context of.
func (r *run) newExecCmd() *exec.Cmd {
	r.cmd = exec.CommandContext(r, r.stagePath())
	r.cmd.Cancel = r.kill
	return r.cmd
}

// Deadline is the caller's context's.
func (r *run) Deadline() (time.Time, bool) { return r.caller.Deadline() }

// Value is the caller's context's.
func (r *run) Value(key any) any { return r.caller.Value(key) }

// Err is why Start must not go on: our refusal, or the caller's context's.
func (r *run) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refused != nil {
		return r.refused
	}
	return r.caller.Err()
}

// Done is the hook; see run.
func (r *run) Done() <-chan struct{} {
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
			r.closeNetwork()
			r.mu.Lock()
			r.refused = err
			r.mu.Unlock()
			return closed
		}
		return never
	case 2:
		r.started()
		return never // not nil: a goroutine has to watch
	}
	select {
	case <-r.caller.Done():
		return r.caller.Done()
	case <-r.empty:
		return never
	}
}

// reap calls what waits for the process.
func (r *run) reap(wait func() error) error {
	set := func(is bool) {
		r.mu.Lock()
		r.reaping = is
		r.mu.Unlock()
	}
	set(true)
	defer set(false)
	return wait()
}

// stageEnded says that what is left of the run need not be waited for without end.
func (r *run) stageEnded() { r.ending.Do(func() { close(r.over) }) }

// processState is how the process ended; nil: it is not known yet.
func (r *run) processState() *os.ProcessState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reaping {
		return nil
	}
	return r.cmd.ProcessState
}

// forget leaves the exec.Cmd as a failed Start of os/exec leaves it. Another goroutine
// may be asking for the report.
func (r *run) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cmd.Process, r.cmd.ProcessState = nil, nil
}

// started puts the caller's fields back and begins to watch.
func (r *run) started() {
	r.restore()
	r.watch()
}

// restore gives the exec.Cmd back the fields that enter replaced.
func (r *run) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved.entered {
		r.cmd.Env, r.cmd.ExtraFiles, r.cmd.Dir = r.saved.env, r.saved.extra, r.saved.dir
		r.saved = saved{}
	}
}

// environ is the environment of the tool.
func (r *run) environ() runner.Environ {
	if r.sandbox == nil {
		return runner.Environ{Vars: r.cmd.Environ()}
	}
	of := r.sandbox.ready.Policy
	inside, withheld := r.sandbox.ready.Env.Of(of.Env)
	if dir := r.startDir(); dir != "" {
		if pwd, err := filepath.Abs(dir); err == nil {
			inside = append(inside, "PWD="+pwd)
		}
	}
	network := r.networkVariables()
	inside = append(r.unsecret(append(inside, r.ownVariables()...)), network...)
	model := exec.Cmd{Env: inside}
	if inside == nil {
		model.Env = []string{}
	}
	inside = model.Environ() // removes duplicates, keeping the last, as os/exec does
	switch {
	case r.cmd.Env == nil:
		return runner.Environ{Vars: inside, Withheld: withheld}
	case of.Env.AsGiven || slices.Contains(of.Open, policy.BoundEnvironment):
		return runner.GivenEnviron(r.cmd.Environ(), inside)
	}
	return runner.OwnEnviron(r.cmd.Environ(), os.Environ(), inside, network)
}

// startDir is the directory that the tool starts in: the command's Dir, or, if that is empty and the
// harness's own is not shown, the policy's. "" is the harness's own.
func (r *run) startDir() string {
	dir := r.sandbox.ready.Policy.Dir
	if r.cmd.Dir != "" || dir == "" || r.sandbox.ready.Policy.Root != nil {
		return r.cmd.Dir
	}
	if wd, err := os.Getwd(); err == nil && r.sandbox.sees(wd) {
		return ""
	}
	return dir
}

// enterEnviron is the environment that the run starts with. It notes what the report says of it.
func (r *run) enterEnviron() []string {
	e := r.environ()
	if r.withheld, r.secrets = e.Withheld, e.Secrets; r.cmd.Env != nil && r.sandbox.ready.Policy.Env.AsGiven {
		r.withheld = -1
	}
	if r.cmd.Env != nil {
		r.noteOwnEnv(e.Vars)
	}
	return e.Vars
}

// noteOwnEnv notes that what the tool has of the command's own Env does not lead to the proxies.
func (r *run) noteOwnEnv(vars []string) {
	if n := r.made(); n != nil && !r.sandbox.ready.Plan.Uses(plan.Capture) {
		n.NoteEnv(vars)
	}
}

// ownVariables make programs use the run's own directory, if it has one.
func (r *run) ownVariables() []string {
	if r.own == "" || !r.isHomed() {
		return nil
	}
	return []string{"HOME=" + filepath.Join(r.own, compile.RunHome), "TMPDIR=" + filepath.Join(r.own, compile.RunTmp)}
}

// checkStrings refuses what execve(2) cannot carry.
func (r *run) checkStrings() error {
	for i, a := range r.cmd.Args {
		if strings.ContainsRune(a, 0) {
			return &PolicyError{Field: fmt.Sprintf("Args[%d]", i), Value: a, Problem: "contains a NUL byte", Remedy: "remove it", Err: errInvalid}
		}
	}
	for i, e := range r.cmd.Env {
		if strings.ContainsRune(e, 0) {
			return &PolicyError{Field: fmt.Sprintf("Env[%d]", i), Problem: "contains a NUL byte", Remedy: "remove it", Err: errInvalid}
		}
	}
	for _, f := range [][2]string{{"Path", r.tool()}, {"Dir", r.cmd.Dir}} {
		if strings.ContainsRune(f[1], 0) {
			return &PolicyError{Field: f[0], Value: f[1], Problem: "contains a NUL byte", Remedy: "remove it", Err: errInvalid}
		}
	}
	return nil
}

// ErrDeadline is wrapped by Wait's error when the run was ended at its policy's
// wall-clock limit. The error wraps the [*exec.ExitError] too.
var ErrDeadline = errors.New("sandbox: the run reached its wall-clock limit")

// A StuckError is Wait's when a process of the run was killed and has not ended within
// half a minute: the kernel holds it up, as it does one that waits for a file server
// which does not answer. Everything else of the run is dead. Err is what Wait would have
// returned.
type StuckError struct {
	PID int // of the process, or of the sandbox's first one, which waits for it
	Err error
}

func (e *StuckError) Error() string {
	s := fmt.Sprintf("sandbox: process %d of the run was killed and does not end", e.PID)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *StuckError) Unwrap() error { return e.Err }

// A ProcessError is Wait's when a process of the sandbox's own was killed before the tool
// had ended: by the kernel for want of memory, or by a process outside. One is "init",
// which is the supervisor too, the other "keeper", which stands in for a pid namespace.
// The whole run ends with it: what the tool would have gone on with is not bounded any
// more. Err is what Wait would have returned.
//
// A kill of the command's own process, as [os.Process.Kill] or a signal to the process
// group is, is the harness's, and gives the error that os/exec gives.
type ProcessError struct {
	Process string
	Status  string // how it ended
	Err     error
}

func (e *ProcessError) Error() string {
	s := "sandbox: the run was ended: " + e.what()
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *ProcessError) what() string {
	return fmt.Sprintf("the sandbox's %s %s while the tool ran", e.Process, e.Status)
}

// Unwrap returns Err.
func (e *ProcessError) Unwrap() error { return e.Err }

// A StartError is a wall that could not be built: nothing of the tool ran.
type StartError struct {
	Step string // what was to be done, as Explain prints it
	In   string // where: "stage", "init" or "tool"
	Err  error  // the errno

	// Field is the policy's field that the step comes from, such as "Root.Entries[3]"; ""
	// if it comes from none.
	Field string
	// Found is what stood in the way, if that says more: a link's target.
	Found string
}

func (e *StartError) Error() string {
	s := fmt.Sprintf("sandbox: start: %s (in the %s): %v", e.Step, e.In, e.Err)
	if e.Found != "" {
		s += fmt.Sprintf(" (there is %q)", e.Found)
	}
	return s
}

// Unwrap returns the errno.
func (e *StartError) Unwrap() error { return e.Err }

func placeName(where int) string { return plan.Place(where).String() }
