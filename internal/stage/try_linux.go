package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// Try finds out whether namespaces can really be made here, by making them: a
// stage is started that builds an empty sandbox and ends. It returns the facts with what that
// shows. Where the trampoline cannot be executed, launch.Default is the re-exec from then on.
func Try(f host.Facts) host.Facts {
	if t, killed := f.NotTried(); killed {
		return f.Tried(t)
	}
	_, err := launch.Trampoline()
	t := host.Trial{Trampoline: err}
	if began := tryNamespaces(&t); !began && err == nil && (t.Shortage == nil || errors.Is(t.Shortage, host.ErrKilled)) {
		// The trampoline may be why: with it alone that shows, and then the re-exec tries.
		if err = tryTrampoline(); err != nil {
			t = host.Trial{Trampoline: err}
			tryNamespaces(&t)
		}
	}
	if t.Obstacle == (host.Obstacle{Errno: syscall.ENOSPC}) { // a quota (namespaces(7)), such as that of a sandbox around this one
		t, _ = orElse(t, host.Trial{NoCgroup: true})
	}
	if t.Shortage == nil && t.Refused != "" && host.UsedUp(t.Obstacle.Errno) {
		t.Shortage = errors.New(t.Refused)
	}
	for seen, i := t.Obstacle, 0; t.Refused != "" && t.Shortage == nil && i < len(ways); i++ {
		if w := ways[i]; w.WithoutUser && f.UID != 0 || w.SharedPIDs && !seen.Proc || w.NetApart && !seen.Lo || w.Chroot && !seen.Pivot {
			continue
		}
		var other host.Trial
		t, other = orElse(t, ways[i])
		seen.Proc, seen.Lo, seen.Pivot = seen.Proc || other.Obstacle.Proc, seen.Lo || other.Obstacle.Lo, seen.Pivot || other.Obstacle.Pivot
		if t.Refused != "" && ways[i] == (host.Trial{WithoutUser: true}) && other.Refused != "" {
			t.Refused += "; without a user namespace: " + other.Refused
		}
	}
	return f.Tried(t)
}

// ways are the kinds of namespaces that are tried where all of them are refused, the best first: what a kind does without has been refused before.
// Root needs no user namespace to make the others. Where the pid namespace is left out one is needed, which keeps
// the tool from what /proc has of processes outside.
var ways = []host.Trial{{Chroot: true}, {WithoutUser: true}, {WithoutUser: true, Chroot: true},
	{WithoutUser: true, NetApart: true}, {WithoutUser: true, NetApart: true, Chroot: true}, {SharedPIDs: true}, {SharedPIDs: true, Chroot: true}}

// orElse returns another trial in the place of t, or t if that was refused, too; and what came of it.
func orElse(t, other host.Trial) (chosen, tried host.Trial) {
	other.Trampoline = t.Trampoline
	if tryNamespaces(&other); other.Refused != "" || other.Shortage != nil {
		return t, other
	}
	chosen = other
	chosen.Obstacle = t.Obstacle
	return chosen, other
}

// tryTrampoline executes the trampoline.
func tryTrampoline() error {
	trampoline, err := launch.Trampoline()
	if err != nil {
		return err
	}
	c, _, err := runProbe(probeOf(plan.Namespaces{}, plan.OpenProc{}), trampoline)
	if err == nil {
		c.Close()
		if c.Probed {
			return nil
		}
		err = errors.New("the trampoline was executed and did not come to its end")
	}
	if !host.IsShortage(err) || errors.Is(err, host.ErrKilled) { // a kernel kills where a program's file cannot be mapped (execve(2))
		trampoline.Refuse()
	}
	return err
}

// tryNamespaces says in t what stood in the way, and how mounting an overlayfs went. It reports whether its stage began.
func tryNamespaces(t *host.Trial) (began bool) {
	proc := plan.Proc{Shared: t.SharedPIDs}
	if !t.SharedPIDs && !t.WithoutUser { // which an AppArmor profile, as LXD's, refuses by the path, and directories in the new root below /sys, too
		proc.Quotas.Users = 1
	}
	steps := []plan.Action{plan.PrivateMounts{}, plan.NewRoot{Private: true}, proc, plan.Private{At: "/sys/devices/system/cpu", Slot: "sys", Mode: 0o755},
		plan.Private{At: "/dev", Slot: "dev", Mode: 0o755}, plan.PTYs{}, plan.Loopback{Apart: t.NetApart}, plan.ProbeOverlay{}, plan.Pivot{Chroot: t.Chroot}, plan.SealRoot{}}
	if t.SharedPIDs {
		steps = append([]plan.Action{plan.OpenProc{}}, steps...)
	}
	if !t.WithoutUser {
		steps = append([]plan.Action{plan.MapIDs{}}, append(steps, plan.NestUser{})...)
	}
	p := probeOf(plan.Namespaces{User: !t.WithoutUser, Mount: true, PID: !t.SharedPIDs, IPC: true, UTS: true, Cgroup: !t.NoCgroup, Net: true}, steps...)
	c, template, err := runDefault(p)
	if host.IsShortage(err) {
		t.Shortage = err
		return false
	}
	if err != nil {
		t.Refused = err.Error()
		return false
	}
	defer c.Close()
	switch {
	case c.Failed != nil && host.IsShortage(c.Failed.Errno):
		t.Shortage = fmt.Errorf("%s: %w", template.StepName(c.Failed.Step), c.Failed.Errno)
	case c.Failed != nil:
		t.Refused = fmt.Sprintf("%s: %v", template.StepName(c.Failed.Step), c.Failed.Errno)
		t.Obstacle.Errno = c.Failed.Errno
		if c.Failed.Step < len(p.Steps) {
			step := p.Steps[c.Failed.Step].Do
			_, t.Obstacle.Proc = step.(plan.Proc)
			_, t.Obstacle.Lo = step.(plan.Loopback)
			_, t.Obstacle.Pivot = step.(plan.Pivot)
			t.Obstacle.Mount = step != plan.Action(plan.MapIDs{})
		}
	case !c.Probed:
		t.Refused = died
	default:
		t.Overlay = syscall.Errno(c.Checks[overlaySlot] - 1)
	}
	return c.Probed || c.Failed != nil && c.Failed.Step != wire.StepPrepare
}

// TryTUN makes a TUN device and returns the facts with what that shows, where Try has been called before. It
// is apart from that because it costs another start, which only a sandbox that
// captures packets has to pay.
func TryTUN(f host.Facts) host.Facts {
	var t host.TUNTrial
	if f.Namespaces.Yes() {
		t = tryTUN(f)
	}
	return f.TriedTUN(t)
}

func tryTUN(f host.Facts) host.TUNTrial {
	c, template, err := runDefault(probeOf(plan.Namespaces{User: f.UserNS, Net: true}, plan.OpenProc{}, plan.Loopback{Apart: f.NetApart}, plan.ProbeTun{}))
	if err != nil {
		return host.TUNTrial{Failed: err}
	}
	defer c.Close()
	switch open, device := c.Checks[checkTunOpen], c.Checks[checkTunMake]; {
	case c.Failed != nil:
		return host.TUNTrial{Failed: fmt.Errorf("%s: %w", template.StepName(c.Failed.Step), c.Failed.Errno)}
	case !c.Probed:
		return host.TUNTrial{Failed: errors.New(died)}
	case open == 0 || device == 0:
		return host.TUNTrial{Failed: errors.New("it was not tried")}
	default:
		return host.TUNTrial{Open: syscall.Errno(open - 1), Make: syscall.Errno(device - 1)}
	}
}

const died = "the probe's stage ended without an answer"

// probeOf returns a plan whose steps are all init's, and that has no tool.
func probeOf(n plan.Namespaces, steps ...plan.Action) plan.Plan {
	p := plan.Plan{Namespaces: n}
	for _, a := range steps {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	return p
}

func runDefault(p plan.Plan) (*Control, *Template, error) {
	l, err := launch.Default()
	if err != nil {
		return nil, nil, err
	}
	return runProbe(p, l)
}

// attempts is how often a probe is run that is killed.
const attempts = 3

// runProbe runs a plan without a tool. The error is host.ErrKilled if each attempt was killed.
func runProbe(p plan.Plan, l *launch.Launcher) (*Control, *Template, error) {
	t, err := Compile(p, Identity{UID: os.Geteuid(), GID: os.Getegid()})
	if err != nil {
		return nil, nil, err
	}
	for range attempts {
		c, killed, err := attempt(t, l)
		if err != nil || !killed {
			return c, t, err
		}
		c.Close()
	}
	return nil, nil, host.ErrKilled
}

// attempt runs it once.
func attempt(t *Template, l *launch.Launcher) (c *Control, killed bool, err error) {
	if c, err = NewControl(); err != nil {
		return nil, false, err
	}
	program, err := t.Sealed(Run{Path: "/", Probe: true, Quiet: true, Layout: l.Layout(3)})
	if err != nil {
		c.Close()
		return nil, false, err
	}
	defer program.Close()
	cmd := exec.Cmd{Path: l.Path, Args: []string{"holdfast-probe"}, Dir: "/", Env: l.Layout(3).Env, ExtraFiles: l.Files(nil, program, c.Child)}
	if err := cmd.Start(); err != nil {
		c.Close()
		return nil, false, err
	}
	c.Passed()
	c.AwaitStart()
	cmd.Wait()
	c.Drain()
	c.AwaitEmpty(nil, MostEnd)
	return c, !c.Probed && wasKilled(c, cmd.ProcessState), nil
}

// wasKilled reports whether a probe that said nothing was killed: its stage, which ends as init does if that was killed, or a process beside
// init (awaitBeside in package child). A filter that kills sends SIGSYS.
func wasKilled(c *Control, stage *os.ProcessState) bool {
	if c.Failed != nil {
		return c.Failed.Errno == syscall.EINTR
	}
	if c.Lost != nil {
		return c.Lost.Status.Signaled() && c.Lost.Status.Signal() == syscall.SIGKILL
	}
	status, is := stage.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}
