package gitobeyed

import (
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	most     = 65536 // entries of a directory of hooks, and paths that are found: package compile refuses fewer than these
	mostDeep = 10    // includes in includes, as in git; and slashes in the names of submodules
)

// finder collects what the configurations name.
type finder struct {
	top    string
	shown  func(tree string) bool
	home   string
	common []string // the user's and the machine's configuration
	seen   map[string]bool
	files  map[string][]setting
	found  map[string]bool
	hooks  map[string]bool // the relative directories of hooks, as hooksBelow returns them
}

// In returns the absolute paths in the tree at top, which is absolute and free of links, that git obeys because a configuration names
// them: each as it is written and, if links are on its way, as it really is. With them are the directories worktrees/NAME whose
// work tree is not shown to the tool, which git worktree prune would remove.
//
// Hooks are the relative directories that a core.hooksPath names, without "." and "..": what git runs in every work tree, also in one that comes to be
// later. "" is the work tree itself. Names says which names are theirs.
func In(top string, shown func(tree string) bool) (paths, hooks []string) {
	home, _ := os.UserHomeDir()
	f := &finder{top: top, shown: shown, home: home, common: common(home), seen: map[string]bool{}, files: map[string][]setting{}, found: map[string]bool{}, hooks: map[string]bool{}}
	for _, file := range f.common {
		f.config(file, nil, 0)
	}
	for dir := top; ; dir = filepath.Dir(dir) {
		f.workTree(dir)
		f.gitDir(dir, "")
		if dir == "/" {
			break
		}
	}
	for dir := range directories(top) {
		f.workTree(dir)
		f.gitDir(dir, "")
	}
	return slices.Sorted(maps.Keys(f.found)), slices.Sorted(maps.Keys(f.hooks))
}

// common are the user's and the machine's configuration: git-config(1), "FILES" and "ENVIRONMENT".
func common(home string) []string {
	xdg := os.Getenv("XDG_CONFIG_HOME")
	if xdg == "" {
		xdg = filepath.Join(home, ".config")
	}
	files := []string{"/etc/gitconfig", "/usr/local/etc/gitconfig", xdg + "/git/config", home + "/.gitconfig"}
	for _, name := range []string{"GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"} {
		if file := os.Getenv(name); filepath.IsAbs(file) {
			files = append(files, file)
		}
	}
	return files
}

// directories are those in dir, but links. Some are read at a time, and none is left out: a tool can have made very many names.
func directories(dir string) iter.Seq[string] {
	return func(yield func(string) bool) {
		d, err := os.Open(dir)
		if err != nil {
			return
		}
		defer d.Close()
		for err == nil {
			var entries []os.DirEntry
			entries, err = d.ReadDir(256)
			for _, e := range entries {
				if e.IsDir() && e.Name() != ".git" && !yield(dir+"/"+e.Name()) {
					return
				}
			}
		}
	}
}

// workTree looks at dir/.git: a git directory, or a file that names one.
func (f *finder) workTree(dir string) {
	git := dir + "/.git"
	if !there(git) {
		return
	}
	info, err := os.Stat(git)
	if err != nil {
		return
	}
	if !info.IsDir() {
		text, err := read(git)
		named, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if err != nil || !ok {
			return
		}
		git = from(dir, named)
	}
	f.gitDir(git, dir)
}

// gitDir looks at a git directory; tree is a work tree of its, or empty.
func (f *finder) gitDir(git, tree string) {
	if !there(git + "/HEAD") { // most directories end here, so it comes first
		return
	}
	git, err := filepath.EvalSymlinks(git)
	if err != nil {
		return
	}
	if real, err := filepath.EvalSymlinks(tree); err == nil && tree != "" {
		tree = real
	}
	if f.seen[git+"\x00"+tree] {
		return
	}
	f.seen[git+"\x00"+tree] = true
	common := git
	if text, err := read(filepath.Join(git, "commondir")); err == nil {
		if common, err = filepath.EvalSymlinks(from(git, strings.TrimSpace(text))); err != nil {
			return
		}
	}
	bases := []string{git, common}
	if tree != "" {
		bases = append(bases, tree)
	}
	files := append(slices.Clone(f.common), filepath.Join(common, "config"), filepath.Join(git, "config.worktree"))
	for _, file := range files[len(f.common):] {
		for _, s := range f.settings(file) {
			if s.key == "core.worktree" && s.value != "" {
				bases = append(bases, from(git, s.value))
				f.anchor(from(git, s.value))
			}
		}
	}
	for _, file := range files {
		f.config(file, bases, 0)
	}
	f.modules(filepath.Join(git, "modules"), 0)
	if f.seen[common] {
		return // each worktree leads here
	}
	f.seen[common] = true
	for dir := range directories(filepath.Join(common, "worktrees")) {
		if text, err := read(filepath.Join(dir, "gitdir")); err == nil {
			tree := filepath.Clean(strings.TrimSuffix(from(dir, strings.TrimSpace(text)), "/.git"))
			if real, err := filepath.EvalSymlinks(tree); err == nil {
				tree = real
			}
			if !f.shown(tree) {
				f.within(dir, false)
			}
			f.gitDir(dir, tree)
		}
	}
	if common != git {
		f.modules(filepath.Join(common, "modules"), 0)
	}
}

// modules looks at the git directories of submodules.
func (f *finder) modules(dir string, depth int) {
	for d := range directories(dir) {
		if there(d + "/HEAD") {
			f.gitDir(d, "")
		} else if depth < mostDeep {
			f.modules(d, depth+1)
		}
	}
}

// config collects what one configuration names, and what it includes does; bases are where hooks run.
func (f *finder) config(file string, bases []string, depth int) {
	if depth > mostDeep {
		return
	}
	for _, s := range f.settings(file) {
		switch s.key {
		case "core.hookspath":
			if dir, ok := hooksBelow(s.value); ok {
				f.hooks[dir] = true
			}
			for _, base := range bases {
				f.add(f.named(base, s.value), true, filepath.Clean(s.value) == ".")
			}
		case "include.path", "includeif.path":
			to := f.named(filepath.Dir(file), s.value)
			f.add(to, false, false)
			if to != "" {
				f.config(to, bases, depth+1)
			}
		}
	}
}

// named is where a value leads: ~/ is the home.
func (f *finder) named(base, value string) string {
	switch rest, home := strings.CutPrefix(value, "~/"); {
	case value == "", strings.ContainsRune(value, 0), strings.HasPrefix(value, "%("), strings.HasPrefix(value, "~") && !home:
		return ""
	case home && f.home == "":
		return ""
	case home:
		return f.home + "/" + rest
	}
	return from(base, value)
}

func (f *finder) settings(file string) []setting {
	found, known := f.files[file]
	if !known {
		found = settings(file)
		f.files[file] = found
	}
	return found
}

// from is value as git takes it: ".." counts behind links, so it stays.
func from(base, value string) string {
	if filepath.IsAbs(value) {
		return value
	}
	return base + "/" + value
}

// add notes where a path leads, and every link on its way; of a directory of hooks those in it too. Itself says that this directory is the work
// tree or the git directory itself, which is the tool's but for the hooks.
func (f *finder) add(p string, hooks, itself bool) {
	if p == "" || len(f.found) > most {
		return
	}
	real := f.follow(p)
	f.within(real, hooks && (itself || real == f.top))
	if !hooks {
		return
	}
	d, err := os.Open(real)
	if err != nil {
		return
	}
	defer d.Close()
	entries, _ := d.ReadDir(most)
	for _, e := range entries {
		if e.Type()&os.ModeSymlink != 0 {
			f.within(f.follow(filepath.Join(real, e.Name())), false)
		}
	}
}

// Anchor is a name that is noted below a work tree which a configuration names: as it is protected, no directory above it can be moved, or
// become a link, through which the user's git would write elsewhere.
const Anchor = ".holdfast-worktree"

// anchor holds a work tree in its place.
func (f *finder) anchor(tree string) {
	if real := f.follow(tree); real != f.top {
		f.within(real+"/"+Anchor, false)
	}
}

// follow returns where p leads, as far as it is there, and notes the links that it meets.
func (f *finder) follow(p string) string {
	at, rest := "/", strings.Split(p, "/")
	for hops := 0; len(rest) > 0 && hops < 40; {
		name := rest[0]
		rest = rest[1:]
		if name == ".." {
			at = filepath.Dir(at)
		}
		if name == "" || name == "." || name == ".." {
			continue
		}
		next := filepath.Join(at, name)
		target, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		f.within(next, false)
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
		hops++
	}
	return at
}

// within notes p if it lies in the tree; with each, the hooks in it are noted.
func (f *finder) within(p string, each bool) {
	inside := strings.HasPrefix(p, strings.TrimSuffix(f.top, "/")+"/")
	switch {
	case each && (inside || p == f.top):
		for _, name := range hookNames {
			f.found[filepath.Join(p, name)] = true
		}
	case inside:
		f.found[p] = true
	}
}
