package compile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// deviceLinks are the links that /dev has, udev or not.
var deviceLinks = [][2]string{
	{"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"}, {"/dev/stdout", "/proc/self/fd/1"},
	{"/dev/stderr", "/proc/self/fd/2"}, {"/dev/ptmx", "pts/ptmx"},
}

// build makes the tool's root directory, and everything else that takes rights
// over the new namespaces.
func (c *compilation) build() error {
	m, entries := plan.MountNamespace, c.Tree.Entries
	if c.open(policy.BoundFiles) {
		c.openFiles()
		return nil
	}
	if !c.plan.Namespaces.PID {
		c.do(plan.OpenProc{}, plan.Setup, "init reads the evidence there")
	}
	if len(entries) > 0 && entries[0].Path == "/" {
		c.do(plan.NewRoot{Host: true, Write: entries[0].Kind == pathrule.Write}, m, "the policy shows all of it")
		entries = entries[1:]
		c.scratch()
	} else if c.Policy.Files.PrivateBytes == 0 {
		c.do(plan.NewRoot{Private: true}, m, "nothing is there that the policy does not name; private directories are taken from the tmpfs")
	} else {
		c.do(plan.NewRoot{}, m, "nothing is there that the policy does not name")
		c.scratch() // what the root holds takes nothing of the limit
	}
	c.proc()
	c.buildDev()
	if c.Facts.Overlay.Yes() {
		if c.shared = shareOverlay(entries); c.shared.around != "" {
			c.do(plan.SharedOverlay{Lower: c.shared.around, Slot: "view"}, m, "one overlayfs for the copy-on-write directories below it")
		}
	}
	anchored := map[string]bool{}
	for i, e := range entries {
		if e.Shown {
			continue
		}
		c.pin(e, anchored)
		if err := c.place(i, e); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.Kind == pathrule.Hide && c.showsBelow(e) {
			c.do(plan.PutReadOnly{At: e.Path}, m, "what is hidden takes nothing new")
		}
	}
	for _, s := range c.Sockets {
		c.do(plan.Hide{Path: s, Spare: true}, m, "a socket that the policy does not name")
	}
	for _, l := range c.Tree.Links {
		c.do(plan.MakeLink{Path: l.Path, Target: l.Target}, m, "")
	}
	if c.plan.Namespaces.Net {
		c.do(c.loopback(), plan.NetworkNamespace, "servers and clients inside can meet")
	}
	c.routes()
	c.pivot()
	if c.grantsRoot() && c.Facts.Landlock.Yes() && !c.Policy.Nested {
		c.do(plan.UnnamedTree{}, plan.Setup, "for the self-check: every other directory is granted")
	}
	if !c.writesRoot() {
		c.do(plan.SealRoot{}, m, "only what the policy names is writable")
	}
	return nil
}

// scratch makes the private tmpfs.
func (c *compilation) scratch() {
	c.do(plan.Scratch{Bytes: c.Policy.Files.PrivateBytes}, plan.Setup, "private directories are taken from it")
}

// proc puts a /proc into the new root: the harness's own, to read, where the
// sandbox has no processes of its own.
func (c *compilation) proc() {
	if c.plan.Namespaces.PID {
		why := "of the sandbox's processes; the machine's settings read-only"
		if c.Policy.Nested {
			why = "of the sandbox's processes; the machine's settings are root's"
		}
		c.do(plan.Proc{Quotas: c.quotas(), Network: c.plan.Namespaces.Net, Uncovered: c.Policy.Nested}, plan.MountNamespace, why)
		return
	}
	if c.sharesPIDs() {
		c.do(plan.Proc{Shared: true}, plan.MountNamespace, "this host lets no new one be mounted: processes outside are in it")
		return
	}
	c.do(plan.Bind{Source: "/proc", At: "/proc", Dir: true}, plan.MountNamespace, "processes are not bounded")
}

// loopback leaves the tool the ports below 1024 and ping(8) in a network that is the sandbox's own, where proc has kept the
// settings within reach. Init, which writes them, has the harness's group as 0 in its user namespace.
func (c *compilation) loopback() plan.Loopback {
	l := plan.Loopback{Free: c.plan.Namespaces.PID && !c.Facts.NetApart, Apart: c.Facts.NetApart}
	if l.Apart {
		c.note(policy.BoundNetwork, "root has no CAP_NET_ADMIN here: ports below 1024 cannot be bound, nor echo requests sent")
	}
	if l.Free && !c.Facts.UserNS {
		l.Group = c.Facts.GID
	}
	return l
}

// openFiles keeps the harness's root but for a /proc of the sandbox's own.
func (c *compilation) openFiles() {
	c.do(plan.OpenRoot{}, plan.Setup, "")
	c.do(plan.KeepRoot{}, plan.Setup, "a /proc is put on it, in this mount namespace alone")
	c.do(plan.Scratch{}, plan.Setup, "it has what covers the machine's settings")
	c.proc()
	if c.plan.Namespaces.Net {
		c.do(c.loopback(), plan.NetworkNamespace, "servers and clients inside can meet")
	}
	c.routes()
}

// pin makes mount points of the directories between a writable tree and a
// rule inside it. They cannot be renamed then (rename(2), EBUSY): a tool that
// moved one away could put a decoy in its place, for the next run to hold.
func (c *compilation) pin(e resolve.Entry, done map[string]bool) {
	if pathrule.Within(e.Path, "/dev") {
		return // the sandbox has its own
	}
	var between []string
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if around, ok := c.Tree.Find(dir); ok {
			if around.Kind != pathrule.Write {
				return
			}
			for _, d := range slices.Backward(between) {
				c.do(plan.Bind{Source: d, At: d, Dir: true, Write: true}, plan.MountNamespace, "so that it cannot be moved, with what a rule holds below it")
			}
			return
		}
		if dir == "/" {
			return
		}
		if !done[dir] {
			between = append(between, dir)
			done[dir] = true
		}
	}
}

func (c *compilation) place(i int, e resolve.Entry) error {
	m := plan.MountNamespace
	switch e.Kind {
	case pathrule.Read, pathrule.Socket:
		c.do(plan.Bind{Source: e.Path, At: e.Path, Dir: e.Dir}, m, "")
	case pathrule.Write:
		c.do(plan.Bind{Source: e.Path, At: e.Path, Dir: e.Dir, Write: true, Device: strings.HasPrefix(e.Path, "/dev/")}, m, "")
	case pathrule.Hide:
		if c.showsBelow(e) {
			c.do(plan.Private{At: e.Path, Slot: fmt.Sprintf("h%d", i), Mode: 0o111}, m, "hidden, but for what a rule shows in it")
		} else {
			c.do(plan.Hide{Path: e.Path, Dir: e.Dir, In: e.In}, m, "")
		}
	case pathrule.Private:
		c.do(plan.Private{At: e.Path, Slot: fmt.Sprintf("p%d", i), Mode: privateMode(e.Path)}, m, "")
	case pathrule.CopyOnWrite:
		if c.Facts.Overlay.Yes() {
			c.do(plan.Overlay{Lower: e.Path, At: e.Path, Slot: fmt.Sprintf("o%d", i), Of: c.shared.of(e)}, m, "")
		} else if e.AlsoRead {
			c.do(plan.Bind{Source: e.Path, At: e.Path, Dir: true}, m, "no overlayfs here: it is only read")
		} else {
			c.do(plan.Private{At: e.Path, Slot: fmt.Sprintf("p%d", i), Mode: 0o700}, m, "no overlayfs here: it starts empty")
		}
	case pathrule.Make:
		mode := uint32(e.File.Mode.Perm())
		if mode == 0 {
			mode = 0o444
		}
		c.do(plan.MakeFile{Path: e.Path, Mode: mode, Data: e.File.Data}, m, "")
	default:
		return fmt.Errorf("sandbox: no plan for a file rule of kind %d", e.Kind)
	}
	return nil
}

// readCopies leaves copies out that this host cannot make and that lie in what is shown to read: they are as what is around them. The shims of
// pyenv, which would not work from an empty directory, are there then.
func (c *compilation) readCopies() {
	if c.namespaced && c.Facts.Overlay.Yes() || c.open(policy.BoundFiles) {
		return
	}
	var kept, around []resolve.Entry
	for _, e := range c.Tree.Entries {
		for len(around) > 0 && !pathrule.Within(e.Path, around[len(around)-1].Path) {
			around = around[:len(around)-1]
		}
		if n := len(around); e.Kind == pathrule.CopyOnWrite && n > 0 && around[n-1].Kind == pathrule.Read {
			if c.namespaced {
				c.note(policy.BoundFiles, e.Path+" can be read alone: there is no overlayfs to write copies to")
			} else {
				c.addLoss(policy.BoundFiles, lossOf(c.Facts.Namespaces, e.Path+" cannot be written"))
			}
			continue
		}
		kept, around = append(kept, e), append(around, e)
	}
	c.Tree.Entries = kept
}

// showsBelow reports whether a rule shows something in e, which is hidden. Its
// place cannot be made in the empty directory that covers other hidden ones.
func (c *compilation) showsBelow(e resolve.Entry) bool {
	for _, o := range c.Tree.Entries {
		if o.Path != e.Path && pathrule.Within(o.Path, e.Path) {
			return true
		}
	}
	return false
}

// privateMode is 1777 for directories that programs expect to be shared.
func privateMode(p string) uint32 {
	switch p {
	case "/tmp", "/var/tmp", "/dev/shm":
		return 0o1777
	}
	return 0o700
}

func (c *compilation) buildDev() {
	m := plan.MountNamespace
	c.do(plan.Private{At: "/dev", Slot: "dev", Mode: 0o755}, m, "only what is listed here")
	c.ownDev = slices.Contains(c.Devices, "/dev/null")
	for _, d := range c.Devices {
		c.do(plan.Bind{Source: d, At: d, Device: true}, m, "what is written passes; the mode and times are the machine's")
	}
	for _, l := range deviceLinks {
		c.do(plan.MakeLink{Path: l[0], Target: l[1]}, m, "")
	}
	c.do(plan.Private{At: "/dev/shm", Slot: "shm", Mode: 0o1777}, m, "shared memory of its own")
	c.do(plan.PTYs{}, m, "terminals of its own")
	c.do(plan.Queues{}, m, "the queues of the sandbox's ipc namespace")
}

// Access of each kind of entry, before the host's ABI takes from it.
const (
	accessRead   = landlock.FSReadExecute
	accessWrite  = landlock.FSReadWrite | landlock.FSRefer | landlock.FSResolveUnix
	accessSocket = landlock.FSResolveUnix
	accessDevice = landlock.FSReadFile | landlock.FSWriteFile | landlock.FSTruncate | landlock.FSIoctlDev
)

// landlockFiles adds the ruleset that repeats the file rules, by another
// mechanism than the mounts.
func (c *compilation) landlockFiles() error {
	if c.open(policy.BoundFiles) || !c.Facts.Landlock.Yes() || c.Policy.Nested {
		return nil
	}
	r := landlock.Ruleset{UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll}
	if !c.namespaced && !c.open(policy.BoundNetwork) && !c.Policy.Network.Host && !c.streams() { // else the tool alone: see landlockTool
		r.UnhandledNet = 0
	}
	r.Paths = c.closeSockets(c.pathRules())
	down, lost, err := landlock.Downgrade(r, c.Facts.Landlock.Value)
	if err != nil {
		return fmt.Errorf("sandbox: landlock: %w", err)
	}
	c.landlockLosses = lost
	c.do(plan.RestrictFiles{Ruleset: down}, plan.Landlock, "the file rules again, whatever the mounts say")
	return nil
}

func (c *compilation) pathRules() []landlock.PathRule {
	var rules []landlock.PathRule
	grant := func(p string, dir bool, a landlock.AccessFS) {
		if !dir {
			a = a.ForFile()
		}
		rules = append(rules, landlock.PathRule{Path: p, Access: a})
	}
	grant("/proc", true, landlock.FSRead)
	for _, d := range c.Devices {
		grant(d, false, accessDevice)
	}
	if c.namespaced {
		grant("/", true, landlock.FSReadDir)
		grant("/dev", true, landlock.FSRead)
		grant("/dev/pts", true, accessDevice|landlock.FSReadDir)
		grant("/dev/shm", true, accessWrite)
		grant("/dev/mqueue", true, accessWrite)
	}
	if c.makesTerminals() { // to init: see landlockTool
		for _, t := range c.Terminals {
			grant(t, t == resolve.PTYs, accessDevice)
		}
	}
	own := false
	for _, e := range c.expanded() {
		switch {
		case e.Kind == pathrule.Socket:
			grant(e.Path, false, accessSocket)
		case e.Kind == pathrule.Read, e.Kind == pathrule.Make && c.namespaced:
			grant(e.Path, e.Dir, accessRead)
		case e.Kind == pathrule.Write && strings.HasPrefix(e.Path, "/dev/"):
			grant(e.Path, e.Dir, accessDevice)
		case e.Kind == pathrule.Write:
			grant(e.Path, e.Dir, accessWrite)
		case c.namespaced && (e.Kind == pathrule.Private || e.Kind == pathrule.CopyOnWrite):
			grant(e.Path, true, accessWrite)
		case !c.namespaced && e.Kind == pathrule.Private:
			own = true
		}
	}
	named := c.ownRules()
	if own && !slices.ContainsFunc(named, func(r landlock.PathRule) bool { return r.Path == plan.OwnDirectory }) {
		grant(plan.OwnDirectory, true, accessWrite)
	}
	return append(rules, named...)
}

// check makes the tool try what must fail, for the report.
func (c *compilation) check() {
	if c.Facts.Landlock.Yes() && !c.open(policy.BoundFiles) && !c.Policy.Nested && (c.namespaced || !c.grantsRoot()) {
		c.do(plan.CheckRoot{}, plan.Setup, "evidence that Landlock holds files")
	}
	if c.Facts.Landlock.Yes() && !c.open(policy.BoundProcesses) {
		c.do(plan.CheckSignal{}, plan.Setup, "evidence that Landlock holds signals")
	}
	if c.Facts.Keyring.Yes() {
		c.do(plan.CheckKeyring{}, plan.Setup, "evidence that the keyring is another")
	}
}

func (c *compilation) writesRoot() bool {
	return len(c.Tree.Entries) > 0 && c.Tree.Entries[0].Path == "/" && c.Tree.Entries[0].Kind == pathrule.Write
}

// grantsRoot reports whether the policy shows the harness's root directory
// itself, so that listing it proves nothing; see plan.UnnamedTree.
func (c *compilation) grantsRoot() bool {
	return len(c.Tree.Entries) > 0 && c.Tree.Entries[0].Path == "/"
}
