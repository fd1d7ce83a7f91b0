package sbpl

import (
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// mostNames is how many names of directories that cannot be written, inside of those
// that can, are looked at for fifos.
const mostNames = 100_000

// fifos covers the fifos of a directory that cannot be written and lies in one that
// can: opening a fifo is no writing to a read-only mount's file system
// (fifo(7), mnt_want_write), and Landlock, which stops it elsewhere, adds up what is granted around.
func (c *compiler) fifos(n *node) {
	if n.cell.write || !n.cell.shown || !c.writesAround(n) {
		return
	}
	if n.kind == fifo {
		c.cover(n.path)
	}
	if n.dir() && !c.coverFifos(n.path) {
		c.differ(c.all("file-write-data", c.below(n.path)), Wider, "not all of its files could be looked at, and the fifos among them can be written", "file-write-data")
	}
}

// writesAround reports whether a directory around n can be written.
func (c *compiler) writesAround(n *node) bool {
	for n = n.up; n != nil; n = n.up {
		if n.cell.write {
			return true
		}
	}
	return false
}

// coverFifos looks as far as the directory's cell goes.
func (c *compiler) coverFifos(dir string) (all bool) {
	names, all := c.find.host.list(dir)
	for _, name := range names {
		if c.names++; c.names > mostNames {
			return false
		}
		p := join(dir, name)
		if c.at[p] != nil {
			continue // it has its own cell, and is looked at with that
		}
		switch c.find.lstat(p) {
		case directory:
			if !c.coverFifos(p) {
				return false
			}
		case fifo:
			c.cover(p)
		}
	}
	return all
}

func (c *compiler) cover(p string) {
	c.put(rootfs.DataBind{At: p, Mode: rootfs.NoAccess})
	for _, o := range readOps {
		if v := c.ask(c.stand(o), p, fifo); v.allow {
			c.differ(v, Narrower, "a fifo in what cannot be written, inside of what can, is covered", o)
		}
	}
}
