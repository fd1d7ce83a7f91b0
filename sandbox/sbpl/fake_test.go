package sbpl

import (
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// A fakeHost is a file system of names alone.
type fakeHost struct {
	kinds  map[string]kind
	links  map[string]string
	names  map[string][]string
	closed map[string]bool // that can be passed and not be listed
	asked  int
}

func newFakeHost(paths ...string) *fakeHost {
	h := &fakeHost{kinds: map[string]kind{"/": directory}, links: map[string]string{}, names: map[string][]string{}}
	for _, p := range paths {
		k := regular
		if target, link, ok := strings.Cut(p, " -> "); ok {
			p, k = target, symlink
			h.links[p] = link
		} else if d, ok := strings.CutSuffix(p, "/"); ok {
			p, k = d, directory
		} else if s, ok := strings.CutSuffix(p, "="); ok {
			p, k = s, socket
		}
		h.make(p, k)
	}
	return h
}

func (h *fakeHost) make(p string, k kind) {
	if h.kinds[p] != nothing {
		return
	}
	dir := path.Dir(p)
	h.make(dir, directory)
	h.kinds[p] = k
	h.names[dir] = append(h.names[dir], path.Base(p))
}

func (h *fakeHost) lstat(p string) kind      { h.asked++; return h.kinds[p] }
func (h *fakeHost) readlink(p string) string { return h.links[p] }
func (h *fakeHost) list(dir string) ([]string, bool) {
	return slices.Sorted(slices.Values(h.names[dir])), !h.closed[dir]
}
func (h *fakeHost) existing() (paths []string) {
	for p := range h.kinds {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return paths
}

// access is what a layout lets be done with a path of the host.
type access struct{ look, read, write, exec bool }

// accessOf carries a policy's layout out in mind: what is mounted last at or above
// a path is what is there. Programs are started where a mount and Landlock let
// them; Landlock adds up what all entries around grant.
func accessOf(p sandbox.Policy, at string) access {
	var a access
	granted := false
	for _, e := range p.Root.Entries {
		switch e := e.(type) {
		case rootfs.Bind:
			if within(at, e.At) {
				granted = granted || !e.NoExecve
				a = access{look: true, read: true, write: e.Write, exec: !e.NoExec}
			}
		case rootfs.Tmpfs:
			if within(at, e.At) {
				a = access{look: at == e.At, read: at == e.At && e.Mode != rootfs.NoAccess && e.Mode&0o444 != 0}
			}
		case rootfs.DataBind:
			if at == e.At {
				a = access{look: true}
			}
		case rootfs.Dir:
			if at == e.At {
				a = access{look: true, read: true}
			}
		case rootfs.Chmod:
			if at == e.At && !a.write && !a.exec {
				a = access{look: true, read: e.Mode != rootfs.NoAccess && e.Mode&0o444 != 0}
			}
		}
		if under, ok := placeOf(e); ok && under != at && within(under, at) && !a.look {
			a = access{look: true, read: true} // made on the way to it
		}
	}
	a.exec = a.exec && granted && a.read
	if a.write {
		for _, n := range p.Files.Protect.Add {
			a.write = a.write && !hasName(at, n)
		}
	}
	for _, n := range p.Files.HideNames {
		if hasName(at, n) && a.look {
			a.read, a.write, a.exec = false, false, false
		}
	}
	return a
}

func placeOf(e rootfs.Entry) (string, bool) {
	switch e := e.(type) {
	case rootfs.Bind:
		return e.At, true
	case rootfs.Tmpfs:
		return e.At, true
	case rootfs.Symlink:
		return e.At, true
	case rootfs.Dir:
		return e.At, true
	}
	return "", false
}

// hasName reports whether the guard would know a path by a name.
func hasName(at, name string) bool {
	parts, want := strings.Split(strings.ToLower(at), "/")[1:], strings.Split(strings.ToLower(name), "/")
	for i := 0; i+len(want) <= len(parts); i++ {
		if slices.EqualFunc(parts[i:i+len(want)], want, func(a, b string) bool {
			stem, any := strings.CutSuffix(b, "*")
			return a == b || any && strings.HasPrefix(a, stem)
		}) {
			return true
		}
	}
	return false
}

// mounted reports whether something is mounted at a path, which then cannot be removed.
func mounted(p sandbox.Policy, at string) bool {
	return slices.ContainsFunc(p.Root.Entries, func(e rootfs.Entry) bool {
		where, ok := placeOf(e)
		return ok && where == at
	})
}
