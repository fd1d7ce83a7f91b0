package sandbox

import (
	"path"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// expanded returns the layout's entries as Landlock has to be told them. Landlock
// only grants: where no mount covers what is hidden, a readable directory that
// holds something hidden is granted as the list of everything else in it.
func (c *compilation) expanded() []entry {
	if c.walled {
		return c.layout.entries
	}
	var out []entry
	for _, e := range c.layout.entries {
		if e.kind == pathrule.Read && e.dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// without appends dir, or, if something below it is hidden, what else it holds.
func (c *compilation) without(out []entry, dir entry) []entry {
	if !c.hides(dir.path) {
		return append(out, dir)
	}
	for _, e := range c.list(dir.path) {
		if own, ok := c.layout.find(e.path); ok && own.kind != pathrule.Read {
			continue // hidden, or it has an entry of its own
		}
		if e.dir {
			out = c.without(out, e)
		} else {
			out = append(out, e)
		}
	}
	return out
}

// hides reports whether something below dir is hidden.
func (c *compilation) hides(dir string) bool {
	for _, e := range c.layout.entries {
		if e.kind == pathrule.Hide && e.path != dir && pathrule.Within(e.path, dir) {
			return true
		}
	}
	return false
}

// hiddenInWritable reports whether e, which is hidden, lies in a directory that
// the tool can write, where a list of everything else would be out of date.
func (c *compilation) hiddenInWritable(e entry) bool {
	for dir := path.Dir(e.path); ; dir = path.Dir(dir) {
		if around, ok := c.layout.find(dir); ok && around.kind != pathrule.Hide {
			return around.kind != pathrule.Read
		}
		if dir == "/" {
			return false
		}
	}
}
