package sbpl

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// protect keeps names from being made that the profile denies and that do not
// exist yet, in what can be written: by a guard that knows names, not places.
func (c *compiler) protect() {
	for _, m := range c.missing {
		n := c.at[m.path]
		if n == nil || !n.dir() || !n.cell.write {
			c.absent(m)
			continue
		}
		p := join(m.path, m.rest)
		name := strings.TrimPrefix(strings.TrimPrefix(p, c.top(n).path), "/")
		c.guard(name, p, n.cell)
	}
	c.unveil()
	for i := range c.regexes {
		if e := &c.regexes[i]; e.pattern != "" && c.profile.Rules[e.rule].Action == seatbelt.Deny {
			c.guardPattern(e)
		}
	}
	c.guardsNames()
	c.expanded()
}

// unveil keeps what stands in the way of a denied path from being taken away, or
// the path from being made then.
func (c *compiler) unveil() {
	for _, v := range c.veiled {
		n := c.at[v.dir]
		if n.cell.write {
			c.guard(strings.TrimPrefix(strings.TrimPrefix(v.path, c.top(n).path), "/"), v.path, n.cell)
		}
		if look := c.ask(c.stand("file-read-metadata"), v.path, symlink); v.link && n.cell.shown && !look.allow {
			c.differ(look, Wider, "a link in a directory whose contents are shown can be read", "file-read-metadata")
		}
	}
}

// guardPattern protects a name at any depth, if the profile denies it anywhere that
// can be written.
func (c *compiler) guardPattern(e *expansion) {
	sample := strings.TrimSuffix(e.pattern, "*")
	var read, write bool
	var yes []verdict
	for _, n := range c.roots() {
		probes := []probe{{join(n.path, sample), regular}}
		r, w := c.all("file-read-data", probes), c.all("file-write-create", probes)
		read, write = read || !r.allow, write || !w.allow
		if r.allow {
			yes = append(yes, r)
		}
	}
	if !read && !write || !c.guardable(e.pattern) {
		return
	}
	c.addGuard(e.pattern, read)
	e.guarded = len(c.shownNodes(false)) == len(c.shownNodes(true)) && len(c.roots()) < mostRoots && !slices.ContainsFunc(c.roots(), func(n *node) bool { return !c.wasWalked(n.path) })
	if read {
		c.rules[e.rule].differ(Wider, "the name can be seen and looked at, though not opened", "file-read-metadata")
		for _, v := range yes {
			c.differ(v, Narrower, "what is called "+e.pattern+", in any case, cannot be opened at any depth", "file-read-data")
		}
		c.rules[e.rule].differ(Narrower, "what has the name cannot be opened, read or write", contentOps...)
	}
}

// wasWalked reports whether what exists in a directory has been given mounts where an
// expression without a place matches it: the guard lets it be looked at, and its times be changed.
func (c *compiler) wasWalked(dir string) bool {
	return slices.ContainsFunc(c.walked, func(w string) bool { return within(dir, w) })
}

// mostRoots is how many directories a name is tried in.
const mostRoots = 64

// roots are the outermost directories that can be written.
func (c *compiler) roots() []*node {
	if c.tops == nil {
		for _, n := range c.nodes {
			if n.dir() && n.cell.write && !n.around().write && len(c.tops) < mostRoots {
				c.tops = append(c.tops, n)
			}
		}
	}
	return c.tops
}

// top is the outermost directory around n that can be written.
func (c *compiler) top(n *node) *node {
	for n.up != nil && n.up.cell.write {
		n = n.up
	}
	return n
}

// guard protects the name of a missing path, if the profile denies something of what
// could be made there, or in it, that the directory around it would let be done.
func (c *compiler) guard(name, p string, in cell) {
	probes := c.later(p)
	no := c.refusals(probes, in)
	if len(no) == 0 {
		return
	}
	c.kept[p] = true
	if !c.guardable(name) {
		for _, one := range no {
			c.differ(one.verdict, Wider, "it does not exist, and what has this name cannot be kept from being made", c.standing(one.operation)...)
		}
		return
	}
	hide := false
	for _, one := range no {
		if slices.Contains(readOps, one.operation) {
			hide = true
			c.differ(one.verdict, Wider, "the name can be seen and looked at once it exists, though not opened", "file-read-metadata")
		}
	}
	c.addGuard(name, hide)
	for _, o := range writeOps {
		for _, at := range probes {
			if o != c.stand(o) {
				break // asked as that
			}
			if v := c.ask(o, at.path, at.kind); v.allow {
				c.differ(v, Narrower, "it does not exist, and is not made, for something else of it is denied", c.standing(o)...)
			}
		}
	}
}

// guardsNames notes at what lets directories be written that the guard knows names
// and not places.
func (c *compiler) guardsNames() {
	if c.guards == 0 {
		return
	}
	for _, n := range c.shownNodes(true) {
		if !n.dir() {
			continue
		}
		for _, o := range contentOps {
			c.differ(c.all(o, c.below(n.path)), Narrower, "a name that is protected in one place, in any case, is protected at every depth", writeOps...)
		}
		if len(c.policy.Files.HideNames) > 0 {
			c.differ(c.all("file-read-data", c.below(n.path)), Narrower, "a name that is hidden in one place, in any case, cannot be opened at any depth", "file-read-data")
		}
	}
}

func (c *compiler) addGuard(name string, hide bool) {
	f := &c.policy.Files
	if hide && !slices.Contains(f.HideNames, name) {
		f.HideNames = append(f.HideNames, name)
	}
	if f.Protect.Off {
		f.Protect.Off, f.Protect.Except = false, policy.ProtectedNames()
		f.Protect.Everywhere = true // a profile's rules hold in what its program makes, too
	}
	if !slices.Contains(f.Protect.Add, name) && !slices.Contains(policy.ProtectedNames(), name) {
		f.Protect.Add = append(f.Protect.Add, name)
	}
	f.Protect.Except = slices.DeleteFunc(f.Protect.Except, func(n string) bool { return n == name })
	c.guards++
}

// mostGuards is how many names the guard takes in one list.
const mostGuards = 2000

// guardable reports whether the guard can match a name.
func (c *compiler) guardable(name string) bool {
	if c.guards >= mostGuards || name == "" {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || part == "*" || len(part) > 255 || strings.Contains(strings.TrimSuffix(part, "*"), "*") {
			return false
		}
	}
	return !strings.ContainsRune(name, 0)
}

// absent writes down what an allowed path cannot be because it does not exist.
func (c *compiler) absent(m place) {
	if m.path == "/" {
		return // a place of another system
	}
	p := join(m.path, m.rest)
	if v := c.ask(c.stand("file-write-create"), p, regular); v.allow {
		c.differ(v, Narrower, "what does not exist at the start, where nothing else can be written, cannot be made", writeOps...)
	}
	if v := c.both(p, regular); v.allow {
		c.differ(v, Narrower, "what does not exist at the start is not there", readOps...)
	}
}
