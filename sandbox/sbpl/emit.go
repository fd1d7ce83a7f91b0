package sbpl

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// emit makes the layout's entries of the nodes' cells, a directory before what
// lies in it.
func (c *compiler) emit() {
	for _, n := range slices.Backward(c.nodes) {
		if n.up != nil && (n.holds || n.there()) {
			n.up.holds = true
		}
		n.fixed = c.fixed(n)
		if n.up != nil && (n.lesser || n.fixed || !n.cell.write || n.cell.run != runs) {
			n.up.lesser = true
		}
	}
	c.wanted()
	for _, n := range c.nodes {
		c.confine(n)
		c.place(n)
		if n.up == nil {
			c.floor(n)
		}
	}
	for _, l := range sorted(c.links) {
		c.put(rootfs.Symlink{At: l, Target: c.find.host.readlink(l)})
	}
	if c.loaders {
		c.loader()
	}
	c.policy.Root.Entries = slices.Concat(c.policy.Root.Entries, c.modes, c.seals)
}

func (c *compiler) put(e rootfs.Entry) { c.policy.Root.Entries = append(c.policy.Root.Entries, e) }

// confine takes back what a cell could not have where the one around it is.
// Landlock adds up what its rules grant, so that execve(2) cannot be refused by
// it in a directory where it is granted around: there no mapping is possible either.
func (c *compiler) confine(n *node) {
	around := n.up != nil && n.up.granted
	if n.cell.run == mapped && around {
		n.cell.run = unrunIn
		probes := []probe{{n.path, n.kind}}
		if n.dir() {
			probes = c.below(n.path)
		}
		if v := c.all("file-map-executable", probes); v.allow {
			c.differ(v, Narrower, "what may not be executed, in a directory where programs may, cannot be mapped either", "file-map-executable")
		}
	}
	n.granted = around || n.cell.shown && n.cell.run == runs
	if n.cell.run == mapped {
		c.loaders = true
	}
}

// place puts one node into the root, if it is to be something else than the
// directory around it makes it.
func (c *compiler) place(n *node) {
	around := n.around()
	switch {
	case own(n.path) && n.path != "/dev" && n.cell.shown && c.device(n.path):
		c.put(rootfs.Bind{Source: n.path, At: n.path, Write: n.cell.write, Devices: true})
	case own(n.path):
	case n.cell.shown && (n.cell != around || n.anchored()):
		c.put(rootfs.Bind{Source: n.path, At: n.path, Write: n.cell.write, NoExec: n.cell.run >= unrun, NoExecve: n.cell.run != runs})
	case n.cell.shown:
	case around.shown:
		c.mask(n)
	case n.dir():
		c.skeleton(n)
	}
	c.fifos(n)
	c.compareSelf(n)
}

// mask covers what lies in a directory that is shown.
func (c *compiler) mask(n *node) {
	if !n.dir() {
		c.put(rootfs.DataBind{At: n.path, Mode: rootfs.NoAccess})
		return
	}
	c.put(rootfs.Tmpfs{At: n.path, Mode: n.standInMode(), NoExec: true})
	c.seals = append(c.seals, rootfs.RemountReadOnly{At: n.path})
}

// standInMode lets a directory of ours be listed if the profile lets the real one
// be, and be passed if there is something to pass to.
func (n *node) standInMode() fs.FileMode {
	mode := fs.FileMode(0)
	if n.holds || n.list.allow {
		mode |= 0o111
	}
	if n.list.allow {
		mode |= 0o444
	}
	if mode == 0 {
		return rootfs.NoAccess
	}
	return mode
}

// there reports whether n has something to be there for itself.
func (n *node) there() bool { return n.cell.shown || n.list.allow || n.look.allow }

// skeleton is a directory that leads to what is shown, or may be listed itself.
func (c *compiler) skeleton(n *node) {
	if !n.holds && !n.there() || n.up == nil {
		return
	}
	if !n.holds {
		c.put(rootfs.Dir{At: n.path, Mode: 0o755})
	}
	if mode := n.standInMode(); mode != 0o555 || !n.holds {
		c.modes = append(c.modes, rootfs.Chmod{At: n.path, Mode: mode})
	}
}

// floor is what every sandbox has, whatever the profile says.
func (c *compiler) floor(root *node) {
	c.put(rootfs.Proc{At: "/proc"})
	c.put(rootfs.Dev{At: "/dev"})
	if v := c.ask("process-exec", "/dev/shm/"+c.any, regular); !v.allow {
		c.put(rootfs.Tmpfs{At: "/dev/shm", Mode: fs.ModeSticky | 0o777, NoExec: true})
	}
	if !root.cell.shown {
		if !root.list.allow {
			c.modes = append(c.modes, rootfs.Chmod{At: "/", Mode: 0o111})
		}
		c.seals = append(c.seals, rootfs.RemountReadOnly{At: "/"})
	}
}

// wanted finds the links that are made again: those of the host's root directory,
// and those that rules lead through, whose targets are shown. A link grants nothing.
func (c *compiler) wanted() {
	add := func(l string) {
		dir := path.Dir(l)
		if own(l) || c.cellAt(dir).shown || c.at[l] != nil {
			return
		}
		c.links[l] = true
		for n := c.at[dir]; n != nil; n = n.up {
			n.holds = true
		}
	}
	if !c.at["/"].cell.shown {
		names, _ := c.find.host.list("/")
		for _, name := range names {
			if p := join("/", name); c.find.lstat(p) == symlink {
				if at := c.find.find(p); at.rest == "" && c.shows(at.path) {
					add(p)
				}
			}
		}
	}
	for _, p := range c.crooked {
		if c.shows(p.path) {
			for _, l := range p.links {
				add(l)
			}
		}
	}
}

// shows reports whether p is, inside, what it is on the host, or leads there.
func (c *compiler) shows(p string) bool {
	if n := c.at[p]; n != nil && n.holds {
		return true
	}
	return c.cellAt(p).shown
}

// cellAt is the cell of p, or of what p lies in.
func (c *compiler) cellAt(p string) cell {
	for ; ; p = path.Dir(p) {
		if n := c.at[p]; n != nil {
			return n.cell
		}
	}
}

// compareSelf notes where a directory itself cannot have what the profile says of
// it, because its contents have another.
func (c *compiler) compareSelf(n *node) {
	if own(n.path) {
		return
	}
	if !n.dir() {
		c.compareFile(n)
		return
	}
	look := n.look
	if !n.cell.shown {
		if look.allow {
			c.differ(look, Narrower, "of a directory whose contents cannot be read a stand-in is seen", "file-read-metadata")
		}
		if n.list.allow {
			c.differ(n.list, Narrower, "a directory whose contents cannot be read lists what exists inside", "file-read-data")
		}
		if !look.allow && (n.up == nil || n.holds || n.there() || n.around().shown) {
			c.differ(look, Own, standIn, "file-read-metadata")
		}
		return
	}
	if gone := c.ask(c.stand("file-write-unlink"), n.path, n.kind); gone.allow && n.around().write && (n.cell != n.around() || n.lesser || n.fixed) {
		c.differ(gone, Narrower, isMount, "file-write-unlink", "file-write-create")
	}
	if !n.list.allow {
		c.differ(n.list, Wider, "a directory whose contents are shown can be listed", "file-read-data")
	}
	if !look.allow {
		c.differ(look, Wider, "a directory whose contents are shown can be looked at", "file-read-metadata")
	}
	for _, o := range statusOps {
		self := c.ask(c.stand(o), n.path, n.kind)
		switch {
		case self.allow && !n.cell.write:
			c.differ(self, Narrower, "a directory whose contents cannot be written is not writable itself", o)
		}
	}
}

const isMount = "what is not as what lies around it is a mount: it can be neither removed nor replaced"

// standIn is the difference of what covers something, or leads to something.
const standIn = "something empty of the sandbox's own stands where the host's is hidden, or on the way to what is shown"

// compareFile notes that a file which is a mount cannot be removed.
func (c *compiler) compareFile(n *node) {
	look := c.ask(c.stand("file-read-metadata"), n.path, n.kind)
	if !n.cell.shown && n.around().shown && !look.allow {
		c.differ(look, Own, standIn, "file-read-metadata")
	}
	if !n.cell.shown || n.cell == n.around() && !n.anchored() {
		return
	}
	for _, o := range contentOps[1:] {
		if v := c.ask(c.stand(o), n.path, n.kind); v.allow {
			c.differ(v, Narrower, isMount, o)
		}
	}
}

// loader lets the dynamic loader be executed, where not everything is that can be
// mapped: the kernel opens it for each execve(2) as it does the program.
func (c *compiler) loader() {
	for _, p := range loaders {
		at := c.find.find(p)
		if at.rest != "" || at.kind != regular || !c.shows(at.path) {
			continue
		}
		c.put(rootfs.Bind{Source: at.path, At: at.path})
		v := c.ask("process-exec", at.path, regular)
		if !v.allow {
			c.differ(v, Wider, "the dynamic loader has to be executable, and can run what may be read and mapped", "process-exec", "process-exec-interpreter")
		}
	}
}

var loaders = []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"}

func sorted[V any](set map[string]V) []string {
	list := make([]string, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	slices.SortFunc(list, strings.Compare)
	return list
}
