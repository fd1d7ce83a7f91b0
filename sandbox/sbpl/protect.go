package sbpl

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
	"github.com/holdfast-dev/holdfast/sandbox"
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
		c.guard(name, p)
	}
	for _, e := range c.regexes {
		if e.pattern == "" || c.profile.Rules[e.rule].Action != seatbelt.Deny || len(c.shownNodes(true)) == 0 {
			continue
		}
		read, write := c.denies(e.rule)
		if !c.guardable(e.pattern) || !read && !write {
			continue
		}
		c.addGuard(e.pattern, read)
		c.guarded[e.rule] = len(c.shownNodes(false)) == len(c.shownNodes(true))
		if read {
			c.rules[e.rule].differ(Wider, "the name can be seen and looked at, though not opened", "file-read-metadata")
			c.rules[e.rule].differ(Narrower, "what has the name cannot be opened, read or write", contentOps...)
		}
		c.foldingNote(e.pattern)
	}
	c.expanded()
}

// denies says which of reading and writing a rule names.
func (c *compiler) denies(rule int) (read, write bool) {
	for _, o := range c.profile.Rules[rule].Operations {
		read = read || covers(o, "file-read-data")
		write = write || covers(o, "file-write-data") || covers(o, "file-write-create")
	}
	return read, write
}

// top is the outermost directory around n that can be written.
func (c *compiler) top(n *node) *node {
	for n.up != nil && n.up.cell.write {
		n = n.up
	}
	return n
}

// guard protects one missing path if the profile denies it.
func (c *compiler) guard(name, p string) {
	write := c.all("file-write-create", []probe{{p, regular}})
	read := c.both(p, regular)
	if write.allow && read.allow {
		return
	}
	deciding := write
	if write.allow {
		deciding = read
	}
	if !c.guardable(name) {
		c.differ(deciding, Wider, "it does not exist, and what has this name cannot be kept from being made", append(slices.Clone(contentOps), readOps...)...)
		return
	}
	c.addGuard(name, !read.allow)
	if !read.allow {
		c.differ(read, Wider, "the name can be seen and looked at once it exists, though not opened", "file-read-metadata")
	}
	c.foldingNote(name)
}

// foldingNote says at what lets directories be written that the guard knows names
// and not places.
func (c *compiler) foldingNote(name string) {
	for _, n := range c.shownNodes(true) {
		if n.dir() {
			v := c.all("file-write-create", c.below(n.path))
			c.differ(v, Narrower, "what is called "+name+", in any case, is protected at every depth", writeOps...)
		}
	}
}

func (c *compiler) addGuard(name string, hide bool) {
	f := &c.policy.Files
	if hide && !slices.Contains(f.HideNames, name) {
		f.HideNames = append(f.HideNames, name)
	}
	if f.Protect.Off {
		f.Protect.Off, f.Protect.Except = false, sandbox.ProtectedNames()
	}
	if !slices.Contains(f.Protect.Add, name) && !slices.Contains(sandbox.ProtectedNames(), name) {
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
	p := join(m.path, m.rest)
	for _, o := range []string{"file-write-create"} {
		if v := c.ask(c.stand(o), p, regular); v.allow {
			c.differ(v, Narrower, "what does not exist at the start, where nothing else can be written, cannot be made", writeOps...)
		}
	}
	if v := c.both(p, regular); v.allow {
		c.differ(v, Narrower, "what does not exist at the start is not there", readOps...)
	}
}
