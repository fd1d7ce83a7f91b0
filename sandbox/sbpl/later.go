package sbpl

import (
	"slices"

	"github.com/holdfast-dev/holdfast/seccomp"
)

// What a profile denies of things that do not exist yet is found out like the rest,
// by asking: about each kind of thing that a tool could make at a path, and about
// what would lie in it. Where something of that is denied the name itself cannot be
// made (see guard), or what has it now cannot be replaced (see fixed).

// laterOps are the operations that are held by path.
var laterOps = []string{"file-read-data", "file-read-metadata", "file-write-data", "file-write-create", "file-write-unlink", "process-exec", "file-map-executable"}

// grants reports whether a cell lets an operation be done with what it has.
func (of cell) grants(operation string) bool {
	switch operation {
	case "file-read-data", "file-read-metadata":
		return of.shown
	case "process-exec":
		return of.shown && of.run == runs
	case "file-map-executable":
		return of.shown && of.run < unrun
	}
	return of.write
}

// made are the things that a tool could make at a path. Only a filter of kinds tells
// them apart.
func (c *compiler) made(p string) []probe {
	if !c.kinds {
		return []probe{{p, regular}}
	}
	return []probe{{p, regular}, {p, directory}, {p, symlink}, {p, fifo}, {p, socket}}
}

// later are the things that a tool could make at a path and in it.
func (c *compiler) later(p string) []probe {
	list := append(c.made(p), c.below(p)...)
	if c.kinds {
		list = append(list, c.made(join(p, c.any))...)
	}
	return list
}

// A refusal is a verdict that denies, and about which operation.
type refusal struct {
	operation string
	verdict
}

// refusals are the operations that a cell would let be done with some of the probes
// and that the profile denies.
func (c *compiler) refusals(probes []probe, in cell) (list []refusal) {
	asked := map[string]bool{}
	for _, o := range laterOps {
		if !in.grants(o) || asked[c.stand(o)] || o == "file-map-executable" && !c.named[o] {
			continue
		}
		asked[c.stand(o)] = true
		no := refusal{operation: o}
		for _, p := range probes {
			if v := c.ask(c.stand(o), p.path, p.kind); v.allow {
				continue
			} else if no.also == nil {
				no.verdict = verdict{rule: v.rule, also: []int{v.rule}}
			} else if !slices.Contains(no.also, v.rule) {
				no.also = append(no.also, v.rule)
			}
		}
		if no.also != nil {
			list = append(list, no)
		}
	}
	return list
}

// fixed reports whether n must not be replaced: the profile denies that, or
// something of what could be put in its place.
func (c *compiler) fixed(n *node) bool {
	if n.up == nil || own(n.path) || !n.cell.write || !n.around().write {
		return false
	}
	if !c.ask(c.stand("file-write-unlink"), n.path, n.kind).allow {
		return true
	}
	return len(c.refusals(c.instead(n), n.around())) > 0
}

// instead are the things that a tool could put in the place of n, and in them.
func (c *compiler) instead(n *node) []probe {
	if n.dir() {
		return c.made(n.path) // of what is in it the cell was asked
	}
	return c.later(n.path)
}

// Kinds of files that a system call makes, by the mode that mknod(2) gets.
const (
	modeMask   = 0xf000 // S_IFMT
	modeFifo   = 0x1000
	modeSocket = 0xc000
)

// kindsLater asks, for each directory, about the kinds of things that its cell is
// not asked about. The calls that make one can be refused, but nowhere alone, and one
// that exists can be moved.
func (c *compiler) kindsLater() {
	if !c.kinds {
		return
	}
	for _, k := range []kind{symlink, fifo, socket, charDev, blockDev} {
		refused := false
		for _, n := range c.shownNodes(false) {
			if !n.dir() {
				continue
			}
			for _, no := range c.refusals([]probe{{join(n.path, c.any), k}}, n.cell) {
				ops := c.standing(no.operation)
				if i := slices.Index(ops, "file-write-create"); i >= 0 && k != charDev && k != blockDev {
					refused = true
					c.differ(no.verdict, Wider, "one that exists can be moved, and a local socket be bound", ops[i])
					ops = slices.Delete(ops, i, i+1)
				}
				c.differ(no.verdict, Wider, "a mount cannot tell one kind of file from another", ops...)
			}
		}
		if refused {
			c.refuseKind(k)
		}
	}
}

// standing are the operations that an answer to one is the answer to.
func (c *compiler) standing(operation string) (all []string) {
	for _, o := range slices.Concat(readOps, writeOps, laterOps[5:]) {
		if c.stand(o) == c.stand(operation) {
			all = append(all, o)
		}
	}
	return all
}

// refuseKind refuses the calls that make a kind of file.
func (c *compiler) refuseKind(k kind) {
	why := "the profile denies that a " + string(k) + " be made"
	modes := map[kind]uint64{fifo: modeFifo, socket: modeSocket}
	if k == symlink {
		c.refuse(why, "symlink", "symlinkat")
	} else {
		for i, call := range []string{"mknod", "mknodat"} {
			c.calls = append(c.calls, seccomp.Rule{
				Names: []string{call}, Action: seccomp.Errno(errPerm), Reason: why,
				Args: []seccomp.Arg{{Index: uint8(1 + i), Op: seccomp.MaskedEqual, Mask: modeMask, Value: modes[k]}},
			})
		}
	}
	for _, n := range c.shownNodes(true) {
		if v := c.ask(c.stand("file-write-create"), join(n.path, c.any), k); n.dir() && v.allow {
			c.differ(v, Narrower, "it is denied elsewhere, and the filter that refuses it knows no paths", "file-write-create")
		}
	}
}
