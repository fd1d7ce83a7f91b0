package trust

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
)

// Places judges paths for one user.
type Places struct {
	home string // canonical; "": none
	seen map[string]fs.FileInfo
}

// New returns the places of the user whose home is given. "" is the system alone. It looks at each name once.
func New(home string) *Places {
	p := &Places{seen: map[string]fs.FileInfo{}}
	real, err := filepath.EvalSymlinks(home)
	systems := func(dir string) bool { return pathrule.Within(dir, real) || pathrule.Within(real, dir) }
	if err == nil && path.IsAbs(real) && !slices.ContainsFunc(System, systems) {
		p.home = real
	}
	return p
}

// System are directories of the system in which presets accept no workspace: what root has there, no tool has made.
var System = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/boot", "/nix", "/gnu", "/snap",
	"/var/spool", "/var/lib/flatpak",
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec",
	"/usr/share", "/usr/include",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/etc", "/usr/local/share",
}

// around are directories that contain more than a project: their own entries are as those of System, and nothing below
// is.
var around = []string{"/", "/usr", "/usr/local", "/opt", "/home", "/Users", "/var", "/var/lib", "/run"}

// owned are directories of the system that are the user's in part: presets show no more of them than Nix's and Guix's
// packages.
var owned = []string{"/nix", "/gnu", "/run/user"}

// Holds reports whether what stands at a path was made in a place that no tool could have written. The path is
// absolute, and canonical but for its last name: a link is judged itself.
func (p *Places) Holds(at string) bool { return p.holds(path.Dir(at), at) }

// HoldsIn reports whether Holds would be true of everything that root or the user puts into a directory, whose path is
// canonical.
func (p *Places) HoldsIn(dir string) bool { return p.holds(dir, dir) }

// Own reports whether what stands at a canonical path, and every directory from top on, which may be one with the
// sticky bit, is root's or the user's and cannot be written by others.
func (p *Places) Own(at, top string) bool { return p.kept(at, top, true, false) }

// Toolchain returns the directory of Toolchains, below the home, that a canonical path lies in; "" if it lies in none,
// or is not held.
func (p *Places) Toolchain(at string) string {
	rest, found := strings.CutPrefix(at, p.home+"/")
	i := slices.IndexFunc(toolchainTrees, func(tree string) bool { return pathrule.Within(rest, tree) })
	if p.home == "" || !found || i < 0 || !p.Holds(at) {
		return ""
	}
	return toolchainTrees[i]
}

// holds reports whether no tool can write in dir, and nobody but root or this user can have changed what stands at a
// path, which is dir or lies in it.
func (p *Places) holds(dir, at string) bool {
	if p.home != "" && pathrule.Within(dir, p.home) {
		return p.belowHome(dir) && p.kept(at, p.home, true, false)
	}
	own, system := pathrule.WithinAny(dir, owned), pathrule.WithinAny(dir, System) || slices.Contains(around, dir)
	if os.Geteuid() == 0 && !own && !system {
		return false // its tools are root, too
	}
	return p.kept(at, "/", own, system)
}

// kept reports whether what stands at a path and every directory from there to top is root's, or with own this user's,
// and cannot be written by others. In a directory around it the sticky bit keeps others from replacing what is not
// theirs (inode(7), S_ISVTX).
func (p *Places) kept(at, top string, own, system bool) bool {
	for sticky := fs.FileMode(0); ; sticky = fs.ModeSticky {
		info := p.look(at)
		if info == nil || !ownedBy(info, own, system) || info.Mode()&(fs.ModeSymlink|sticky) == 0 && writableByOthers(info) {
			return false
		}
		if at == top || at == "/" {
			return true
		}
		at = path.Dir(at)
	}
}

func (p *Places) look(at string) fs.FileInfo {
	info, known := p.seen[at]
	if !known {
		info, _ = os.Lstat(at)
		p.seen[at] = info
	}
	return info
}

// belowHome reports whether dir, which is the home or lies in it, is a toolchain's or leads to one, and is not a part
// of a repository around the toolchain: that is a project. A toolchain may be a repository itself, as pyenv is. What
// leads there is hidden: ~/go contains projects beside ~/go/bin.
func (p *Places) belowHome(dir string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(dir, p.home), "/")
	inTree := pathrule.WithinAny(rest, homeTrees)
	leads := func(tree string) bool { return rest[0] == '.' && pathrule.Within(tree, rest) }
	if HoldsCheckouts(rest) || rest != "" && !inTree && !slices.ContainsFunc(homeTrees, leads) {
		return false
	}
	for ; dir != p.home; dir = path.Dir(dir) {
		rest = strings.TrimPrefix(dir, p.home+"/")
		for _, mark := range Repository {
			if !pathrule.WithinAny(rest, homeTrees) && p.look(pathrule.Join(dir, mark)) != nil {
				return false
			}
		}
	}
	return true
}

// checkouts are names of directories in which harnesses keep their own copies of
// projects, below a directory of settings: ~/.cursor/worktrees/NAME.
var checkouts = []string{"worktree", "worktrees", "workspace", "workspaces", "repos", "tmp"}

// HoldsCheckouts reports whether a path below a directory of settings can lead to a project, by the names in it.
func HoldsCheckouts(below string) bool {
	for name := range strings.SplitSeq(below, "/") {
		if slices.Contains(checkouts, name) {
			return true
		}
	}
	return false
}

// Repository are the names by which a directory shows itself to be the top of a work tree.
var Repository = []string{".git", ".hg", ".jj", ".sl"}

// Program returns the canonical path of a program that PATH's value names, of the first trusted place that has it. The
// program is a regular file that may be executed. The error is exec.ErrNotFound.
func (p *Places) Program(name, search string) (string, error) {
	r := resolve.New()
	r.Follow = p.Holds
	for _, dir := range filepath.SplitList(search) {
		if problem, _ := pathrule.Check(dir, pathrule.Read); problem != "" {
			continue
		}
		at := r.Find(pathrule.Join(dir, name))
		if at.Err == nil && at.Mode.IsRegular() && at.Mode&0o111 != 0 && p.Holds(at.Path) {
			return at.Path, nil
		}
	}
	return "", exec.ErrNotFound
}

// Search returns those directories of PATH's value in which every program is trusted, for the environment of one that
// is run.
func (p *Places) Search(search string) string {
	r := resolve.New()
	r.Follow = p.Holds
	return strings.Join(slices.DeleteFunc(filepath.SplitList(search), func(dir string) bool {
		problem, _ := pathrule.Check(dir, pathrule.Read)
		if problem != "" {
			return true
		}
		at := r.Find(dir)
		return at.Err != nil || !at.Mode.IsDir() || !p.HoldsIn(at.Path)
	}), string(filepath.ListSeparator))
}
