package sbpl

import "slices"

// A node is a path that the profile names, or a directory on the way to one. It
// exists, and no link leads to it.
type node struct {
	path  string
	kind  kind
	up    *node
	cell  cell    // what a directory's contents, or a file, will be
	list  verdict // whether a directory can be listed
	look  verdict // whether it can be looked at
	holds bool    // something in it is there

	lesser  bool // something in it is allowed less than writing and executing, or is fixed
	fixed   bool // it must not be replaced
	granted bool // programs can be executed in it, or in a directory around it
}

func (n *node) dir() bool { return n.kind == directory }

// around is the cell of the directory that n lies in.
func (n *node) around() cell {
	if n.up == nil {
		return cell{}
	}
	return n.up.cell
}

// anchored reports whether n has to be a mount although it is as what lies around it:
// a mount can be neither removed nor renamed (EBUSY). It must not be replaced, or
// something in it is held by a mount, which would move along and leave its path to a
// decoy: a profile means paths.
func (n *node) anchored() bool {
	return n.up != nil && n.cell.write && n.around().write && (n.lesser || n.fixed)
}

// A cell is what a mount can say of all that lies in it.
type cell struct {
	shown bool
	write bool
	run   running
}

// running is what becomes of programs.
type running uint8

const (
	runs    running = iota
	mapped          // execve(2) is refused, while it can be mapped as a library
	unrun           // neither: a noexec mount
	unrunIn         // unrun, for no other reason than that a directory around it runs
)

// A veiled path is one that now leads elsewhere, or nowhere: a link or a file
// stands in its way. Without that it would be another path.
type veiled struct {
	path string
	dir  string // in which the link or file is
	link bool   // the path is the link itself
}

// A probe is a thing to ask about.
type probe struct {
	path string
	kind kind
}

// below are things that stand for all that has no node in a directory.
func (c *compiler) below(dir string) []probe {
	one := join(dir, c.any)
	list := []probe{{one, regular}}
	if c.shapes {
		two := join(one, c.any)
		list = append(list, probe{one, nothing}, probe{one, directory}, probe{two, regular}, probe{two, directory})
	}
	return list
}

// shownNodes are the nodes whose contents are shown.
func (c *compiler) shownNodes(write bool) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return !n.cell.shown || write && !n.cell.write })
}

// own reports whether p lies where every sandbox has something of its own.
func own(p string) bool { return within(p, "/proc") || within(p, "/dev") }
