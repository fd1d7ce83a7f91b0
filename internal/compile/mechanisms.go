package compile

import (
	"fmt"
	"path"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// recordMechanisms notes in the plan which mechanisms hold which bound, and what is lost.
func (c *compilation) recordMechanisms() {
	c.loseFiles()
	c.loseOthers()
	for _, b := range plan.Bounds() {
		h := plan.Holding{Bound: b, Lost: c.lost[b], Notes: c.notes[b]}
		if !c.open(b) && !(b == policy.BoundNetwork && c.Policy.Network.Host) && !(b == policy.BoundSyscalls && c.Policy.Syscalls.IsOff()) {
			for _, m := range mechanismsFor[b] {
				if c.uses(m) && (m != plan.Supervisor || b != policy.BoundNetwork || c.local() || c.guarded()) {
					h.By = append(h.By, m)
				}
			}
		}
		c.plan.Holdings = append(c.plan.Holdings, h)
	}
}

// mechanismsFor lists the mechanisms that serve each bound.
var mechanismsFor = map[policy.Bound][]plan.Mechanism{
	policy.BoundFiles:       {plan.MountNamespace, plan.Landlock, plan.Supervisor},
	policy.BoundNetwork:     {plan.NetworkNamespace, plan.LandlockNet, plan.Seccomp, plan.Supervisor, plan.EgressProxy, plan.Capture},
	policy.BoundProcesses:   {plan.PIDNamespace, plan.IPCNamespace, plan.UTSNamespace, plan.CgroupNamespace, plan.LandlockScope, plan.Subreaper},
	policy.BoundSyscalls:    {plan.Seccomp},
	policy.BoundPrivileges:  {plan.NoNewPrivs, plan.Capabilities, plan.UserNamespace, plan.Keyring},
	policy.BoundResources:   {plan.Rlimits},
	policy.BoundEnvironment: {plan.EnvFilter},
	policy.BoundTime:        {plan.Deadline},
}

// uses reports whether the plan has the mechanism, or the harness itself is it.
func (c *compilation) uses(m plan.Mechanism) bool {
	switch m {
	case plan.EnvFilter:
		return true
	case plan.EgressProxy:
		return c.plan.Uses(m) || c.givenPorts() > 0
	case plan.Deadline:
		return c.plan.DeadlineMS > 0
	case plan.Subreaper:
		return !c.plan.Namespaces.PID
	case plan.LandlockNet:
		return c.plan.Uses(m) || !c.streams() && !c.namespaced && c.plan.Uses(plan.Landlock) && c.Facts.Landlock.Value >= portsSince
	}
	return c.plan.Uses(m)
}

func (c *compilation) loseFiles() {
	if c.open(policy.BoundFiles) {
		return
	}
	names := len(c.Policy.Files.ProtectedPatterns()) + len(c.Policy.Files.HideNames)
	if names > 0 && len(c.writeRoots()) > 0 && !c.Facts.Notify.Yes() {
		c.addLoss(policy.BoundFiles, lossOf(c.Facts.Notify, "protected names can be created"))
	}
	if c.namespaced { // a layout always is
		if c.holdsInWritable() && !c.Facts.Notify.Yes() {
			c.addLoss(policy.BoundFiles, lossOf(c.Facts.Notify, "what the host replaces by rename in a writable directory is no longer hidden or read-only there"))
		}
		c.loseExecution()
		return
	}
	ns := c.Facts.Namespaces
	if !c.Facts.Landlock.Yes() {
		l := lossOf(ns, "files are not bounded at all")
		l.Absent = true
		c.addLoss(policy.BoundFiles, l)
		return
	}
	if !c.fences() {
		c.addLoss(policy.BoundFiles, lossOf(ns, "modes, owners, times and extended attributes of files outside can be changed"))
	}
	c.addLoss(policy.BoundFiles, lossOf(ns, "all names can be seen, and all files watched (inotify)"))
	c.addLoss(policy.BoundFiles, lossOf(ns, "/proc is the machine's, with its keys' names, connections and, for root, the kernel's tables"))
	if c.grantsRoot() {
		c.addLoss(policy.BoundFiles, lossOf(ns, "/dev and /proc are the host's, and granted with the root"))
	}
	if c.Facts.Landlock.Value < UnixSince && (c.Policy.Network.Host || c.open(policy.BoundNetwork)) { // else there are no sockets
		c.addLoss(policy.BoundFiles, lossOf(ns, "UNIX sockets outside can be connected to"))
	}
	for _, l := range c.landlockLosses {
		if !l.Ability && l.FS != 0 && l.FS != landlock.FSIoctlDev && l.FS != landlock.FSResolveUnix {
			c.addLoss(policy.BoundFiles, plan.Loss{What: l.Without, Why: fmt.Sprintf("Landlock ABI %d", c.Facts.Landlock.Value), Remedy: "Linux " + l.Kernel + " or newer"})
		}
	}
	c.loseEntries()
}

// loseEntries notes what of the policy's paths takes mounts.
func (c *compilation) loseEntries() {
	ns := c.Facts.Namespaces
	for _, p := range c.Policy.Files.MayShare {
		c.addLoss(policy.BoundFiles, lossOf(ns, p+" is shared: what other programs keep there can be read and changed"))
	}
	for _, e := range c.Tree.Entries {
		switch e.Kind {
		case pathrule.Private, pathrule.CopyOnWrite:
			c.addLoss(policy.BoundFiles, lossOf(ns, e.Path+" cannot be private; TMPDIR and HOME name a directory of the run's own instead"))
		case pathrule.Read:
			if c.writableAround(e) && !c.guardsNames() {
				c.addLoss(policy.BoundFiles, lossOf(ns, e.Path+" can be written, as the directory around it"))
			}
		case pathrule.Hide:
			switch {
			case c.guardsNames() && c.writable(e.Path):
				c.addLoss(policy.BoundFiles, lossOf(ns, e.Path+" can be executed: in a writable directory the supervisor hides what it holds from reading alone"))
			case c.hiddenInWritable(e):
				c.addLoss(policy.BoundFiles, lossOf(ns, e.Path+" cannot be hidden in a writable directory"))
			}
		case pathrule.Make:
			c.addLoss(policy.BoundFiles, lossOf(ns, e.Path+" cannot be made; what belongs in HOME is in the run's own"))
		}
	}
}

// loseExecution notes what only Landlock keeps from being executed.
func (c *compilation) loseExecution() {
	if c.Facts.Landlock.Yes() && !c.root.Nest {
		return
	}
	for _, p := range c.Mounts {
		if b, ok := p.Action.(plan.PutBind); ok && b.NoExecve {
			why := lossOf(c.Facts.Landlock, "programs in "+b.At+" can be executed")
			if c.root.Nest {
				why = plan.Loss{What: why.What, Why: "Root.Nest keeps Landlock off", Remedy: "leave Nest false, or use NoExec"}
			}
			c.addLoss(policy.BoundFiles, why)
		}
	}
}

// UnixSince is the Landlock ABI that knows FSResolveUnix.
const UnixSince = 9

// writableAround reports whether the tree around e can be written, which
// Landlock then grants for e too: its rules only add.
func (c *compilation) writableAround(e resolve.Entry) bool {
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if around, ok := c.Tree.Find(dir); ok {
			return around.Kind == pathrule.Write
		}
		if dir == "/" {
			return false
		}
	}
}

func (c *compilation) loseOthers() {
	c.lackNetwork()
	ns := c.Facts.Namespaces
	if !c.Facts.Seccomp.Yes() {
		if !c.open(policy.BoundSyscalls) && !c.Policy.Syscalls.IsOff() {
			l := lossOf(c.Facts.Seccomp, "system calls are not bounded")
			l.Absent = true
			c.addLoss(policy.BoundSyscalls, l)
		}
		if !c.namespaced && !c.open(policy.BoundNetwork) && !c.Policy.Network.Host {
			l := lossOf(ns, "the network is reachable")
			l.Absent = true
			c.addLoss(policy.BoundNetwork, l)
		}
	}
	if c.allowsKeys() && !c.open(policy.BoundPrivileges) {
		c.note(policy.BoundPrivileges, "the profile allows keyctl: keys of the user's own keyrings can be read and changed")
	}
	c.loseTasks()
	if c.namespaced && !c.sharesPIDs() || c.open(policy.BoundProcesses) {
		return
	}
	if c.sharesPIDs() {
		c.note(policy.BoundNetwork, "ports below 1024 cannot be bound, nor echo requests sent: the settings are in a /proc that cannot be mounted here")
		c.note(policy.BoundResources, "inotify instances and watches count with those of the user's programs outside")
	}
	if c.Facts.Landlock.Yes() && c.Facts.Landlock.Value >= 6 {
		c.addLoss(policy.BoundProcesses, lossOf(ns, "other processes' names and command lines can be seen"))
		c.addLoss(policy.BoundProcesses, lossOf(ns, "the numbers of other processes' descriptors, their mounts and connections can be seen"))
		return
	}
	l := lossOf(ns, "the user's other processes can be seen and signalled")
	l.Absent = true
	if c.holdsKeepers() {
		c.addLoss(policy.BoundProcesses, l)
		return
	}
	l.What += ", those too that end the run: the tool can outlive it"
	c.addLoss(policy.BoundProcesses, l)
	if c.plan.DeadlineMS > 0 && !c.open(policy.BoundTime) {
		c.addLoss(policy.BoundTime, lossOf(ns, "the tool can end what holds the deadline"))
	}
}

// loseTasks says what of a limit on processes does not bind uid 0, for which the
// kernel does not count (rlimit.Limits), and what does.
func (c *compilation) loseTasks() {
	asked := c.Policy.Limits.Rlimits.NProc
	if c.Facts.UID != 0 || c.open(policy.BoundResources) {
		return
	}
	most := c.maxPIDs()
	if asked == nil || asked.Soft == rlimit.Unlimited || asked.Soft == rlimit.Inherited {
		return
	}
	l := plan.Loss{What: fmt.Sprintf("NProc %d does not bind uid 0", asked.Soft), Why: "kernel " + c.Facts.Kernel, Remedy: "run the command as an ordinary user, or use Linux 6.14 or newer"}
	switch {
	case most == 0:
		c.addLoss(policy.BoundResources, l)
	case uint64(most-3) > asked.Soft:
		l.What, l.Why = fmt.Sprintf("NProc %d does not bind uid 0, but %d does", asked.Soft, most-3), "pid_max is at least 301"
		l.Remedy = fmt.Sprintf("run the command as an ordinary user, or ask for %d or more", most-3)
		c.addLoss(policy.BoundResources, l)
	}
}

func lossOf(f host.Fact, what string) plan.Loss {
	return plan.Loss{What: what, Why: f.Name + ": " + f.Reason, Remedy: f.Remedy, Cause: f.Name}
}

// refuse turns what is lost and not allowed to be into an error.
func (c *compilation) refuse() error {
	return refuse(c.Facts, append(c.unsupported, unheld(c.Policy, c.plan.Holdings)...), c.plan.Holdings)
}

// writeRoots are the directories below which names are protected.
func (c *compilation) writeRoots() []string {
	var roots []string
	for _, p := range c.Mounts {
		if b, ok := p.Action.(plan.PutBind); ok && b.Write && b.Dir {
			roots = append(roots, b.At)
		}
	}
	for _, e := range c.Tree.Entries {
		if e.Kind == pathrule.Write && e.Dir {
			roots = append(roots, e.Path)
		}
	}
	return roots
}
