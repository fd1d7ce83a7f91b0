package compile

import (
	"path"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

// expanded returns the layout's entries as Landlock has to be told them. Landlock
// only grants: where no mount covers what is hidden, a readable directory that
// holds something hidden is granted as the list of everything else in it.
func (c *compilation) expanded() []resolve.Entry {
	if c.namespaced {
		return c.Tree.Entries
	}
	var out []resolve.Entry
	for _, e := range c.Tree.Entries {
		if e.Kind == pathrule.Read && e.Dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// without appends dir, or, if something below it is hidden, what else it holds.
func (c *compilation) without(out []resolve.Entry, dir resolve.Entry) []resolve.Entry {
	if !c.hides(dir.Path) {
		return append(out, dir)
	}
	for _, e := range c.List(dir.Path) {
		if own, ok := c.Tree.Find(e.Path); ok && own.Kind != pathrule.Read {
			continue // hidden, or it has an entry of its own
		}
		if e.Dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// hides reports whether something below dir is hidden.
func (c *compilation) hides(dir string) bool {
	for _, e := range c.Tree.Entries {
		if e.Kind == pathrule.Hide && e.Path != dir && pathrule.Within(e.Path, dir) {
			return true
		}
	}
	return false
}

// hiddenInWritable reports whether e, which is hidden, lies in a directory that
// the tool can write, where a list of everything else would be out of date.
func (c *compilation) hiddenInWritable(e resolve.Entry) bool {
	for dir := path.Dir(e.Path); ; dir = path.Dir(dir) {
		if around, ok := c.Tree.Find(dir); ok && around.Kind != pathrule.Hide {
			return around.Kind != pathrule.Read
		}
		if dir == "/" {
			return false
		}
	}
}
