package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
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
var builds = either(does[plan.NewRoot], does[plan.Scratch], does[plan.MakeDir], does[plan.MakeLink], does[plan.MakeFile], does[plan.Bind],
	does[plan.Private], does[plan.PTYs], does[plan.Proc], does[plan.Pivot], does[plan.SealRoot])

// parts are in the order in which they can be put on.
var parts = []part{
	{name: "the harness executed again, as stage, which forks init", probe: true},
	{name: "the tool executed, its status read back", steps: either(does[plan.OpenProc], does[plan.Chdir], does[plan.RestoreSignals])},
	{name: "a user namespace, and one in it", namespaces: plan.Namespaces{User: true}, steps: either(does[plan.MapIDs], does[plan.NestUser])},
	{name: "pid, ipc, uts and cgroup namespaces", namespaces: plan.Namespaces{PID: true, IPC: true, UTS: true, Cgroup: true}},
	{name: "a network namespace, lo up", namespaces: plan.Namespaces{Net: true}, steps: does[plan.Loopback]},
	{name: "a mount namespace", namespaces: plan.Namespaces{Mount: true}, steps: does[plan.PrivateMounts]},
	{name: "a root of its own: binds, /proc, /dev, private directories", steps: builds},
	{name: "secrets hidden", steps: does[plan.Hide]},
	{name: "copy-on-write caches", steps: does[plan.Overlay]},
	{name: "keyring, no_new_privs, capabilities, limits", steps: either(by(plan.Keyring, plan.NoNewPrivs, plan.Capabilities, plan.Rlimits), does[plan.Undumpable])},
	{name: "Landlock, and the self-checks", steps: either(by(plan.Landlock, plan.LandlockScope), does[plan.CheckRoot], does[plan.CheckSignal], does[plan.CheckKeyring])},
	{name: "protected names", steps: by(plan.Supervisor)},
	{name: "the system call filter", steps: by(plan.Seccomp)},
}

// steps measures the start with the mechanisms put on one after the other.
func steps(rounds int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	whole, err := stage.PlanOf(s)
	if err != nil {
		return nil, err
	}
	list := []contender{timed(plain, func() error { c := exec.Command(trivial); c.Dir = dir; return c.Run() })}
	for i := range parts {
		run, err := runner(upTo(whole, i), dir, parts[i].probe)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", parts[i].name, err)
		}
		list = append(list, timed(parts[i].name, run))
	}
	list = append(list, timed("the same by Sandbox.Command, which also prepares it", func() error { c := s.Command(trivial); c.Dir = dir; return c.Run() }))
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("Where the time of a start goes, %d rounds: medians and quartiles", rounds), head: []string{"", "ms so far", "ms added by this row"}}
	for i, name := range r.names {
		added := ""
		if i > 0 {
			added = r.added(i, i-1, time.Millisecond).String()
		}
		t.add(name, r.time(i, time.Millisecond).String(), added)
	}
	return []table{t}, nil
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

// runner returns a function that runs the trivial tool under a plan.
func runner(p plan.Plan, dir string, probe bool) (func() error, error) {
	t, err := stage.Compile(p, stage.Identity{UID: os.Geteuid(), GID: os.Getegid()})
	if err != nil {
		return nil, err
	}
	run := stage.Run{Path: trivial, Argv: []string{trivial}, Env: os.Environ(), Quiet: true, Probe: probe}
	return func() error { return runStage(t, run, dir) }, nil
}

var errNotRun = errors.New("the tool was not executed")

func runStage(t *stage.Template, run stage.Run, dir string) error {
	c, err := stage.NewControl()
	if err != nil {
		return err
	}
	defer c.Close()
	program, err := t.Sealed(run)
	if err != nil {
		return err
	}
	defer program.Close()
	way, err := stage.TheWay()
	if err != nil {
		return err
	}
	cmd := exec.Cmd{Path: way.Path, Args: []string{trivial}, Dir: dir, Env: stage.Environment(3), ExtraFiles: way.Files(nil, program, c.ChildEnd())}
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
	case !run.Probe && !c.Held:
		return errNotRun
	case run.Probe:
		return nil // a probe's stage has no tool to end like
	}
	return err
}
