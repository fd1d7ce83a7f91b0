package sbpl

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// A kind is what a path leads to, in the words of the vnode-type filter.
type kind string

const (
	nothing   kind = ""
	directory kind = "DIRECTORY"
	regular   kind = "REGULAR-FILE"
	symlink   kind = "SYMLINK"
	socket    kind = "SOCKET"
	fifo      kind = "FIFO"
	charDev   kind = "CHARACTER-DEVICE"
	blockDev  kind = "BLOCK-DEVICE"
)

// A host is the file system that a policy is made for.
type host interface {
	lstat(p string) kind // nothing: it does not exist, or cannot be reached
	readlink(p string) string
	list(dir string) (names []string, all bool) // not all: it can be passed and not be listed
}

// thisHost is the machine's own.
type thisHost struct{}

func (thisHost) lstat(p string) kind {
	info, err := os.Lstat(p)
	if err != nil {
		return nothing
	}
	switch m := info.Mode(); {
	case m.IsDir():
		return directory
	case m&fs.ModeSymlink != 0:
		return symlink
	case m&fs.ModeSocket != 0:
		return socket
	case m&fs.ModeNamedPipe != 0:
		return fifo
	case m&fs.ModeCharDevice != 0:
		return charDev
	case m&fs.ModeDevice != 0:
		return blockDev
	}
	return regular
}

func (thisHost) readlink(p string) string {
	target, err := os.Readlink(p)
	if err != nil {
		return ""
	}
	return target
}

func (thisHost) list(dir string) (names []string, all bool) {
	d, err := os.Open(dir)
	if err != nil {
		_, err := os.Lstat(dir + "/.") // what cannot be passed hides nothing that could be reached
		return nil, err != nil
	}
	defer d.Close()
	names, err = d.Readdirnames(-1)
	slices.Sort(names)
	return names, err == nil
}

// A place is what a path leads to: where, and by which links. Of a path that
// leads nowhere, path is as far as names exist, and rest what follows.
type place struct {
	path  string
	kind  kind
	rest  string // without a slash before it; "": it exists
	links []string
}

// A finder follows links of a host, each path once.
type finder struct {
	host  host
	kinds map[string]kind
}

func newFinder(h host) *finder { return &finder{host: h, kinds: map[string]kind{"/": directory}} }

func (f *finder) lstat(p string) kind {
	k, known := f.kinds[p]
	if !known {
		k = f.host.lstat(p)
		f.kinds[p] = k
	}
	return k
}

// maxLinks is MAXSYMLINKS of include/linux/namei.h.
const maxLinks = 40

// find follows p, absolute and clean.
func (f *finder) find(p string) place {
	at, todo := place{path: "/", kind: directory}, strings.TrimPrefix(p, "/")
	for todo != "" {
		name, rest, _ := strings.Cut(todo, "/")
		switch {
		case name == "" || name == ".":
			todo = rest
			continue
		case name == "..":
			at.path, at.kind, todo = path.Dir(at.path), directory, rest
			continue
		}
		next := join(at.path, name)
		k := nothing
		if at.kind == directory {
			k = f.lstat(next)
		}
		switch {
		case k == nothing:
			at.rest = path.Clean(todo)
			return at
		case k != symlink:
			at.path, at.kind, todo = next, k, rest
			continue
		}
		at.links = append(at.links, next)
		target := f.host.readlink(next)
		if len(at.links) > maxLinks || target == "" {
			at.rest = path.Clean(todo)
			return at
		}
		if target[0] == '/' {
			at.path, at.kind = "/", directory
		}
		todo = strings.Trim(target, "/") + "/" + rest
	}
	return at
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

// within reports whether p is dir or lies below it.
func within(p, dir string) bool {
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || dir == "/" || p[len(dir)] == '/')
}

// absolute reports whether p is a path that a rule can mean.
func absolute(p string) bool {
	return len(p) > 0 && len(p) < 4096 && p[0] == '/' && !strings.ContainsRune(p, 0) && path.Clean(p) == p
}
