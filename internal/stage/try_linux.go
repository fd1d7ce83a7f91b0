package stage

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
)

// Try finds out whether namespaces can really be made here, by making them: a
// stage is started that builds an empty sandbox and ends. It fills in
// f.Image, f.Namespaces, f.UserNS and f.Overlay.
func Try(f *host.Facts) {
	f.Image = tryImage(f.Image.Name)
	why, obstacle := try(f, true)
	if why != "" && f.UID == 0 {
		// Root needs no user namespace to make the others.
		if other, _ := try(f, false); other == "" {
			why, f.UserNS = "", false
		}
	}
	name := f.Namespaces.Name
	if why == "" {
		f.Namespaces = host.Fact{Name: name, Answer: host.Yes, Reason: "they were made, with a root, a /proc and a devpts"}
		return
	}
	f.Namespaces = host.Fact{Name: name, Answer: host.No, Reason: why, Remedy: host.NamespaceRemedy(obstacle)}
	f.Overlay = host.Fact{Name: f.Overlay.Name, Answer: host.No, Reason: "there are no namespaces to mount it in", Remedy: f.Namespaces.Remedy}
}

// tryImage executes the image once. Where that fails, stages are executed from
// the harness's file from then on.
func tryImage(name string) host.Fact {
	f := host.Fact{Name: name, Answer: host.No}
	image, err := theImage()
	if err != nil {
		f.Reason, f.Remedy = err.Error(), imageRemedy(err)
		return f
	}
	c, _, err := runProbe(plan.Plan{Steps: []plan.Step{{In: plan.Init, Do: plan.OpenProc{}}}}, image)
	if err == nil {
		c.Close()
		if c.Probed {
			f.Answer, f.Reason = host.Yes, "its image was executed"
			return f
		}
		err = errors.New("the image was executed and did not come to its end")
	}
	image.refused.Store(true)
	f.Reason, f.Remedy = err.Error(), imageRemedy(err)
	return f
}

func imageRemedy(err error) string {
	if errors.Is(err, os.ErrPermission) {
		return "sysctl vm.memfd_noexec=1, or a security module that lets this program execute a memfd; without it a start takes a millisecond more"
	}
	return "none needed: without it a start takes a millisecond more"
}

// overlaySlot is the self-check that the probe uses for overlayfs.
const overlaySlot = 1

// try answers what stood in the way, or "".
func try(f *host.Facts, user bool) (string, host.Obstacle) {
	p := plan.Plan{Namespaces: plan.Namespaces{User: user, Mount: true, PID: true, IPC: true, UTS: true, Cgroup: true, Net: true}}
	steps := []plan.Action{plan.PrivateMounts{}, plan.NewRoot{}, plan.Scratch{}, plan.Proc{},
		plan.Private{At: "/dev", Slot: "dev", Mode: 0o755}, plan.PTYs{}, plan.Loopback{}, plan.ProbeOverlay{}, plan.Pivot{}, plan.SealRoot{}}
	if user {
		steps = append([]plan.Action{plan.MapIDs{}}, append(steps, plan.NestUser{})...)
	}
	for _, a := range steps {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	way, err := TheWay()
	if err != nil {
		return err.Error(), host.Obstacle{}
	}
	c, t, err := runProbe(p, way)
	if err != nil {
		return err.Error(), host.Obstacle{}
	}
	defer c.Close()
	switch {
	case c.Failed != nil:
		made := c.Failed.Step < len(p.Steps) && p.Steps[c.Failed.Step].Do != plan.Action(plan.MapIDs{})
		return fmt.Sprintf("%s: %v", t.StepName(c.Failed.Step), c.Failed.Errno), host.Obstacle{Errno: c.Failed.Errno, Mount: made}
	case !c.Probed:
		return "the probe's stage died", host.Obstacle{}
	}
	f.Overlay.Answer, f.Overlay.Reason = host.Yes, "one was mounted"
	if !f.KernelAtLeast(6, 6) {
		// It mounts, and then some directories cannot be made: EIO.
		f.Overlay.Answer, f.Overlay.Reason = host.No, "a tmpfs holds no user xattrs, which the upper layer needs"
		f.Overlay.Remedy = "Linux 6.6 or newer"
	} else if errno := c.Checks[overlaySlot] - 1; errno != 0 {
		f.Overlay.Answer, f.Overlay.Reason = host.No, fmt.Sprintf("mounting one failed with errno %d", errno)
		f.Overlay.Remedy = "Linux 5.11 or newer, with the overlay module loaded (modprobe overlay)"
	}
	return "", host.Obstacle{}
}

// TryTUN makes a TUN device and fills in f.TUN, where Try has filled in the rest. It
// is apart from that because it costs a start of its own, which only a sandbox that
// captures packets has to pay.
func TryTUN(f *host.Facts) {
	fact := host.Fact{Name: f.TUN.Name}
	defer func() { f.TUN = fact }()
	if !f.Namespaces.Yes() {
		fact.Answer, fact.Reason, fact.Remedy = f.Namespaces.Answer, "there is no network namespace to make one in", f.Namespaces.Remedy
		return
	}
	p := plan.Plan{Namespaces: plan.Namespaces{User: f.UserNS, Net: true}}
	for _, a := range []plan.Action{plan.OpenProc{}, plan.Loopback{}, plan.ProbeTun{}} {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	way, err := TheWay()
	if err != nil {
		fact.Reason = err.Error()
		return
	}
	c, t, err := runProbe(p, way)
	switch {
	case err != nil:
		fact.Reason = err.Error()
		return
	case c.Failed != nil:
		fact.Reason = fmt.Sprintf("%s: %v", t.StepName(c.Failed.Step), c.Failed.Errno)
	case !c.Probed:
		fact.Reason = "the probe's stage died"
	default:
		fact = tunFact(fact.Name, c.Checks)
	}
	c.Close()
}

// runProbe runs a plan without a tool.
func runProbe(p plan.Plan, way *Way) (*Control, *Template, error) {
	t, err := Compile(p, Identity{UID: os.Geteuid(), GID: os.Getegid()})
	if err != nil {
		return nil, nil, err
	}
	c, err := NewControl()
	if err != nil {
		return nil, nil, err
	}
	program, err := t.Sealed(Run{Path: "/", Probe: true, Quiet: true})
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	defer program.Close()
	cmd := exec.Cmd{Path: way.Path, Args: []string{"holdfast-probe"}, Dir: "/", Env: Environment(3), ExtraFiles: way.Files(nil, program, c.ChildEnd())}
	if err := cmd.Start(); err != nil {
		c.Close()
		return nil, nil, err
	}
	c.Passed()
	c.AwaitStart()
	cmd.Wait()
	c.Drain()
	c.AwaitEmpty(nil, MostEnd)
	c.Release()
	return c, t, nil
}
