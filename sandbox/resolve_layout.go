package sandbox

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// absent is the mode of what is not on the host.
const absent fs.FileMode = fs.ModeIrregular

// addLate takes a rule of Private or Hide, whose path need not exist.
func (r *resolver) addLate(u rule) error {
	at, mode, err := r.settle(u.asked)
	if err != nil {
		return u.cannot(err)
	}
	u.path, u.dir, u.absent = at, mode.IsDir(), mode == absent
	if u.kind == pathrule.Private {
		if !u.dir && !u.absent {
			return u.bad("is a file", "name a directory", syscall.ENOTDIR)
		}
		u.dir = true
	}
	return r.put(u)
}

// addMake takes a file that exists inside only. Its own name is not followed:
// what the host has there does not matter.
func (r *resolver) addMake(u rule) error {
	dir, mode, err := r.settle(path.Dir(u.asked))
	if err != nil {
		return u.cannot(err)
	}
	if mode != absent && !mode.IsDir() {
		return u.bad("lies below a file", "put it in a Private directory", syscall.ENOTDIR)
	}
	u.path, u.absent = pathrule.Join(dir, path.Base(u.asked)), true
	if target, isLink := r.links[u.path]; isLink {
		return u.bad("is a symbolic link inside, to "+target, "name its target", nil)
	}
	return r.put(u)
}

// settle follows p as far as its names exist on the host, and takes the rest as
// it is written. The mode is absent if there is a rest.
func (r *resolver) settle(p string) (string, fs.FileMode, error) {
	found := r.find(p)
	if !errors.Is(found.err, fs.ErrNotExist) {
		return found.path, found.mode, found.err
	}
	dir, mode, err := r.settle(path.Dir(p))
	if err != nil {
		return "", 0, err
	}
	if mode != absent && !mode.IsDir() {
		return "", 0, syscall.ENOTDIR
	}
	at := pathrule.Join(dir, path.Base(p))
	if _, isLink := r.links[at]; isLink {
		return "", 0, errDangling
	}
	return at, absent, nil
}

var errDangling = errors.New("a symbolic link that leads nowhere")

// layout puts the rules in the order of the tree, judges each by the one around
// it, and leaves out what says nothing new.
func (r *resolver) layout(links map[string]string) (layout, error) {
	rules := slices.SortedFunc(maps.Values(r.rules), func(a, b rule) int { return pathrule.TreeOrder(a.path, b.path) })
	var out layout
	var around []entry // the entries that contain the present path, outermost first
	for i := range rules {
		u := &rules[i]
		for len(around) > 0 && !pathrule.Within(u.path, around[len(around)-1].path) {
			around = around[:len(around)-1]
		}
		keep, err := u.judge(around)
		if err != nil {
			return layout{}, err
		}
		if keep {
			out.entries = append(out.entries, u.entry)
			around = append(around, u.entry)
		}
	}
	out.links = linksOutside(links, out.entries)
	return out, nil
}

// judge says whether u changes anything inside the entries around it, or cannot
// hold there.
func (u *rule) judge(around []entry) (keep bool, err error) {
	if len(around) == 0 {
		return u.kind != pathrule.Hide, nil // nothing is shown there that could be hidden
	}
	outer := around[len(around)-1]
	if !outer.dir && u.kind != pathrule.Hide {
		return false, u.bad("lies below "+outer.path+", which is a file inside", "remove one of the two", syscall.ENOTDIR)
	}
	shown := outer.kind == pathrule.Read || outer.kind == pathrule.Write || outer.kind == pathrule.CopyOnWrite
	switch u.kind {
	case pathrule.Make:
		if shown {
			return false, u.bad("lies in "+outer.path+", which is the host's", "put it in a Private directory", nil)
		}
		return true, nil
	case pathrule.Private:
		if shown && u.absent {
			return false, u.bad("does not exist, and lies in "+outer.path+", which is the host's", "make it first", fs.ErrNotExist)
		}
		return true, nil // even in a private directory, where it would not exist otherwise
	case pathrule.Hide:
		if u.absent && (outer.kind == pathrule.Write || outer.kind == pathrule.CopyOnWrite) {
			return false, u.bad("does not exist, and can be made inside "+outer.path, "use HideNames, or Protect.Add", fs.ErrNotExist)
		}
		return shown && !u.absent, nil
	case pathrule.Socket:
		u.shown = outer.kind == pathrule.Read || outer.kind == pathrule.Write // an overlay's sockets are others
		return true, nil
	}
	return u.kind != outer.kind, nil
}

// linksOutside returns the links that no entry brings along.
func linksOutside(links map[string]string, entries []entry) []link {
	var out []link
	i := 0
	var around []entry
	for _, p := range slices.SortedFunc(maps.Keys(links), pathrule.TreeOrder) {
		for ; i < len(entries) && pathrule.TreeOrder(entries[i].path, p) < 0; i++ {
			around = append(enclosing(around, entries[i].path), entries[i])
		}
		around = enclosing(around, p)
		if n := len(around); n > 0 {
			if k := around[n-1].kind; k == pathrule.Read || k == pathrule.Write || k == pathrule.CopyOnWrite {
				continue
			}
		}
		out = append(out, link{p, links[p]})
	}
	return out
}

// enclosing drops from a chain of nested entries those that do not contain p.
func enclosing(chain []entry, p string) []entry {
	for len(chain) > 0 && !pathrule.Within(p, chain[len(chain)-1].path) {
		chain = chain[:len(chain)-1]
	}
	return chain
}

// checkLinks refuses a rule that leads through a symbolic link in a writable
// tree: a tool may have put it there, to be granted its target by the next
// sandbox (as in CVE-2025-59532). A rule of Hide grants nothing.
func (r *resolver) checkLinks(links map[string]string) error {
	for at := range links {
		for _, tree := range r.rules {
			if tree.kind != pathrule.Write || !tree.dir || at == tree.path || !pathrule.Within(at, tree.path) {
				continue
			}
			for _, u := range r.rules {
				trace := newResolver()
				trace.find(u.asked)
				if _, met := trace.links[at]; met && u.kind != pathrule.Hide {
					return u.bad("leads through the symbolic link "+at+", which a tool can change", "name the target", nil)
				}
			}
		}
	}
	return nil
}

// find returns the entry at exactly p. Entries are in the tree's order.
func (l layout) find(p string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(l.entries, p, func(e entry, p string) int { return pathrule.TreeOrder(e.path, p) })
	if !ok {
		return entry{}, false
	}
	return l.entries[i], true
}
