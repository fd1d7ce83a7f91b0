package gitobeyed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const mostDeep = 10 // slashes in the names of submodules

// finder collects what the configurations name.
type finder struct {
	top    string
	shown  func(tree string) bool
	home   string
	common []string // the user's and the machine's configuration
	seen   map[string]bool
	files  map[string][]setting
	dirs   map[string]string // directories, without links
	found  []string
	held   []string        // of Links: where something of a protected name is
	hooks  map[string]bool // the relative directories of hooks, as hooksBelow returns them

	left        int            // steps
	on          string         // the configuration or the directory that is followed
	cost        map[string]int // steps that went to each
	by, problem string         // what has ended the search
}

// In returns the absolute paths in the tree at top, which is absolute and free of links, that git obeys because a configuration names
// them: each as it is written and, if links are on its way, as it really is. With them are the directories worktrees/NAME whose
// work tree is not shown to the tool, which git worktree prune would remove.
//
// Hooks are the relative directories that a core.hooksPath names, without "." and "..": what git runs in every work tree, also in one that comes to be
// later. "" is the work tree itself. Names says which names are theirs.
//
// The tree is a tool's work, so the search ends after some number of steps, and with the first configuration that git would read and that cannot be
// read here or has more than 1 MiB: see Found.Problem.
func In(top string, shown func(tree string) bool) Found {
	home, _ := os.UserHomeDir()
	f := &finder{top: top, shown: shown, home: home, common: common(home), seen: map[string]bool{}, files: map[string][]setting{}, dirs: map[string]string{}, hooks: map[string]bool{}, left: steps, cost: map[string]int{}}
	for _, file := range f.common {
		f.on = file
		f.add(file, false, false)
		f.config(file, nil)
	}
	for dir := top; ; dir = filepath.Dir(dir) {
		f.on = dir
		f.workTree(dir)
		f.gitDir(dir, "")
		if dir == "/" {
			break
		}
	}
	f.on = top
	for _, dir := range f.directories(top) {
		f.on = dir
		f.workTree(dir)
		f.gitDir(dir, "")
	}
	return f.result()
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

// directories are those in dir, but links.
func (f *finder) directories(dir string) (list []string) {
	f.entries(dir, func(e os.DirEntry) {
		if e.IsDir() && e.Name() != ".git" && f.spend(1) {
			list = append(list, strings.TrimSuffix(dir, "/")+"/"+e.Name())
		}
	})
	return list
}

// workTree looks at dir/.git: a git directory, or a file that names one.
func (f *finder) workTree(dir string) {
	git := dir + "/.git"
	if !there(git) {
		return
	}
	git, ok := f.walk(git, noLink)
	if !ok {
		return
	}
	if info, err := os.Lstat(git); err != nil || !info.IsDir() {
		text, _ := f.read(git)
		named, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if !ok {
			return
		}
		if git, ok = f.walk(from(dir, named), noLink); !ok {
			return
		}
	}
	f.gitDir(git, dir)
}

// gitDir looks at a git directory, whose path has no links; tree is a work tree of its, or empty.
func (f *finder) gitDir(git, tree string) {
	if !there(git + "/HEAD") { // most directories end here, so it comes first
		return
	}
	if !f.spend(16) || !f.first(git+"\x00"+tree) {
		return
	}
	f.on = git
	common := git
	if text, ok := f.read(filepath.Join(git, "commondir")); ok {
		if common, ok = f.walk(from(git, strings.TrimSpace(text)), noLink); !ok {
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
		f.on = file
		f.config(file, bases)
	}
	f.on = git
	f.hookLinks(common)
	f.hookLinks(git)
	f.worktrees(common)
	f.modules(filepath.Join(git, "modules"), 0)
	f.modules(filepath.Join(common, "modules"), 0)
}

// worktrees looks at the linked work trees of a repository.
func (f *finder) worktrees(common string) {
	if !f.first(common + "\x00worktrees\x00") {
		return
	}
	for _, dir := range f.directories(filepath.Join(common, "worktrees")) {
		if text, ok := f.read(filepath.Join(dir, "gitdir")); ok {
			tree := filepath.Clean(strings.TrimSuffix(from(dir, strings.TrimSpace(text)), "/.git"))
			if real, ok := f.walk(tree, noLink); ok {
				tree = real
			}
			if !f.shown(tree) {
				f.within(dir, false)
			}
			f.gitDir(dir, tree)
		}
	}
}

// first reports whether something is come across for the first time.
func (f *finder) first(what string) bool {
	if f.seen[what] {
		return false
	}
	f.seen[what] = true
	return true
}

// modules looks at the git directories of submodules.
func (f *finder) modules(dir string, depth int) {
	if !f.first(dir) {
		return
	}
	for _, d := range f.directories(dir) {
		if there(d + "/HEAD") {
			f.gitDir(d, "")
		} else if depth < mostDeep {
			f.modules(d, depth+1)
		}
	}
}

// config collects what one configuration names, and what it includes does, each file once; bases are where hooks run: the two of the git
// directory, and work trees, where commands run. None: there is no repository, but the tree may become one.
func (f *finder) config(file string, bases []string) {
	seen := map[string]bool{}
	for files := []string{file}; len(files) > 0; files = files[1:] {
		if file, ok := f.place(files[0]); ok && !seen[file] {
			seen[file] = true
			files = append(files, f.names(file, bases)...)
		}
	}
}

// names collects what one file of a configuration names, and returns what it includes.
func (f *finder) names(file string, bases []string) (included []string) {
	for _, s := range f.settings(file) {
		if !f.spend(1) {
			return nil
		}
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
				included = append(included, to)
			}
		case "init.templatedir": // git copies hooks and a configuration from it to new repositories
			if to := f.named(f.top, s.value); to != "" {
				f.add(to, false, false)
				f.add(to+"/config", false, false)
				f.add(to+"/hooks", true, false)
			}
		case "core.worktree":
		default:
			trees := bases[min(2, len(bases)):]
			if len(trees) == 0 {
				trees = []string{f.top}
			}
			for _, tree := range trees {
				f.command(tree, s.value)
			}
		}
	}
	return included
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

// settings are those of a file that count here.
func (f *finder) settings(file string) []setting {
	found, known := f.files[file]
	if !known {
		text, _ := f.read(file)
		for _, s := range parse(text) {
			if (runs(s) || slices.Contains([]string{"core.hookspath", "core.worktree", "include.path", "includeif.path", "init.templatedir"}, s.key)) && f.spend(1) {
				found = append(found, s)
			}
		}
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
	if p == "" {
		return
	}
	real := f.follow(p)
	f.within(real, hooks && (itself || real == f.top))
	if !hooks || real == "" {
		return
	}
	f.entries(real, func(e os.DirEntry) {
		if e.Type()&os.ModeSymlink != 0 {
			f.within(f.follow(filepath.Join(real, e.Name())), false)
		}
	})
}

// Anchor is a name that is noted below a work tree which a configuration names: as it is protected, no directory above it can be moved, or
// become a link, through which the user's git would write elsewhere.
const Anchor = ".holdfast-worktree"

// anchor holds a work tree in its place.
func (f *finder) anchor(tree string) {
	if real := f.follow(tree); real != f.top && real != "" {
		f.within(real+"/"+Anchor, false)
	}
}

// follow returns where p leads, as far as it is there, and notes the links that it meets; "": the kernel would not follow it.
func (f *finder) follow(p string) string {
	at, _ := f.walk(p, func(link string) { f.within(link, false) })
	return at
}

// within notes p if it lies in the tree; with each, the hooks in it are noted.
func (f *finder) within(p string, each bool) {
	inside := strings.HasPrefix(p, strings.TrimSuffix(f.top, "/")+"/")
	switch {
	case each && (inside || p == f.top):
		f.spend(len(hookNames))
		for _, name := range hookNames {
			f.found = append(f.found, filepath.Join(p, name))
		}
	case inside:
		f.found = append(f.found, p)
	}
}
