package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
)

// A part is what one row of the table puts on top of the rows before.
type part struct {
	name       string
	namespaces plan.Namespaces
	steps      func(s plan.Step) bool
	probe      bool // no tool is started
}

func by(list ...plan.Mechanism) func(plan.Step) bool {
	return func(s plan.Step) bool { return slices.Contains(list, s.By) }
}

func does[A plan.Action](s plan.Step) bool {
	_, ok := s.Do.(A)
	return ok
}

func either(list ...func(plan.Step) bool) func(plan.Step) bool {
	return func(s plan.Step) bool {
		return slices.ContainsFunc(list, func(f func(plan.Step) bool) bool { return f(s) })
	}
}

// builds are the steps that need the new root.
var builds = either(does[plan.NewRoot], does[plan.Scratch], does[plan.MakeLink], does[plan.MakeFile], does[plan.Bind],
	does[plan.Private], does[plan.PTYs], does[plan.Queues], does[plan.Proc], does[plan.Pivot], does[plan.SealRoot])

// parts are in the order in which they can be put on.
var parts = []part{
	{name: "the stage, which forks init", probe: true},
	{name: "the tool executed, its status read back", steps: either(does[plan.OpenProc], does[plan.Chdir], does[plan.RestoreSignals])},
	{name: "a user namespace, and one in it", namespaces: plan.Namespaces{User: true}, steps: either(does[plan.MapIDs], does[plan.NestUser])},
	{name: "pid, ipc, uts and cgroup namespaces", namespaces: plan.Namespaces{PID: true, IPC: true, UTS: true, Cgroup: true}},
	{name: "a network namespace, lo up", namespaces: plan.Namespaces{Net: true}, steps: does[plan.Loopback]},
	{name: "a mount namespace", namespaces: plan.Namespaces{Mount: true}, steps: does[plan.PrivateMounts]},
	{name: "a root of its own: binds, /proc, /dev, private directories", steps: builds},
	{name: "secrets hidden", steps: does[plan.Hide]},
	{name: "copy-on-write caches", steps: either(does[plan.Overlay], does[plan.SharedOverlay])},
	{name: "keyring, no_new_privs, capabilities, limits", steps: either(by(plan.Keyring, plan.NoNewPrivs, plan.Capabilities, plan.Rlimits), does[plan.Undumpable])},
	{name: "Landlock, and the self-checks", steps: either(by(plan.Landlock, plan.LandlockScope), does[plan.CheckRoot], does[plan.CheckSignal], does[plan.CheckKeyring])},
	{name: "protected names", steps: by(plan.Supervisor)},
	{name: "the system call filter", steps: by(plan.Seccomp)},
}

// BenchmarkSteps measures the start with the mechanisms put on one after the other: what each row has more than the row
// before is what its part takes.
func BenchmarkSteps(b *testing.B) {
	s := benchSandbox(b, 0)
	for i := range parts {
		b.Run(parts[i].name, func(b *testing.B) {
			run := benchStage(b, upTo(s.ready.Plan, i), parts[i].probe)
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// upTo returns the plan with the parts up to and including i.
func upTo(whole plan.Plan, i int) plan.Plan {
	var p plan.Plan
	var keeps []func(plan.Step) bool
	for _, part := range parts[:i+1] {
		n := part.namespaces
		q := &p.Namespaces
		q.User, q.Mount, q.PID, q.IPC = q.User || n.User, q.Mount || n.Mount, q.PID || n.PID, q.IPC || n.IPC
		q.UTS, q.Cgroup, q.Net = q.UTS || n.UTS, q.Cgroup || n.Cgroup, q.Net || n.Net
		if part.steps != nil {
			keeps = append(keeps, part.steps)
		}
	}
	p.Namespaces.User = p.Namespaces.User && whole.Namespaces.User
	keep := either(keeps...)
	for _, s := range whole.Steps {
		if keep(s) {
			p.Steps = append(p.Steps, s)
		}
	}
	if !slices.ContainsFunc(p.Steps, either(does[plan.Proc], does[plan.OpenProc])) {
		p.Steps = slices.Insert(p.Steps, 0, plan.Step{In: plan.Init, Do: plan.OpenProc{}})
	}
	return p
}

// benchStage returns a function that runs the tool under a plan.
func benchStage(b *testing.B, p plan.Plan, probe bool) func() error {
	b.Helper()
	t, err := stage.Compile(p, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
	if err != nil {
		b.Fatal(err)
	}
	run := stage.Run{Path: benchTool, Argv: []string{benchTool}, Env: os.Environ(), Quiet: true, Probe: probe}
	return func() error { return runTemplate(t, run) }
}

var errNotRun = errors.New("the tool was not executed")

func runTemplate(t *stage.Template, run stage.Run) error {
	c, err := stage.NewControl()
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := launch.Default()
	if err != nil {
		return err
	}
	run.Layout = l.Layout(3)
	program, err := t.Sealed(run)
	if err != nil {
		return err
	}
	defer program.Close()
	cmd := exec.Cmd{Path: l.Path, Args: []string{benchTool}, Dir: "/", Env: l.Layout(3).Env, ExtraFiles: l.Files(nil, program, c.Child)}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.Passed()
	c.AwaitStart()
	c.AwaitEvidence()
	err = cmd.Wait()
	c.Drain()
	c.AwaitEmpty(nil, stage.MostEnd)
	switch {
	case c.Failed != nil:
		return fmt.Errorf("%s: %w", t.StepName(c.Failed.Step), c.Failed.Errno)
	case !run.Probe && !c.Started:
		return errNotRun
	case run.Probe:
		return nil // a probe's stage has no tool to end like
	}
	return err
}
