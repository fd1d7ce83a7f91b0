package sandbox

import (
	"net/netip"
	"path"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A planModel says what a plan's steps let a tool do. It knows what the kernel
// makes of each step and nothing of policies: mounts, Landlock and the supervisor are
// asked apart, and all have to agree.
type planModel struct {
	walled     bool
	network    bool // a network namespace of its own
	filters    []seccomp.Program
	captured   bool             // there is a device of its own
	listens    map[int]bool     // the slots of listeners on its loopback
	connects   []netip.AddrPort // where the supervisor lets it connect to, if guarded
	given      int              // how many of them, the last, are each run's own
	guarded    bool
	local      bool // it connects to UNIX sockets of the tool's own alone
	carrier    *carrier
	sockfile   map[string]bool // what is a socket on the host
	pids       bool
	scoped     bool // Landlock scopes signals
	mounts     map[string]modelMount
	plain      map[string]bool // files and links in the new root's own file system, or a private one
	dirs       map[string]bool // directories of it, which hold something
	sealed     bool
	rules      []landlock.PathRule
	landlock   bool
	handled    landlock.AccessFS
	supervisor []byte
	noNew      bool
}

// A modelMount is what is mounted at a path.
type modelMount struct {
	change  bool // not read-only
	nodev   bool
	noexec  bool
	closed  bool // an empty thing that nobody may open
	proc    bool
	pts     bool
	device  bool
	private bool
	hollow  bool // nothing is in it but what the plan puts there
	file    bool
}

// modelOf reads a plan.
func modelOf(p plan.Plan) *planModel {
	m := &planModel{
		walled: p.Namespaces.Mount, network: p.Namespaces.Net, pids: p.Namespaces.PID,
		mounts: map[string]modelMount{}, plain: map[string]bool{}, dirs: map[string]bool{"/": true}, listens: map[int]bool{}, sockfile: map[string]bool{},
	}
	for _, s := range p.Steps {
		m.step(s.Do)
	}
	return m
}

func (m *planModel) step(a plan.Action) {
	mount := func(p string, what modelMount) {
		m.mounts[p] = what
		m.lead(p)
	}
	switch a := a.(type) {
	case plan.NewRoot:
		if a.Host {
			m.mounts["/"] = modelMount{change: a.Write, nodev: true}
		}
	case plan.KeepRoot:
		m.mounts["/"] = modelMount{change: true}
	case plan.SealRoot:
		m.sealed = true
	case plan.Bind:
		mount(a.At, modelMount{change: a.Write, nodev: !a.Device, noexec: a.Device || a.At == "/proc", device: pathrule.Within(a.At, "/dev"), proc: a.At == "/proc", file: !a.Dir})
	case plan.Private:
		mount(a.At, modelMount{change: true, nodev: true, private: true})
	case plan.PutReadOnly:
		mount(a.At, modelMount{nodev: true, private: true, hollow: true})
	case plan.Overlay:
		mount(a.At, modelMount{change: true, nodev: true})
	case plan.Hide:
		mount(a.Path, modelMount{closed: true, noexec: true, nodev: true})
	case plan.Proc:
		mount("/proc", modelMount{change: true, nodev: true, noexec: true, proc: true})
		for _, name := range plan.HiddenProc {
			mount("/proc/"+name, modelMount{closed: true, noexec: true})
		}
	case plan.Queues:
		mount("/dev/mqueue", modelMount{change: true, nodev: true, noexec: true, private: true})
	case plan.PTYs:
		mount("/dev/pts", modelMount{change: true, noexec: true, pts: true})
	case plan.MakeFile:
		m.plain[a.Path] = a.Mode&0o111 != 0
		m.lead(a.Path)
	case plan.MakeLink:
		m.lead(a.Path)
	case plan.RestrictFiles:
		m.restrict(a.Ruleset)
	case plan.LoadSupervisor:
		m.supervisor = []byte(a.Rules)
		m.connects, m.given, m.guarded = a.Connects, a.Given, a.Network
		call, err := seccomp.NewCall(seccomp.AMD64, "connect")
		if err != nil {
			panic(err)
		}
		action, err := a.Program.Evaluate(call)
		m.local = err == nil && action == seccomp.Notify
	case plan.Tun:
		m.captured = true
	case plan.Listen:
		m.listens[a.Slot] = true
	case plan.SetNoNewPrivs:
		m.noNew = true
	case plan.LoadFilter:
		m.filters = append(m.filters, a.Program)
	}
}

func (m *planModel) lead(p string) {
	for dir := path.Dir(p); dir != "/"; dir = path.Dir(dir) {
		m.dirs[dir] = true
	}
}

func (m *planModel) restrict(r landlock.Ruleset) {
	if r.HandledFS()&^landlock.FSRefer == 0 {
		m.scoped = m.scoped || r.Scoped()&landlock.ScopeSignal != 0
		return
	}
	m.landlock, m.rules, m.handled = true, r.Paths, r.HandledFS()
}

// mountOf returns what is mounted at p, or deepest around it.
func (m *planModel) mountOf(p string) (modelMount, string, bool) {
	for asked := p; ; p = path.Dir(p) {
		if at, ok := m.mounts[p]; ok && at.file && p != asked {
			return modelMount{closed: true}, p, true // nothing lies below a file
		} else if ok {
			return at, p, true
		}
		if p == "/" {
			return modelMount{}, "", false
		}
	}
}

// grants reports whether Landlock grants rights on p: the rules on the way up
// add to each other.
func (m *planModel) grants(p string, need landlock.AccessFS) bool {
	if !m.landlock {
		return true
	}
	var have landlock.AccessFS
	for _, r := range m.rules {
		if p == r.Path || pathrule.Within(p, r.Path) && r.Access&^landlock.FSFile != 0 {
			have |= r.Access
		}
	}
	need &= m.handled
	return have&need == need
}

// allows says whether the plan lets an act happen, and by whom it is refused.
func (m *planModel) allows(a Access) (bool, plan.Mechanism) {
	switch a.Op {
	case OpFork, OpRunFor:
		return true, ""
	case OpSignal:
		return !a.Outside || !m.pids && !m.scoped, plan.PIDNamespace
	case OpElevate:
		return !m.noNew, plan.NoNewPrivs
	case OpConnect, OpBind:
		if !m.makesSocket(a) {
			return false, plan.Seccomp
		}
		if a.Network != "unix" {
			return m.reaches(a), plan.NetworkNamespace
		}
		if m.local && a.Op == OpConnect {
			return false, plan.Supervisor
		}
	}
	if changesRoot(a) {
		return false, ""
	}
	switch {
	case m.sockfile[a.Path] && slices.Contains([]Op{OpRead, OpList, OpWrite, OpExecute}, a.Op):
		return false, "" // ENXIO, ENOTDIR, EACCES
	case m.walled && !m.mountsAllow(a):
		return false, plan.MountNamespace
	case !m.landlockAllows(a):
		return false, plan.Landlock
	case m.supervisor != nil && !m.supervisorAllows(a):
		return false, plan.Supervisor
	}
	return true, ""
}

// mountsAllow asks what is mounted where.
func (m *planModel) mountsAllow(a Access) bool {
	at, root, found := m.mountOf(a.Path)
	switch a.Op {
	case OpStat:
		return m.exists(a.Path)
	case OpList:
		_, file := m.plain[a.Path]
		return m.exists(a.Path) && (found && !at.hollow || !file) && !(found && at.closed) && !(at.hollow && a.Path == root) && !(found && at.device && !at.private)
	case OpRead:
		if !found || at.hollow {
			_, file := m.plain[a.Path]
			return file
		}
		return m.exists(a.Path) && !at.closed && !(at.device && at.nodev) && !(at.pts && a.Path == root) && !m.closedDev(root)
	case OpWrite:
		if !found || at.hollow {
			return false
		}
		return m.exists(a.Path) && !at.closed && !(at.pts && a.Path == root) && !m.closedDev(root) && (at.change || at.device && !at.nodev) // data passes to a device on a read-only mount
	case OpExecute:
		if !found || at.hollow {
			return m.plain[a.Path]
		}
		return !at.closed && !at.noexec && !(at.device && !at.private) && !m.closedDev(root)
	case OpConnect:
		return found && !at.hollow && !at.closed && !at.proc && !at.pts && !at.device && !m.closedDev(root)
	case OpChmod, OpSetXattr:
		return found && at.change && !at.proc && !at.pts && m.exists(a.Path)
	case OpCreate, OpSymlink, OpBind:
		return m.namesChange(a.Path, false)
	case OpRemove:
		return m.namesChange(a.Path, false)
	case OpRename:
		return m.namesChange(a.Path, true) && m.namesChange(a.To, false)
	case OpLink:
		_, mounted := m.mounts[a.Path]
		if m.dirs[a.Path] {
			return false // a directory has one name
		}
		return found && at.change && !mounted && !at.proc && !at.pts && !m.closedDev(root) && m.namesChange(a.To, false)
	}
	return false
}

// exists reports whether something can be at p.
func (m *planModel) exists(p string) bool {
	at, root, found := m.mountOf(p)
	if !found {
		_, file := m.plain[p]
		return m.dirs[p] || file
	}
	if m.closedDev(root) {
		return p == "/dev" || m.dirs[p]
	}
	if at.hollow {
		_, file := m.plain[p]
		return p == root || m.dirs[p] || file
	}
	return !at.closed || p == root
}

// closedDev reports whether root is the sandbox's own /dev, in which nothing can
// be made: what is not there from the start is never there.
func (m *planModel) closedDev(root string) bool {
	return root == "/dev" && !m.grants("/dev", landlock.FSMakeReg)
}

// namesChange reports whether the name p can come or go by what is mounted.
func (m *planModel) namesChange(p string, moved bool) bool {
	at, _, found := m.mountOf(p)
	if _, mounted := m.mounts[p]; mounted || !found || !at.change || at.closed || at.proc || at.pts {
		return false
	}
	if !moved && m.dirs[p] {
		return false // it is there, and not empty
	}
	return true
}

// landlockAllows asks the rights on the path, or the directory it is in.
func (m *planModel) landlockAllows(a Access) bool {
	dir := path.Dir(a.Path)
	makes := landlock.FSMakeReg
	removes := landlock.FSRemoveFile
	if a.Dir {
		makes, removes = landlock.FSMakeDir, landlock.FSRemoveDir
	}
	switch a.Op {
	case OpRead:
		return m.grants(a.Path, landlock.FSReadFile)
	case OpList:
		return m.grants(a.Path, landlock.FSReadDir)
	case OpWrite:
		return m.grants(a.Path, landlock.FSWriteFile)
	case OpExecute:
		return m.grants(a.Path, landlock.FSExecute)
	case OpCreate:
		return m.grants(dir, makes)
	case OpSymlink:
		return m.grants(dir, landlock.FSMakeSym)
	case OpBind:
		return m.grants(dir, landlock.FSMakeSock)
	case OpRemove:
		return m.grants(dir, removes)
	case OpRename:
		return m.grants(dir, removes) && m.grants(path.Dir(a.To), makes|removes)
	case OpLink:
		// The file must not gain rights by its new place: "landlock: refer".
		to := path.Dir(a.To)
		return m.grants(to, landlock.FSMakeReg|landlock.FSRefer) && m.grants(dir, landlock.FSRefer) && m.grants(dir, landlock.FSWriteFile)
	}
	return true // stat, chmod, xattr and connect: Landlock has no right for them
}

// supervisorAllows is what the supervisor decides by its judgement of the paths.
func (m *planModel) supervisorAllows(a Access) bool {
	j := m.judge(a.Path)
	names := j.Whole || j.Config || j.GitFile || j.CommonDir || j.Lock || j.Text
	switch a.Op {
	case OpRead, OpList:
		return !j.Hidden
	case OpWrite:
		return !names && !j.Hidden
	case OpBind:
		return !names && !j.Hidden && !j.Inside
	case OpCreate:
		if a.Dir {
			return !j.Whole && !j.Config && !j.CommonDir && !j.Lock && !j.Text && !j.Placed
		}
		return (!names || j.Lock) && !j.Hidden && !j.OnlyDir
	case OpSymlink:
		text := slices.ContainsFunc([]byte(a.To), func(c byte) bool { return c == '/' || c == '.' })
		return !names && !j.Hidden && !j.Above && !(j.Deep && text) && (!j.Inside || j.Probe && !text)
	case OpRemove:
		return (!j.Whole || j.Loose) && !j.Config && !j.Lock && !j.Placed
	case OpChmod:
		return !j.Whole && !j.Fixed && !(j.Placed && j.Hidden) && !j.Fenced
	case OpSetXattr:
		return !names && !j.Hidden && !j.Inside && !j.Fenced
	case OpRename:
		to := m.judge(a.To)
		leaves := !(j.Whole || j.Placed || j.Config || j.CommonDir || j.Hidden || j.Lock || j.GitFile && !a.Dir || a.Dir && (j.Above || j.Deep || j.GitFile || j.Inside && !j.Data))
		arrives := !(to.Whole || to.Placed || to.CommonDir || to.Hidden || to.GitFile || to.Config || to.Lock || to.Text || to.OnlyDir && !a.Dir || a.Dir && (to.Above || to.Deep || to.Inside && !(to.Tree && j.Tree)))
		return leaves && arrives
	case OpLink:
		to := m.judge(a.To)
		return !names && !j.Hidden && !(to.Whole || to.Config || to.GitFile || to.CommonDir || to.Hidden || to.Lock || to.Text || to.OnlyDir)
	}
	return true
}

func (m *planModel) judge(p string) supervisor.Judgement {
	j, ok := supervisor.Judge(m.supervisor, p)
	if !ok {
		panic("the plan's rules cannot be read")
	}
	return j
}

// changesRoot: no kernel makes or removes the root directory, in which no name
// is its own.
func changesRoot(a Access) bool {
	return slices.Contains([]Op{OpCreate, OpRemove, OpRename, OpLink, OpSymlink, OpBind}, a.Op) && (a.Path == "/" || a.To == "/")
}
