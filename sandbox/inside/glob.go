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
		return tree{f.here(), ""}.glob(rest, maxEntries, maxMatched)
	}
	list, err := tree{f, "/"}.glob(rest, maxEntries, maxMatched)
	for i, name := range list {
		list[i] = "/" + strings.TrimPrefix(name, "./")
	}
	return list, err
}

// A globbed is a tree in which a pattern is looked for, as [fs.Glob] does, which bounds nothing: the links of a tool may lead round and round, and what
// matches is held.
type globbed struct {
	tree
	left int // directories and entries that may be read
	room int // bytes that names may have
}

func (t tree) glob(pattern string, most, bytes int) ([]string, error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	g := &globbed{tree: t, left: most, room: bytes}
	list, err := g.expand(pattern)
	if err != nil {
		return nil, pathError("glob", pattern, err)
	}
	return list, nil
}

// expand returns the names that match a pattern.
func (g *globbed) expand(pattern string) (list []string, err error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		if _, err := g.Stat(pattern); err != nil {
			return nil, unanswered(err)
		}
		return []string{pattern}, nil
	}
	dir, file := path.Split(pattern)
	dirs := []string{"."}
	if dir != "" {
		if dirs, err = g.directories(dir[:len(dir)-1]); err != nil {
			return nil, err
		}
	}
	for _, dir := range dirs {
		if list, err = g.match(list, dir, file); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// directories are those that match a pattern, or the one that is none, whether it is there or not.
func (g *globbed) directories(pattern string) ([]string, error) {
	if !strings.ContainsAny(pattern, `*?[\`) {
		return []string{pattern}, nil
	}
	return g.expand(pattern)
}

// match adds those of a directory's entries that match the last part of a pattern.
func (g *globbed) match(list []string, dir, file string) ([]string, error) {
	entries, err := g.ReadDir(dir)
	if err != nil {
		return list, unanswered(err)
	}
	if g.left -= 1 + len(entries); g.left < 0 {
		return nil, syscall.EFBIG
	}
	for _, e := range entries {
		if is, err := path.Match(file, e.Name()); err != nil {
			return nil, err
		} else if !is {
			continue
		}
		name := path.Join(dir, e.Name())
		if g.room -= len(name); g.room < 0 {
			return nil, syscall.EFBIG
		}
		list = append(list, name)
	}
	return list, nil
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
