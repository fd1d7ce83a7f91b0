package gitobeyed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const mostInside = 2 // levels below a directory of a protected name: below .claude/worktrees are whole work trees

// Links returns the absolute paths in the tree at top, which is absolute and free of links, to which links lead that stand at one of these names (of
// package protected), or in a directory of such a name: `.vscode -> tools/vscode`, `.claude/settings.json -> ../agents/claude.json`. With them are the links on
// the way. Looked at are the tree's top, the repositories one level below, and the home's own names, which lead to the tree where that is a directory of
// dotfiles. Links of git directories In finds. A link to a directory around it says nothing.
func Links(top string, names []string) Found {
	f := &finder{top: top, on: top, seen: map[string]bool{}, left: steps, cost: map[string]int{}}
	var patterns [][]string
	for _, name := range names {
		if parts := strings.Split(name, "/"); parts[0] != ".git" {
			patterns = append(patterns, parts)
		}
	}
	f.namesIn(top, top, patterns, false)
	for _, dir := range f.directories(top) {
		if there(dir + "/.git") {
			f.namesIn(dir, dir, patterns, false)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		f.on = home
		f.namesIn(home, home, patterns, true)
	}
	f.found = slices.DeleteFunc(f.found, func(p string) bool {
		return slices.ContainsFunc(f.held, func(name string) bool { return strings.HasPrefix(p+"/", name+"/") })
	})
	return f.result()
}

// namesIn looks for the patterns in a directory, which is reached by path and lies at real; alone: not into what has such a name.
func (f *finder) namesIn(path, real string, patterns [][]string, alone bool) {
	f.entries(real, func(e os.DirEntry) {
		for _, parts := range patterns {
			if !fits(parts[0], e.Name()) || !f.spend(1) {
				continue
			}
			at := filepath.Join(path, e.Name())
			if len(parts) == 1 {
				f.held = append(f.held, at) // what is there, or below, has a protected name already
				f.behind(at, at, alone || vcs[parts[0]])
			} else if dir := f.follow(at); dir != "" {
				f.namesIn(at, dir, [][]string{parts[1:]}, alone)
			}
		}
	})
}

// vcs are directories that keep a repository, which may be large; nothing in them is a link.
var vcs = map[string]bool{".hg": true, ".sl": true, ".svn": true, ".bzr": true, "_darcs": true}

// fits reports whether a name is what a component of a pattern stands for.
func fits(part, name string) bool {
	begin, rest, star := strings.Cut(part, "*")
	if !star {
		return strings.EqualFold(part, name)
	}
	return len(name) >= len(begin)+len(rest) && strings.EqualFold(name[:len(begin)], begin) && strings.EqualFold(name[len(name)-len(rest):], rest)
}

// behind notes where a protected path leads, if that is elsewhere, and what links in it lead to, unless it is to be left alone.
func (f *finder) behind(path, name string, alone bool) {
	real := f.follow(path)
	if real == "" || strings.HasPrefix(path+"/", real+"/") && real != path {
		return
	}
	if real != path {
		f.within(real, false)
	}
	if info, err := os.Lstat(real); err != nil || !info.IsDir() || alone || strings.Count(path, "/")-strings.Count(name, "/") >= mostInside || !f.first(real) {
		return
	}
	f.entries(real, func(e os.DirEntry) {
		if (e.IsDir() || e.Type()&os.ModeSymlink != 0) && f.spend(1) {
			f.behind(filepath.Join(path, e.Name()), name, false)
		}
	})
}

// hookLinks notes where the links lead that a git directory has for its hooks, its configuration or its attributes. In what is none yet the link may be
// a tool's, which would have other files held.
func (f *finder) hookLinks(git string) {
	if filepath.Base(git) != ".git" && !isBare(git) && !there(git+"/commondir") {
		return
	}
	for _, name := range []string{"hooks", "config", "config.worktree", "info/attributes"} {
		if at := git + "/" + name; there(at) {
			f.behind(at, at, name != "hooks")
		}
	}
}
