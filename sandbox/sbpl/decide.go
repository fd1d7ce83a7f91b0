package sbpl

import (
	"slices"

	"github.com/holdfast-dev/holdfast/seccomp"
)

// decide asks what each node's contents are to be.
func (c *compiler) decide() {
	for _, n := range c.nodes {
		var probes []probe
		switch {
		case !n.dir():
			probes = []probe{{n.path, n.kind}}
		default:
			n.list = c.ask(c.stand("file-read-data"), n.path, n.kind)
			n.look = c.ask(c.stand("file-read-metadata"), n.path, n.kind)
			probes = c.below(n.path)
		}
		n.cell = c.cellOf(probes, n)
	}
}

// all asks whether an operation is allowed for every probe. Where the probes
// differ the answer is no.
func (c *compiler) all(operation string, probes []probe) verdict {
	var of [2]*verdict // that deny, that allow
	for _, p := range probes {
		v := c.ask(c.stand(operation), p.path, p.kind)
		same := &of[0]
		if v.allow {
			same = &of[1]
		}
		switch {
		case *same == nil:
			*same = &v
		case v.rule != (*same).rule && !slices.Contains((*same).also, v.rule):
			(*same).also = append((*same).also, v.rule)
		}
	}
	if of[0] == nil {
		return *of[1]
	}
	if of[1] != nil {
		c.differ(*of[1], Narrower, "a mount cannot tell one kind of file or depth from another", operation)
	}
	return *of[0]
}

// both asks whether a path can be read: its data and its metadata.
func (c *compiler) both(p string, k kind) verdict {
	probes := []probe{{p, k}}
	if v := c.all("file-read-data", probes); !v.allow {
		return v
	}
	return c.all("file-read-metadata", probes)
}

// cellOf asks what becomes of the probes.
func (c *compiler) cellOf(probes []probe, n *node) cell {
	data, meta := c.all("file-read-data", probes), c.all("file-read-metadata", probes)
	if probes[0].kind == socket {
		data = c.ask("network-outbound", n.path, socket)
	}
	out := cell{shown: data.allow && meta.allow}
	switch {
	case data.allow && !meta.allow:
		c.differ(data, Narrower, "what may not be looked at is not there", "file-read-data")
	case meta.allow && !data.allow:
		c.differ(meta, Narrower, "what may not be read is not there", "file-read-metadata")
	}
	content := contentOps
	if !n.dir() {
		content = contentOps[:1]
	}
	var yes, no []string
	var allowed []verdict
	for _, o := range content {
		v := c.all(o, probes)
		if v.allow {
			yes, allowed = append(yes, o), append(allowed, v)
		} else {
			no = append(no, o)
		}
	}
	out.write = out.shown && len(no) == 0 && !within(n.path, "/sys")
	if !out.write {
		why := "what may be written has to be readable here"
		switch {
		case within(n.path, "/sys"):
			why = "the host's /sys can only be read"
		case out.shown:
			why = "a directory is writable for all of data, creation and removal or for none"
		}
		for i, v := range allowed {
			c.differ(v, Narrower, why, yes[i])
		}
		for _, o := range statusOps {
			if v := c.all(o, probes); v.allow {
				c.differ(v, Narrower, why, o)
			}
		}
	}
	out.run = c.running(out, probes)
	return out
}

// running decides about programs. A profile that says nothing of
// file-map-executable lets what can be read be mapped: macOS has its libraries in a
// cache that needs no mapping of files, Linux has not.
func (c *compiler) running(of cell, probes []probe) running {
	if !of.shown {
		return runs
	}
	exec := c.all("process-exec", probes)
	if exec.allow {
		if c.namesAny("file-map-executable") {
			if v := c.all("file-map-executable", probes); !v.allow {
				c.differ(v, Wider, "what may be executed can be mapped", "file-map-executable")
			}
		}
		return runs
	}
	if c.namesAny("file-map-executable") && !c.all("file-map-executable", probes).allow {
		return unrun
	}
	return mapped
}

// Commands of ioctl(2) that change a file's flags: FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR
// of include/uapi/linux/fs.h. The kernel reads 32 bits of them.
const (
	ioctlSetFlags      = 0x40086602
	ioctlSetAttributes = 0x401c5820
	ioctlMask          = 0xffffffff
)

// statuses asks, for what will be writable, about the calls that change a file's
// mode, owner, times and attributes. A mount cannot tell them from other writing;
// a filter can, but not by path.
func (c *compiler) statuses() {
	families := []struct {
		operation string
		calls     []string
		ioctls    []uint64
	}{
		{"file-write-mode", []string{"chmod", "fchmod", "fchmodat", "fchmodat2"}, nil},
		{"file-write-owner", []string{"chown", "fchown", "lchown", "fchownat"}, nil},
		{"file-write-times", []string{"utime", "utimes", "utimensat", "futimesat"}, nil},
		{"file-write-xattr", []string{"setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "removexattrat"}, nil},
		{"file-write-flags", nil, []uint64{ioctlSetFlags, ioctlSetAttributes}},
		{"file-read-xattr", []string{"getxattr", "lgetxattr", "fgetxattr", "getxattrat", "listxattr", "llistxattr", "flistxattr", "listxattrat"}, nil},
		{"file-link", []string{"link", "linkat"}, nil}, // its names would be the host's
	}
	for _, f := range families {
		var yes []verdict
		denied := false
		for _, n := range c.nodes {
			if !n.cell.shown || f.operation != "file-read-xattr" && !n.cell.write {
				continue
			}
			probes := []probe{{n.path, n.kind}}
			if n.dir() {
				probes = append(c.below(n.path), probes...)
				if c.kinds {
					probes = append(probes, c.made(join(n.path, c.any))...)
				}
			}
			if n.cell.write && n.around().write && !n.anchored() && n.cell == n.around() {
				probes = append(probes, c.instead(n)...)
			}
			if v := c.all(f.operation, probes); v.allow {
				yes = append(yes, v)
			} else {
				denied = true
			}
		}
		for _, p := range c.open() {
			denied = denied || !c.all(f.operation, c.later(p)).allow
		}
		if !denied {
			continue
		}
		why := "the profile denies " + f.operation
		if len(f.calls) > 0 {
			c.refuse(why, f.calls...)
		}
		for _, number := range f.ioctls {
			c.calls = append(c.calls, seccomp.Rule{
				Names: []string{"ioctl"}, Action: seccomp.Errno(errPerm), Reason: why,
				Args: []seccomp.Arg{{Index: 1, Op: seccomp.MaskedEqual, Mask: ioctlMask, Value: number}},
			})
		}
		for _, v := range yes {
			c.differ(v, Narrower, "it is denied elsewhere, and the filter that refuses it knows no paths", f.operation)
		}
	}
}

// open are the paths that rules name, do not exist, and can be made.
func (c *compiler) open() (paths []string) {
	add := func(dir, p string) {
		if n := c.at[dir]; n != nil && n.dir() && n.cell.write && !c.kept[p] {
			paths = append(paths, p)
		}
	}
	for _, m := range c.missing {
		add(m.path, join(m.path, m.rest))
	}
	for _, v := range c.veiled {
		add(v.dir, v.path)
	}
	return paths
}
