package compile

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// An Input is all that decides a plan: the policy, its paths as they were resolved, and
// what the host can do.
type Input struct {
	Policy    policy.Policy
	Tree      resolve.Tree
	Facts     host.Facts
	Devices   []string // of resolve.OwnDevices, those that the host has
	Terminals []string // where the host makes terminals, if one can; only used without namespaces
	Rlimits   rlimit.Values
	Running   uint64 // threads that count against NProc already
	Inotify   [2]int // how many instances and watches one user may have; 0: unknown
	Threads   bool   // the stage has several, see launch.HasThreads
	Arch      seccomp.Arch
	Obeyed    resolve.Obeyed                   // what git obeys by a configuration, in what can be written
	Sockets   []string                         // of the host's, in what the policy shows to read, where Landlock cannot refuse them
	Foreign   []resolve.Owned                  // what the policy lets be written and a root without capabilities cannot write to
	Mounts    []resolve.MountEntry             // the entries of the policy's Root
	NetConfig NetConfig                        // the policy's Network
	List      func(dir string) []resolve.Entry // what a directory holds: names and kinds; only used without namespaces
}

// Namespaced reports whether namespaces are used.
func (in Input) Namespaced() bool {
	walls := !slices.Contains(in.Policy.Open, policy.BoundFiles) || !slices.Contains(in.Policy.Open, policy.BoundProcesses)
	return walls && in.Facts.Namespaces.Yes()
}

// Plan makes the plan. It is pure: the same input gives the same plan, on
// any machine.
func Plan(in Input) (plan.Plan, error) {
	for _, f := range []host.Fact{in.Facts.Calls, in.Facts.PIDFD} {
		if f.Answer == host.No { // whatever else this host lacks
			return plan.Plan{}, errors.Join(needed(lossOf(f, "no command can be started")).UnsupportedError)
		}
	}
	c := &compilation{Input: in}
	c.open = func(b policy.Bound) bool { return slices.Contains(in.Policy.Open, b) }
	if in.Policy.Root != nil {
		c.root = *in.Policy.Root
		if err := c.compileLayout(); err != nil {
			return plan.Plan{}, err
		}
		return c.finish()
	}
	c.namespaced = in.Namespaced()
	if err := c.nested(); err != nil {
		return plan.Plan{}, err
	}
	c.readCopies()
	c.plan.Own = in.NetConfig.HasFiles() && in.NetConfig.Dir == "" || c.ownHome()
	if c.namespaced {
		c.namespaces()
		if err := c.build(); err != nil {
			return plan.Plan{}, err
		}
	} else {
		c.do(plan.OpenProc{}, plan.Setup, "init reads the evidence there")
		c.do(plan.OpenRoot{}, plan.Setup, "for the self-check")
	}
	if err := c.lock(); err != nil {
		return plan.Plan{}, err
	}
	if err := c.start(); err != nil {
		return plan.Plan{}, err
	}
	c.plan.Batch, c.plan.Ready = !c.Facts.Around.NoSchedule, in.Policy.Limits.Rlimits.NProc == nil && standsReady(&c.plan, in.Arch) // RLIMIT_NPROC counts it, too
	return c.finish()
}

// ownHome reports whether HOME and TMPDIR are in the run's own directory: nothing private can be mounted. Landlock may be missing as well, and
// the harness's HOME be no directory.
func (c *compilation) ownHome() bool {
	return !c.namespaced && !c.open(policy.BoundFiles) && slices.ContainsFunc(c.Tree.Entries, func(e resolve.Entry) bool { return e.Kind == pathrule.Private })
}

// finish adds what every plan has.
func (c *compilation) finish() (plan.Plan, error) {
	c.plan.DeadlineMS = Milliseconds(c.Policy.Limits.WallClock)
	c.noteForeign()
	c.recordMechanisms()
	if n := len(c.plan.Steps); n > maxSteps {
		return plan.Plan{}, &policy.PolicyError{Field: "Files", Value: strconv.Itoa(n) + " steps", Problem: "too many rules and links", Remedy: "name directories instead of the files in them"}
	}
	return c.plan, c.refuse()
}

// noteForeign says of what root's tool cannot write to, as "docker run -v $PWD:/src" brings about: it has no capability.
func (c *compilation) noteForeign() {
	if c.open(policy.BoundFiles) || c.open(policy.BoundPrivileges) {
		return
	}
	for _, f := range c.Foreign {
		id := strconv.Itoa(int(f.UID)) + ":" + strconv.Itoa(int(f.GID))
		c.note(policy.BoundFiles, f.Path+" belongs to uid "+strconv.Itoa(int(f.UID))+": the tool is root without capabilities and cannot write there; run the harness as that user (Docker: --user "+id+")")
	}
}

// needed is what no policy runs without, whatever its May names.
func needed(l plan.Loss) lack {
	no := lacking(policy.BoundProcesses, l)
	no.Needed = true
	return no
}

// maxSteps is how many steps a plan may have: the stage says in 16 bits which one
// has failed, of which some of the last have a meaning of their own.
const maxSteps = 65_000

// Milliseconds rounds up, so that no deadline becomes none; the longest
// duration must not become a negative one.
func Milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

// A compilation is a plan in the making.
type compilation struct {
	Input
	root       rootfs.Layout // the policy's Root; empty where there is none
	plan       plan.Plan
	open       func(policy.Bound) bool
	namespaced bool // namespaces are used
	lost       map[policy.Bound][]plan.Loss
	notes      map[policy.Bound][]string

	unsupported    []lack // what the policy asks for and this host cannot give
	landlockLosses []landlock.Lost
	in             plan.Place
	shared         sharedOverlay
	ownDev         bool // /dev is the sandbox's own, with a null device
}

func (c *compilation) do(a plan.Action, by plan.Mechanism, why string) {
	c.plan.Steps = append(c.plan.Steps, plan.Step{In: c.in, Do: a, By: by, Why: why})
}

func (c *compilation) addLoss(b policy.Bound, l plan.Loss) {
	if c.lost == nil {
		c.lost = map[policy.Bound][]plan.Loss{}
	}
	c.lost[b] = append(c.lost[b], l)
}

// sharesPIDs reports whether the sandbox has namespaces, and for want of a /proc of its own none of pids. Landlock's scope, the keeper and the
// rules on calls that take a number then hold processes as without namespaces; what /proc has of a process outside but its
// name, its state, its mounts and its connections asks for the right to trace it, which a process in another
// user namespace has not (cap_ptrace_access_check in security/commoncap.c), nor one in another Landlock domain.
func (c *compilation) sharesPIDs() bool {
	return c.namespaced && c.Facts.SharedPIDs && c.Policy.Root == nil && !c.open(policy.BoundProcesses)
}

// nested judges Policy.Nested on this host, and notes what it changes.
func (c *compilation) nested() error {
	ns, roots := c.Facts.Namespaces, c.writeRoots()
	switch {
	case !c.Policy.Nested:
		return nil
	case !c.namespaced || !c.Facts.UserNS || c.Facts.SharedPIDs || c.Facts.Chroot:
		l := lossOf(ns, "no sandbox can be built inside")
		switch {
		case ns.Yes() && !c.Facts.UserNS:
			l.Why, l.Remedy, l.Cause = "root's namespaces come without a user namespace here", "run the harness as an ordinary user", ""
		case ns.Yes() && c.Facts.Chroot: // one that was built on this root would lie upon the harness's, too
			l.Remedy, l.Cause = pivotRemedy, ""
		}
		c.unsupported = append(c.unsupported, needed(l))
		return nil
	}
	for bound, texts := range nestedNotes(roots) {
		for _, text := range texts {
			c.note(bound, text)
		}
	}
	return nestedConflict(c.Tree, roots, c.Policy.Files)
}

// namespaces chooses the new namespaces and takes possession of them.
func (c *compilation) namespaces() {
	c.plan.Namespaces = plan.Namespaces{
		User: c.Facts.UserNS, Mount: true, IPC: true, UTS: true, Cgroup: !c.Facts.NoCgroupNS,
		PID: !c.open(policy.BoundProcesses) && !c.Facts.SharedPIDs,
		Net: !c.Policy.Network.Host && !c.open(policy.BoundNetwork),
	}
	if c.Facts.NoCgroupNS {
		c.note(policy.BoundProcesses, "no cgroup namespace can be made here: the tool sees the path of the harness's cgroup")
	}
	c.in = plan.Init
	if c.Facts.UserNS {
		c.do(plan.MapIDs{}, plan.Setup, "rights over the new namespaces, and over nothing else")
	}
	c.do(plan.PrivateMounts{}, plan.Setup, "what is mounted on the host later must not arrive here, nor ours there")
}

// lock takes away, in init, what neither init nor the tool needs any more.
func (c *compilation) lock() error {
	c.in = plan.Init
	if c.namespaced && c.Facts.UserNS {
		c.do(plan.NestUser{}, plan.Setup, "the tool sees its own ids, and no process inside has rights over the mounts")
	}
	if c.Facts.Keyring.Yes() {
		c.do(plan.JoinKeyring{Spare: c.refusesKeys()}, plan.Keyring, "the harness's keys stay behind")
	}
	c.do(plan.SetNoNewPrivs{}, plan.NoNewPrivs, "nothing setuid gains; and filters need it")
	if !c.open(policy.BoundPrivileges) {
		c.do(plan.DropCapabilities{KeepPtrace: c.namespaced && c.Facts.UserNS}, plan.Capabilities, "root included")
	}
	c.do(plan.Undumpable{}, plan.Setup, "the tool can neither trace init nor read its memory")
	return c.landlockFiles()
}

// start is what the tool's process does to itself. The order matters: what
// comes later must still be allowed by what came before, and the filters, which
// allow least, come last.
func (c *compilation) start() error {
	c.in = plan.Tool
	c.landlockScopes()
	if err := c.landlockTool(); err != nil {
		return err
	}
	c.check()
	if c.ownDev {
		c.do(plan.OwnNull{}, plan.MountNamespace, "its owner could change the machine's")
	}
	c.do(plan.Chdir{}, plan.Setup, "with the tool's own rights, before the filters")
	if !c.open(policy.BoundResources) {
		settings, err := c.limits()
		if err != nil {
			return err
		}
		c.do(plan.SetLimits{Settings: settings}, plan.Rlimits, "before the filters, which need not allow prlimit64(2)")
	}
	if !c.open(policy.BoundPrivileges) && c.namespaced && c.Facts.UserNS {
		c.do(plan.DropLast{}, plan.Capabilities, "init keeps it, to read this process")
	}
	c.do(plan.RestoreSignals{}, plan.Setup, "before the filter, which need not allow it")
	if err := c.keepers(); err != nil {
		return err
	}
	return c.filters()
}

// limits resolves the policy's limits over the defaults.
func (c *compilation) limits() ([]rlimit.Setting, error) {
	running := c.Running
	if c.namespaced && c.Facts.UserNS {
		running = 0 // counted for each user namespace apart since Linux 5.14
	}
	asked := c.Policy.Limits.Rlimits
	defaults := rlimit.Defaults(c.Rlimits, running)
	if c.Facts.UID == 0 && !c.Policy.Nested { // whose commands are another user's
		defaults.NProc = nil // it does not bind uid 0; see maxPIDs
	}
	settings, err := asked.Or(defaults).Resolve(c.Rlimits)
	if err != nil {
		return nil, policy.RlimitsError(err, "cannot be set by this harness", "lower it, use rlimit.Inherited, or raise the harness's own limit")
	}
	return settings, nil
}

// maxPIDs is the limit on processes and threads by their numbers, which binds
// uid 0 too. It follows the policy's NProc. 0: this kernel has no such limit for
// a namespace.
func (c *compilation) maxPIDs() int {
	const least = 301 // RESERVED_PIDS and one, include/linux/threads.h
	if c.open(policy.BoundResources) || !c.plan.Namespaces.PID || !c.Facts.KernelAtLeast(6, 14) {
		return 0
	}
	n := uint64(rlimitTasks)
	if asked := c.Policy.Limits.Rlimits.NProc; asked != nil {
		n = asked.Soft
	}
	if n > 1<<22-3 {
		return 0
	}
	return max(least, int(n)+3) // init is one of them, and the limit itself is no process
}

// quotas are the limits of the sandbox's namespaces: half of what the machine lets
// one user have of inotify, of which the tool shall not use up the other half
// (inotify(7)), and no user namespace but the nested one, which the filter refuses as
// well. In the machine's own user namespace they would be the machine's.
func (c *compilation) quotas() plan.Quotas {
	q := plan.Quotas{PIDs: c.maxPIDs()}
	if !c.plan.Namespaces.User || c.root.Nest {
		return q
	}
	q.Instances, q.Watches = c.Inotify[0]/2, c.Inotify[1]/2
	if c.Policy.Root == nil { // a layout says it by Namespaces.NoUsers
		q.Users = 1
	}
	if c.Policy.Nested {
		q.Users, q.Others = 1+mostNested, 1+mostNested
		q.PIDs = 0 // the tool could raise it in a /proc without covers; NPROC binds it in all of its user namespaces together
	}
	return q
}

// rlimitTasks is how many processes and threads a sandbox may have when the
// policy does not say: rlimit.Defaults' figure.
const rlimitTasks = 4096
