package compile

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// compileLayout is Plan for an explicit root. What the root leaves to the
// kernel to refuse, refuse does not know: a command's Start says it.
func (c *compilation) compileLayout() error {
	c.namespaced = true
	c.layoutNamespaces()
	c.Facts.UserNS = c.ownUser() || c.root.Namespaces.User != nil
	c.buildLayout()
	if err := c.lockLayout(); err != nil {
		return err
	}
	return c.startLayout()
}

// ownUser reports whether the sandbox makes a user namespace.
func (c *compilation) ownUser() bool { return c.plan.Namespaces.User }

// nests reports whether there is a second user namespace inside the first.
func (c *compilation) nests() bool {
	return c.ownUser() && !c.root.Namespaces.OneLevel && !c.root.Namespaces.MappedOutside
}

// layoutNamespaces chooses the namespaces, joins those that are given, and takes
// possession of the new ones.
func (c *compilation) layoutNamespaces() {
	n := c.root.Namespaces
	c.plan.Namespaces = plan.Namespaces{
		User: !n.ShareUser && n.User == nil, Mount: true,
		PID: !n.SharePID && !c.open(policy.BoundProcesses), IPC: !n.ShareIPC, UTS: !n.ShareUTS, Cgroup: !n.ShareCgroup,
		Net: !c.Policy.Network.Host && !c.open(policy.BoundNetwork),
	}
	c.plan.AsPID1 = n.AsPID1
	c.plan.Join, c.plan.Given = joins(n)
	c.in = plan.Init
	c.do(plan.Gate{}, plan.Setup, "")
	if c.ownUser() && !n.MappedOutside {
		c.do(plan.MapIDs{To: c.firstIDs()}, plan.Setup, "rights over the new namespaces, and over nothing else")
	}
	if n.User != nil && n.As != nil {
		c.do(plan.BecomeIDs(*n.As), plan.Setup, "the namespace that was joined has more than one")
	}
	c.do(plan.PrivateMounts{}, plan.Setup, "what is mounted on the host later must not arrive here, nor ours there")
	if c.plan.Namespaces.Net {
		// Here: whoever is told of the namespaces at the gate is told of all of them.
		c.do(plan.Loopback{Here: true}, plan.NetworkNamespace, "servers and clients inside can meet")
	}
	if n.Hostname != "" {
		c.do(plan.Hostname{Name: n.Hostname}, plan.Setup, "")
	}
}

// joins counts the descriptors that runs hand over, in the order of given.
func joins(n rootfs.Namespaces) (j plan.Join, count int) {
	if n.User != nil {
		count++
		j.User = count
	}
	if n.PID != nil {
		count++
		j.PID = count
	}
	if n.ThenUser != nil {
		count++
	}
	return j, count
}

// firstIDs are whom the user is in the first user namespace: 0, unless it is the
// only one. Nil is 0.
func (c *compilation) firstIDs() *plan.IDs {
	if c.nests() {
		return nil
	}
	if as := c.root.Namespaces.As; as != nil {
		return as
	}
	return &plan.IDs{UID: c.Facts.UID, GID: c.Facts.GID}
}

// buildLayout makes the root.
func (c *compilation) buildLayout() {
	m := plan.MountNamespace
	c.do(plan.ClearUmask{}, plan.Setup, "modes are what the entries say")
	c.do(plan.Floor{}, plan.Setup, "what is built is no part of what the host has at /")
	if slices.ContainsFunc(c.Mounts, needsScratch) {
		c.do(plan.Scratch{Under: true}, plan.Setup, "what exists inside alone is kept there")
	}
	c.do(plan.NewRoot{Free: true}, m, "nothing is there that the layout does not name")
	for _, p := range c.Mounts {
		c.do(p.Action, m, "")
		c.plan.Steps[len(c.plan.Steps)-1].Field = p.Field
	}
	for i, p := range c.NetConfig.Sockets {
		c.do(plan.PutBind{Source: p, At: p}, m, "")
		c.plan.Steps[len(c.plan.Steps)-1].Field = errtext.Indexed("Network.Unix", i)
	}
	c.routes()
	c.do(plan.RestoreUmask{}, plan.Setup, "")
	n := c.root.Namespaces
	if c.plan.Namespaces.PID || n.PID != nil {
		c.do(plan.OwnProc{Quotas: c.quotas()}, plan.Setup, "init reads the evidence there")
	} else {
		c.do(plan.OpenProc{}, plan.Setup, "init reads the evidence there")
	}
	if n.NoUsers {
		c.do(plan.ForbidUsers{}, plan.Setup, "while the machine's settings can be written")
	}
	c.do(plan.Pivot{}, m, "the harness's root is gone")
	if !c.root.Nest && c.Facts.Landlock.Yes() {
		c.do(plan.UnnamedTree{Fresh: true}, plan.Setup, "for the self-check: every other directory may be granted")
	}
	if n.ThenUser != nil {
		_, count := joins(n)
		c.do(plan.EnterUser{Given: count - 1}, plan.Setup, "")
	}
}

// pivot leaves the harness's root. By chroot(2) that lies beneath the new one, which a tool with root's own capabilities can take off.
func (c *compilation) pivot() {
	if !c.Facts.Chroot {
		c.do(plan.Pivot{}, plan.MountNamespace, "the harness's root is gone")
		return
	}
	c.do(plan.Pivot{Chroot: true}, plan.MountNamespace, "no path leads to the harness's root, which lies beneath")
	c.note(policy.BoundFiles, "pivot_root(2) is refused here: the harness's mounts lie beneath the sandbox's root, where no path leads, and what is unmounted outside stays in use until the sandbox ends")
	if !c.Facts.UserNS && c.open(policy.BoundPrivileges) {
		c.addLoss(policy.BoundFiles, plan.Loss{Absent: true, What: "with root's capabilities the sandbox's root can be unmounted, beneath which the harness's lies",
			Why: "pivot_root(2) is refused", Remedy: pivotRemedy + ", or an ordinary user for this program"})
	}
}

// pivotRemedy is for a host that makes namespaces.
const pivotRemedy = "a filter that allows pivot_root(2), and a root that is no initramfs"

func needsScratch(p resolve.MountEntry) bool {
	switch do := p.Action.(type) {
	case plan.PutData:
		return true
	case plan.PutOverlay:
		return do.Slot != ""
	}
	return false
}

// lockLayout takes away, in init, what neither init nor the tool needs any more.
func (c *compilation) lockLayout() error {
	n, rights := c.root.Namespaces, c.root.Privileges
	if c.nests() {
		c.do(plan.NestUser{To: n.As}, plan.Setup, "no process inside has rights over the mounts")
	}
	if n.NoUsers || n.CheckNoUsers {
		c.do(plan.CheckNoUsers{}, plan.Setup, "")
	}
	if c.Facts.Keyring.Yes() {
		c.do(plan.JoinKeyring{Spare: c.refusesKeys() || c.root.Nest}, plan.Keyring, "the harness's keys stay behind")
	}
	c.do(plan.SetNoNewPrivs{}, plan.NoNewPrivs, "nothing setuid gains; and filters need it")
	switch {
	case c.open(policy.BoundPrivileges), rights.All:
	case rights.Mask() != 0:
		c.do(plan.DropCapabilities{KeepPtrace: c.Facts.UserNS, Keep: rights.Mask()}, plan.Setup, "the policy keeps some")
	default:
		c.do(plan.DropCapabilities{KeepPtrace: c.Facts.UserNS}, plan.Capabilities, "root included")
	}
	// In the harness's user namespace init keeps nothing that the tool lacks; but
	// root's other processes need no leave to join.
	if !n.Joinable || n.ShareUser {
		c.do(plan.Undumpable{}, plan.Setup, "the tool can neither trace init nor read its memory")
	}
	for i, l := range c.root.Locks {
		c.do(plan.Lock{Path: l}, plan.Setup, "")
		c.plan.Steps[len(c.plan.Steps)-1].Field = errtext.Indexed("Locks", i)
	}
	return c.landlockLayout()
}

// startLayout is what the tool's process does to itself; see start.
func (c *compilation) startLayout() error {
	c.in = plan.Tool
	if !c.root.Nest {
		c.landlockScopes()
		c.check()
	} else if c.Facts.Keyring.Yes() {
		c.do(plan.CheckKeyring{}, plan.Setup, "evidence that the keyring is another")
	}
	if !c.root.Nest && c.hasNull() { // in a sandbox around this one devices may not open
		c.do(plan.OwnNull{}, plan.MountNamespace, "its owner could change the machine's")
	}
	c.do(plan.Chdir{}, plan.Setup, "")
	if !c.open(policy.BoundResources) {
		settings, err := c.limits()
		if err != nil {
			return err
		}
		c.do(plan.SetLimits{Settings: settings}, plan.Rlimits, "")
	}
	rights := c.root.Privileges
	switch {
	case c.open(policy.BoundPrivileges):
	case rights.All:
		c.do(plan.KeepCapabilities{All: true}, plan.Setup, "the policy keeps them")
	case rights.Mask() != 0:
		c.do(plan.KeepCapabilities{Mask: rights.Mask()}, plan.Setup, "the policy keeps them")
	case c.Facts.UserNS:
		c.do(plan.DropLast{}, plan.Capabilities, "init kept it")
	}
	c.do(plan.Gate{Built: true}, plan.Setup, "")
	c.do(plan.RestoreSignals{}, plan.Setup, "before the filter, which need not allow it")
	return c.filters()
}

// hasNull reports whether the null device at /dev/null is a Dev's.
func (c *compilation) hasNull() bool {
	for _, p := range slices.Backward(c.Mounts) {
		switch do := p.Action.(type) {
		case plan.PutDev:
			if do.At == "/dev" {
				return slices.Contains(do.Devices, "null")
			}
		case plan.PutBind:
			if pathrule.Within("/dev/null", do.At) {
				return false
			}
		case plan.PutTmpfs:
			if pathrule.Within("/dev/null", do.At) {
				return false
			}
		case plan.PutOverlay:
			if pathrule.Within("/dev/null", do.At) {
				return false
			}
		}
	}
	return false
}

// landlockLayout repeats the layout as rules. What a later entry covers is not
// found any more, or is found as the later one, which has a rule of its own.
func (c *compilation) landlockLayout() error {
	if c.open(policy.BoundFiles) || !c.Facts.Landlock.Yes() || c.root.Nest {
		return nil
	}
	r := landlock.Ruleset{UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll}
	r.Paths = append(r.Paths, landlock.PathRule{Path: "/", Access: landlock.FSReadDir}, landlock.PathRule{Path: plan.InitsProc, Access: landlock.FSRead})
	for _, p := range c.Mounts {
		r.Paths = append(r.Paths, layoutRules(p.Action)...)
	}
	for _, p := range c.NetConfig.Sockets {
		r.Paths = append(r.Paths, landlock.PathRule{Path: p, Access: accessSocket})
	}
	r.Paths = c.closeSockets(append(r.Paths, c.ownRules()...))
	down, lost, err := landlock.Downgrade(r, c.Facts.Landlock.Value)
	if err != nil {
		return fmt.Errorf("sandbox: landlock: %w", err)
	}
	c.landlockLosses = lost
	c.do(plan.RestrictFiles{Ruleset: down, Follow: true}, plan.Landlock, "the layout again, whatever the mounts say")
	return nil
}

// layoutRules are the rules that say what one entry says.
func layoutRules(do plan.Action) []landlock.PathRule {
	one := func(p string, dir bool, a landlock.AccessFS) []landlock.PathRule {
		if !dir {
			a = a.ForFile()
		}
		return []landlock.PathRule{{Path: p, Access: a}}
	}
	switch a := do.(type) {
	case plan.PutBind:
		access := accessRead
		if a.Write {
			access = accessWrite
		}
		if a.Device {
			access |= accessDevice
		}
		if a.NoExecve {
			access &^= landlock.FSExecute
		}
		return one(a.At, a.Dir, access)
	case plan.PutTmpfs:
		return one(a.At, true, accessWrite)
	case plan.PutDir:
		return one(a.At, true, accessWrite)
	case plan.PutFile:
		return one(a.At, false, accessWrite)
	case plan.PutData:
		if a.Write {
			return one(a.At, false, accessWrite)
		}
		return one(a.At, false, accessRead)
	case plan.PutProc:
		return one(a.At, true, landlock.FSRead)
	case plan.PutQueue:
		return one(a.At, true, accessWrite)
	case plan.PutOverlay:
		if a.Upper+a.Slot != "" {
			return one(a.At, true, accessWrite)
		}
		return one(a.At, true, accessRead)
	case plan.PutDev:
		return devRules(a)
	}
	return nil // links and modes grant nothing
}

func devRules(a plan.PutDev) []landlock.PathRule {
	rules := []landlock.PathRule{
		{Path: a.At, Access: landlock.FSRead},
		{Path: pathrule.Join(a.At, "pts"), Access: accessDevice | landlock.FSReadDir},
		{Path: pathrule.Join(a.At, "shm"), Access: accessWrite},
	}
	devices := a.Devices
	if a.Console != "" {
		devices = append(slices.Clone(devices), "console")
	}
	for _, d := range devices {
		rules = append(rules, landlock.PathRule{Path: pathrule.Join(a.At, d), Access: accessDevice.ForFile()})
	}
	return rules
}
