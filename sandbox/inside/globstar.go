package inside

import (
	"path"
	"slices"
	"strings"
	"syscall"
)

// deep is Glob for a pattern in which a component is "**".
func (f *Files) deep(pattern string) ([]string, error) {
	parts := strings.Split(path.Clean(pattern), "/")
	n := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, `*?[\`) })
	g := &globstar{files: f.here(), parts: parts[n:], left: maxEntries, room: maxMatched}
	dir := strings.Join(parts[:n], "/")
	if n > 0 && parts[0] == "" {
		dir = "/" + strings.TrimPrefix(dir, "/")
	}
	if err := g.walk(dir, g.close(append([]bool{true}, make([]bool, len(g.parts))...))); err != nil {
		return nil, pathError("glob", pattern, err)
	}
	return g.list, nil
}

// A globstar is a walk through what can match. At each directory it has the set of those places in the pattern that the path has come to, so
// that it takes as long for a pattern with many "**" as for one.
type globstar struct {
	files *Files
	parts []string
	left  int // directories and entries that may be read
	room  int // bytes that names may have
	list  []string
}

// close adds the places behind each "**", which stands for nothing as well.
func (g *globstar) close(at []bool) []bool {
	for i, part := range g.parts {
		at[i+1] = at[i+1] || at[i] && part == "**"
	}
	return at
}

// walk adds what matches below dir, in the order of names, and follows no symbolic link below it.
func (g *globstar) walk(dir string, at []bool) error {
	entries, err := g.files.ReadDir(path.Join(dir, ".")) // "." for ""
	if err != nil {
		return unanswered(err)
	}
	if g.left -= 1 + len(entries); g.left < 0 {
		return syscall.EFBIG
	}
	for _, e := range entries {
		next := make([]bool, len(at))
		for i, part := range g.parts {
			if !at[i] {
				continue
			}
			if part == "**" {
				next[i] = true
			} else if is, _ := path.Match(part, e.Name()); is {
				next[i+1] = true
			}
		}
		name, last := path.Join(dir, e.Name()), len(g.parts)
		if g.close(next); next[last] {
			if g.room -= len(name); g.room < 0 {
				return syscall.EFBIG
			}
			g.list = append(g.list, name)
		}
		if e.IsDir() && slices.Contains(next[:last], true) {
			if err := g.walk(name, next); err != nil {
				return err
			}
		}
	}
	return nil
}
