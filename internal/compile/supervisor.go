package compile

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// supervisor loads the filter that sends the calls which change names to init, and,
// where there is no network namespace, those that connect. There are no names to
// guard where nothing of the host can be written.
func (c *compilation) supervisor() error {
	rules := supervisor.Rules{}
	switch {
	case c.guardsNames():
		rules = c.supervisorRules()
	case c.keepsToMounts():
		rules.Names = protected.Patterns()[:1] // in no root, so it is not held
	}
	if rules.Watch = c.watches(); rules.Watch {
		rules.Bare, rules.Patience = !c.namespaced, c.patience()
		if len(rules.Roots) == 0 {
			rules.Roots = c.rootsOf(c.writeRoots())
		}
	}
	rules.Connects, rules.FreeBinds = c.endpoints(), c.freesBinds()
	rules.MemFile, rules.Near = c.Facts.ByFile, !c.Facts.Around.NoSchedule
	if len(rules.Roots) == 0 && len(rules.Names) == 0 && rules.Connects == nil && !rules.Watch || !c.Facts.Notify.Yes() {
		return nil
	}
	if err := c.tooManyRules(rules); err != nil {
		return err
	}
	encoded, err := rules.Encode()
	if err != nil {
		return &policy.PolicyError{Field: "Files.Protect", Problem: "cannot be held", Remedy: "see ProtectedNames for the notation", Err: err}
	}
	filter, err := supervisor.FilterOf(c.Arch.String(), &rules)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	program, err := seccomp.ParseProgram(programBytes(filter))
	if err != nil {
		return fmt.Errorf("sandbox: the supervisor's filter: %w", err)
	}
	load := plan.LoadSupervisor{Program: program, Rules: string(encoded), Names: len(rules.Names) + len(rules.Hidden)}
	why := "init makes the calls that could plant a file, or refuses"
	if rules.Watch {
		load.Watch, why = true, why+"; and records which paths are not shown"
	}
	if rules.Patience > 0 {
		why += ", and the harness is asked about those that are opened"
	}
	c.noteBinds()
	if rules.Connects != nil {
		why += "; and those that connect"
	}
	if c.streams() {
		load.Network, load.Given = true, c.givenPorts()
		for _, e := range rules.Connects {
			load.Connects = append(load.Connects, netip.AddrPortFrom(netip.AddrFrom4(e.Addr), e.Port))
		}
	}
	by := plan.Supervisor
	if c.keepsToMounts() && !c.guardsNames() {
		why = "init makes the calls that change names: without Landlock a descriptor from another sandbox would lead past the mounts"
	} else if !c.guardsNames() && rules.Connects == nil {
		by, why = plan.Setup, "init records which paths are not shown: no bound"
	}
	c.do(load, by, why)
	return nil
}

// guardsNames reports whether the supervisor makes the calls that change names: where something can be written, and a
// name or a path in it is protected or hidden.
func (c *compilation) guardsNames() bool {
	names := len(c.Policy.Files.ProtectedPatterns()) + len(c.Policy.Files.HideNames)
	return !c.open(policy.BoundFiles) && c.Facts.Notify.Yes() && len(c.writeRoots()) > 0 && (names > 0 || c.holdsInWritable())
}

// keepsToMounts reports whether the supervisor makes the calls that change names although nothing in what can be written is held. A
// descriptor that another sandbox has sent brings that one's mount, with its right to write and without its supervisor; where Landlock does not
// refuse that, this supervisor does.
func (c *compilation) keepsToMounts() bool {
	return c.namespaced && !c.open(policy.BoundFiles) && !c.Facts.Landlock.Yes() && c.Facts.Notify.Yes() && !c.Policy.Nested && !c.root.Nest
}

// takesSockets reports whether the supervisor can bind a socket of the tool's where it has to: it takes a descriptor of it, or has made it.
func (c *compilation) takesSockets() bool {
	return c.Facts.Take.Yes() || !c.guardsNames() && !c.keepsToMounts() || c.local()
}

// freesBinds reports whether bind(2) is left to the kernel, and Landlock keeps sockets from being made in what can be written.
func (c *compilation) freesBinds() bool {
	return !c.takesSockets() && c.Facts.Landlock.Yes() && !c.Policy.Nested && !c.root.Nest
}

// closeSockets takes the right to make a socket from the rules on what can be written, where bind(2) is left to the kernel; and from those
// on what is around that, since Landlock adds up what it grants on the way to the root.
func (c *compilation) closeSockets(rules []landlock.PathRule) []landlock.PathRule {
	if !c.freesBinds() {
		return rules
	}
	for i, r := range rules {
		if slices.ContainsFunc(c.writeRoots(), func(root string) bool { return pathrule.Within(root, r.Path) }) {
			rules[i].Access &^= landlock.FSMakeSock
		}
	}
	return rules
}

// noteBinds says what the tool cannot do where the supervisor cannot take its sockets.
func (c *compilation) noteBinds() {
	why := " (" + c.Facts.Take.Reason + "; remedy: " + c.Facts.Take.Remedy + ")"
	switch {
	case c.takesSockets():
	case c.freesBinds():
		c.note(policy.BoundFiles, "no socket can be made in what the policy lets the tool write, nor in what is around that"+why)
	default:
		c.note(policy.BoundNetwork, "no socket can be bound, of any kind"+why)
	}
}

// watches reports whether what the tool does not find is recorded.
func (c *compilation) watches() bool {
	if c.Policy.Files.Watch && !c.Facts.Notify.Yes() {
		c.note(policy.BoundFiles, "Files.Watch does nothing: "+c.Facts.Notify.Reason)
	}
	if l := lossOf(c.Facts.Notify, "Files.Decide cannot be asked"); c.Policy.Files.Decide != nil && !c.Facts.Notify.Yes() && !slices.Contains(c.Policy.May, policy.BoundFiles) {
		c.unsupported = append(c.unsupported, lacking(policy.BoundFiles, l))
	}
	return c.Policy.Files.Watch && c.Facts.Notify.Yes()
}

// patience is how long init waits for the harness's answer whether a file may be opened, in seconds: Files.Decide may wait for its turn as
// long as it may take, and then the file is opened. 0: there is no Files.Decide.
func (c *compilation) patience() uint32 {
	if c.Policy.Files.Decide == nil {
		return 0
	}
	return uint32((2*c.Policy.Files.DecidesWithin()+time.Second-1)/time.Second) + 2
}

// rootsOf are the supervisor's roots.
func (c *compilation) rootsOf(dirs []string) (roots []supervisor.Root) {
	for _, d := range dirs {
		roots = append(roots, supervisor.Root{Path: d, Fold: true})
	}
	return roots
}

// fences reports whether the supervisor keeps modes, owners and times outside as they are, as mounts would.
func (c *compilation) fences() bool {
	return c.guardsNames() && !c.namespaced && c.Facts.Landlock.Yes()
}

// makesTerminals reports whether the supervisor opens terminals for the tool, which itself can open none of the host's.
func (c *compilation) makesTerminals() bool {
	return len(c.Terminals) > 0 && c.fences() && !c.grantsRoot() && !c.Policy.Nested
}

// programBytes lays a filter out as the kernel's struct sock_filter, which is
// little-endian on every architecture that this package knows.
func programBytes(filter []supervisor.SockFilter) []byte {
	var b []byte
	for _, i := range filter {
		b = binary.LittleEndian.AppendUint16(b, i.Code)
		b = append(b, i.JT, i.JF)
		b = binary.LittleEndian.AppendUint32(b, i.K)
	}
	return b
}

// tooManyRules names the list that the supervisor has no room for; nil: there is none.
func (c *compilation) tooManyRules(r supervisor.Rules) error {
	for _, list := range []struct {
		n                            int
		field, what, problem, remedy string
	}{
		{len(r.Roots), "Files.Write", "directories", "protect names in", "name a directory around them, or set Files.Protect.Off"},
		{len(r.Names) + len(r.Hidden), "Files.Protect.Add", "names, with those of Files.HideNames", "look for", "name fewer"},
		{len(c.Obeyed.Paths), "Files.Protect", "paths that git obeys by configurations (" + errtext.Printable(c.Obeyed.By) + " names most of them)", "hold", resolve.Unnamed},
		{len(r.Paths), "Files.Read", "paths in directories that can be written, with those of Files.Hide", "hold one by one", "name a directory around them"},
	} {
		if list.n > supervisor.MaxEntries {
			return &policy.PolicyError{Field: list.field, Value: fmt.Sprint(list.n, " ", list.what), Problem: fmt.Sprintf("are more than the %d that the supervisor can %s", supervisor.MaxEntries, list.problem), Remedy: list.remedy}
		}
	}
	return nil
}

// supervisorRules makes the supervisor's rules. Case is folded on every file system: one
// directory of an ext4 may fold and the next not, and the tool may choose
// (chattr +F), so asking the file system would be asking the tool.
func (c *compilation) supervisorRules() supervisor.Rules {
	rules := supervisor.Rules{Hidden: c.Policy.Files.HideNames, NoNewGit: c.Policy.Files.Protect.NoNewRepositories}
	rules.Roots = c.rootsOf(c.writeRoots())
	kinds := map[string]protected.Kind{}
	for _, p := range protected.Patterns() {
		kinds[p.Path] = p.Kind
	}
	for _, name := range c.Policy.Files.ProtectedPatterns() {
		kind := kinds[name]
		if kind == protected.Whole && c.Policy.Files.Protect.Everywhere {
			kind = protected.Ever
		}
		rules.Names = append(rules.Names, protected.Pattern{Path: name, Kind: kind})
	}
	for _, name := range c.Obeyed.Names { // in a linked work tree, too, which has the user's configuration
		rules.Names = append(rules.Names, protected.Pattern{Path: name, Kind: protected.Ever})
	}
	rules.Paths, rules.Fence = c.protectedPaths(), c.fences()
	rules.Shared, rules.Terminals = c.ownHome(), c.makesTerminals()
	return rules
}

// holdsInWritable reports whether a rule hides or protects something in what can be written.
func (c *compilation) holdsInWritable() bool {
	return slices.ContainsFunc(c.protectedPaths(), func(p protected.Pattern) bool { return p.Kind != protected.Free })
}

// protectedPaths are the rules on what lies in a directory that can be written. With mounts they are a second mechanism,
// and needed: when the host replaces a file by rename, the kernel takes away the mount upon it (detach_mounts in
// fs/namespace.c), and the new one would be the tool's. Without mounts they are the only one.
func (c *compilation) protectedPaths() []protected.Pattern {
	var paths []protected.Pattern
	for _, p := range c.Obeyed.Paths {
		paths = append(paths, protected.Pattern{Path: p})
	}
	for _, p := range c.Obeyed.Hidden {
		paths = append(paths, protected.Pattern{Path: p, Kind: protected.Unread})
	}
	for _, e := range c.Tree.Entries {
		around := c.writable(e.Path)
		switch {
		case e.Kind == pathrule.Write && (around || !e.Dir && !c.namespaced):
			paths = append(paths, protected.Pattern{Path: e.Path, Kind: protected.Free})
		case !around:
		case e.Kind == pathrule.Hide:
			paths = append(paths, protected.Pattern{Path: e.Path, Kind: protected.Unread})
		case e.Kind == pathrule.Read:
			paths = append(paths, protected.Pattern{Path: e.Path})
		case e.Kind != pathrule.Make && c.namespaced, c.namespaced && c.hiddenAround(e): // the sandbox's own, but for a socket
			paths = append(paths, protected.Pattern{Path: e.Path, Kind: protected.Free})
		}
	}
	return paths
}

// hiddenAround reports whether e, which is made, lies in a hidden directory.
func (c *compilation) hiddenAround(e resolve.Entry) bool {
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if around, ok := c.Tree.Find(dir); ok || dir == "/" {
			return around.Kind == pathrule.Hide
		}
	}
}

// writable reports whether something around p can be written.
func (c *compilation) writable(p string) bool {
	for p != "/" {
		p = path.Dir(p)
		if e, ok := c.Tree.Find(p); ok && e.Kind == pathrule.Write && e.Dir {
			return true
		}
	}
	return false
}
