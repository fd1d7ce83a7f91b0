package resolve

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

// absent is the mode of what is not on the host.
const absent fs.FileMode = fs.ModeIrregular

// addLate takes a rule of Private or Hide, whose path need not exist.
func (r *Resolver) addLate(u Rule) error {
	at, mode, err := r.settle(u.Asked)
	if err != nil {
		return u.cannot(err)
	}
	u.Path, u.Dir, u.Absent = at, mode.IsDir(), mode == absent
	if u.Kind == pathrule.Hide && u.Absent && strings.ContainsAny(u.Asked, "*?[{") {
		return u.cannot(fs.ErrNotExist)
	}
	if dir := path.Dir(u.Path); u.Kind == pathrule.Hide {
		if _, known := r.ids[dir]; !known {
			r.ids[dir] = idOf(dir)
		}
		u.In = r.ids[dir]
	}
	if u.Kind == pathrule.Private {
		if !u.Dir && !u.Absent {
			return u.bad("is a file", "name a directory", syscall.ENOTDIR)
		}
		u.Dir = true
	}
	return r.Put(u)
}

// addMake takes a file that exists inside only. Its own name is not followed:
// what the host has there does not matter.
func (r *Resolver) addMake(u Rule) error {
	dir, mode, err := r.settle(path.Dir(u.Asked))
	if err != nil {
		return u.cannot(err)
	}
	if mode != absent && !mode.IsDir() {
		return u.bad("lies below a file", "put it in a Private directory", syscall.ENOTDIR)
	}
	u.Path, u.Absent = pathrule.Join(dir, path.Base(u.Asked)), true
	if target, isLink := r.Links[u.Path]; isLink {
		return u.bad("is a symbolic link inside, to "+target, "name its target", nil)
	}
	return r.Put(u)
}

// settle follows p as far as its names exist on the host, and takes the rest as
// it is written. The mode is absent if there is a rest.
func (r *Resolver) settle(p string) (string, fs.FileMode, error) {
	found := r.Find(p)
	if !errors.Is(found.Err, fs.ErrNotExist) {
		return found.Path, found.Mode, found.Err
	}
	dir, mode, err := r.settle(path.Dir(p))
	if err != nil {
		return "", 0, err
	}
	if mode != absent && !mode.IsDir() {
		return "", 0, syscall.ENOTDIR
	}
	at := pathrule.Join(dir, path.Base(p))
	if _, isLink := r.Links[at]; isLink {
		return "", 0, errDangling
	}
	return at, absent, nil
}

var errDangling = errors.New("a symbolic link that leads nowhere")

// Tree puts the rules in the order of the tree, judges each by the one around
// it, and leaves out what says nothing new.
func (r *Resolver) Tree(links map[string]string) (Tree, error) {
	rules := slices.SortedFunc(maps.Values(r.Rules), func(a, b Rule) int { return pathrule.TreeOrder(a.Path, b.Path) })
	var out Tree
	var around []Entry // the entries that contain the present path, outermost first
	for i := range rules {
		u := &rules[i]
		for len(around) > 0 && !pathrule.Within(u.Path, around[len(around)-1].Path) {
			around = around[:len(around)-1]
		}
		keep, err := u.judge(around)
		if err != nil {
			return Tree{}, err
		}
		if keep {
			if u.Kind == pathrule.CopyOnWrite {
				u.Own = ownBelow(u.Path)
			}
			out.Entries = append(out.Entries, u.Entry)
			around = append(around, u.Entry)
		}
	}
	out.Links = linksOutside(links, out.Entries)
	return out, nil
}

// judge says whether u changes anything inside the entries around it, or cannot
// hold there.
func (u *Rule) judge(around []Entry) (keep bool, err error) {
	if len(around) == 0 {
		return u.Kind != pathrule.Hide, nil // nothing is shown there that could be hidden
	}
	outer := around[len(around)-1]
	if !outer.Dir && u.Kind != pathrule.Hide {
		return false, u.bad("lies below "+outer.Path+", which is a file inside", "remove one of the two", syscall.ENOTDIR)
	}
	shown := outer.Kind == pathrule.Read || outer.Kind == pathrule.Write || outer.Kind == pathrule.CopyOnWrite
	switch u.Kind {
	case pathrule.Make:
		if shown {
			return false, u.bad("lies in "+outer.Path+", which is the host's", "put it in a Private directory", nil)
		}
		return true, nil
	case pathrule.Private:
		if shown && u.Absent {
			return false, u.bad("does not exist, and lies in "+outer.Path+", which is the host's", "make it first", fs.ErrNotExist)
		}
		return true, nil // even in a private directory, where it would not exist otherwise
	case pathrule.Hide:
		if u.Absent && (outer.Kind == pathrule.Write || outer.Kind == pathrule.CopyOnWrite) {
			return false, u.bad("does not exist, and can be made inside "+outer.Path, "use HideNames, or Protect.Add", fs.ErrNotExist)
		}
		return shown && !u.Absent, nil
	case pathrule.Socket:
		u.Shown = outer.Kind == pathrule.Read || outer.Kind == pathrule.Write // an overlay's sockets are others
		return true, nil
	}
	return u.Kind != outer.Kind, nil
}

// linksOutside returns the links that no entry brings along.
func linksOutside(links map[string]string, entries []Entry) []Link {
	var out []Link
	i := 0
	var around []Entry
	for _, p := range slices.SortedFunc(maps.Keys(links), pathrule.TreeOrder) {
		for ; i < len(entries) && pathrule.TreeOrder(entries[i].Path, p) < 0; i++ {
			around = append(enclosing(around, entries[i].Path), entries[i])
		}
		around = enclosing(around, p)
		if n := len(around); n > 0 {
			if k := around[n-1].Kind; k == pathrule.Read || k == pathrule.Write || k == pathrule.CopyOnWrite {
				continue
			}
		}
		out = append(out, Link{p, links[p]})
	}
	return out
}

// enclosing drops from a chain of nested entries those that do not contain p.
func enclosing(chain []Entry, p string) []Entry {
	for len(chain) > 0 && !pathrule.Within(p, chain[len(chain)-1].Path) {
		chain = chain[:len(chain)-1]
	}
	return chain
}

// checkLinks refuses a rule that leads through a symbolic link in a writable
// tree: a tool may have put it there, to be granted its target by the next
// sandbox (as in CVE-2025-59532). A rule of Hide grants nothing.
func (r *Resolver) checkLinks(links map[string]string) error {
	for at := range links {
		for _, tree := range r.Rules {
			if tree.Kind != pathrule.Write || !tree.Dir || at == tree.Path || !pathrule.Within(at, tree.Path) {
				continue
			}
			for _, u := range r.Rules {
				trace := New()
				trace.Find(u.Asked)
				if _, met := trace.Links[at]; met && u.Kind != pathrule.Hide {
					return u.bad("leads through the symbolic link "+at+", which a tool can change", "name the target", nil)
				}
			}
		}
	}
	return nil
}

// Find returns the entry at exactly p. Entries are in the tree's order.
func (l Tree) Find(p string) (Entry, bool) {
	i, ok := slices.BinarySearchFunc(l.Entries, p, func(e Entry, p string) int { return pathrule.TreeOrder(e.Path, p) })
	if !ok {
		return Entry{}, false
	}
	return l.Entries[i], true
}

// Around returns the entry that decides about p, which is free of links: the deepest one at p or around it.
func (l Tree) Around(p string) (Entry, bool) {
	for dir := p; ; dir = path.Dir(dir) {
		if e, ok := l.Find(dir); ok && (e.Dir || dir == p) {
			return e, true
		}
		if dir == "/" {
			return Entry{}, false
		}
	}
}
