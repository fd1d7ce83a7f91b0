package inside

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// maxMatched is how many bytes the names have that match a pattern, or the directories on its way.
const maxMatched = 64 << 20

// Glob is [filepath.Glob], but for what could not be looked at since there was no answer, which is an error. To read more than 1,048,576 directories and
// entries for it is one that wraps [syscall.EFBIG], and so are matches of more than 64 MiB.
//
// A component "**" stands for any number of directories, also none, and at the end for all that lies below; such a pattern follows no symbolic links.
func (f *Files) Glob(pattern string) ([]string, error) {
	if slices.Contains(strings.Split(pattern, "/"), "**") {
		if _, err := path.Match(pattern, ""); err != nil {
			return nil, err
		}
		return f.deep(pattern)
	}
	rest, absolute := strings.CutPrefix(filepath.Clean(pattern), "/")
	if !absolute {
		return tree{files: f.here()}.Glob(rest)
	}
	list, err := tree{files: f, dir: "/"}.Glob(rest)
	for i, name := range list {
		list[i] = "/" + strings.TrimPrefix(name, "./")
	}
	return list, err
}

// glob is [fs.Glob], which bounds nothing: the links of a tool may lead round and round, and what matches is held.
func (t tree) glob(pattern string, most, bytes int) ([]string, error) {
	g := &globbed{t, strings.Split(path.Clean(pattern), "/"), most, bytes, nil}
	list, err := fs.Glob(g, pattern)
	if g.failed != nil {
		return nil, pathError("glob", pattern, g.failed)
	}
	return list, err
}

// A globbed is a tree that a pattern is looked for in. Its first failure is kept, and ends the rest, since fs.Glob takes one for no match.
type globbed struct {
	in     tree
	parts  []string // of the pattern
	left   int      // directories and entries that may be read
	room   int      // bytes that names which match may have
	failed error
}

func (g *globbed) Open(name string) (fs.File, error) { return g.in.Open(name) }

func (g *globbed) Stat(name string) (fs.FileInfo, error) {
	if g.failed != nil {
		return nil, g.failed
	}
	info, err := g.in.Stat(name)
	g.failed = unanswered(err)
	return info, err
}

// ReadDir reads a directory, of whose entries as many parts of the pattern decide as its name has.
func (g *globbed) ReadDir(dir string) ([]fs.DirEntry, error) {
	if g.failed != nil {
		return nil, g.failed
	}
	list, err := g.in.ReadDir(dir)
	if err != nil {
		g.failed = unanswered(err)
		return nil, err
	}
	g.left -= 1 + len(list)
	depth := 0
	if dir != "." {
		depth = 1 + strings.Count(dir, "/")
	}
	for _, e := range list {
		if is, _ := path.Match(g.parts[min(depth, len(g.parts)-1)], e.Name()); is {
			g.room -= len(path.Join(dir, e.Name()))
		}
	}
	if g.left < 0 || g.room < 0 {
		g.failed = syscall.EFBIG
	}
	return list, g.failed
}

// unanswered returns an error that does not say that a name leads nowhere, or where the tools may not look either; else nil.
func unanswered(err error) error {
	for _, is := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.ENXIO, syscall.EINVAL, ErrNotRegular} {
		if errors.Is(err, is) {
			return nil
		}
	}
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err // Glob's own has the pattern
	}
	return err
}
