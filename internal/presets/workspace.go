package presets

import (
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/trust"
)

// checkWorkspace says why a preset takes no such workspace, and the remedy; "": it takes it.
// One that does not exist is reported by the resolver.
func (b *Builder) checkWorkspace(write bool) (problem, remedy string) {
	r := resolve.New()
	real := r.Canonical(b.workspace)
	if len(real) == 0 {
		return "", ""
	}
	b.found(b.workspace, r.Find(b.workspace)) // what is judged here is what New takes
	if !r.Find(real[0]).Mode.IsDir() {
		return "it is a file", "name the directory it lies in"
	}
	if real[0] == b.home || real[0] == b.homeReal {
		return "it is the home directory (HOME)", "name the directory of one project below it, or give the harness another HOME: in an image with HOME=/app and the project in /app, HOME=/home/agent"
	}
	if problem = b.notAProject(real[0], write); problem != "" {
		return problem, "name the directory of one project; for another, write a policy of your own"
	}
	if link, tree := b.plantedLink(r); link != "" {
		return "its path leads through the symbolic link " + link + " out of " + tree + ", where a tool can have made the link in an earlier run",
			"pass " + real[0] + " if it is meant"
	}
	return "", ""
}

// notAProject says why real, which is canonical, is no project: it contains more than
// one, or lies where programs outside execute or obey what they find. A workspace
// that can only be read has to be no more than one of those that contain too much.
func (b *Builder) notAProject(real string, write bool) string {
	more := []string{b.home, b.homeReal, "/var", "/dev", "/proc"}
	for _, p := range slices.Concat(shared, systemTrees, trust.System, more) {
		if p != real && p != "" && pathrule.Within(p, real) {
			return "it contains " + p
		}
	}
	switch {
	case real == "/", slices.Contains(AlwaysHidden, real), slices.Contains(shared, real), slices.Contains(systemTrees, real):
		return "it contains more than a project"
	case real == b.home, real == b.homeReal:
		return "it is the home directory"
	case pathrule.Within(real, "/run") && !removable(real):
		return "it lies in /run, where services have their sockets and files"
	case pathrule.WithinAny(real, trust.System):
		return "it lies in a directory of the system, whose files programs outside execute or obey"
	case !write:
		return ""
	}
	if why := b.obeyedAtHome(real); why != "" {
		return why
	}
	return b.onPath(real)
}

// removable reports whether p lies on a disk that was mounted for a user: udisks(8),
// /run/media/USER/NAME.
func removable(p string) bool { return pathrule.Within(p, "/run/media") && strings.Count(p, "/") >= 4 }

// obeyedAtHome says what of a home obeys real: every directory whose name begins
// with a dot, ~/bin, ~/Library, and what XDG's variables name.
func (b *Builder) obeyedAtHome(real string) string {
	for _, home := range b.homes(real) {
		rest, below := strings.CutPrefix(real, home+"/")
		if !below {
			continue
		}
		if b.isKept(real, home) {
			return ""
		}
		first, deeper, _ := strings.Cut(rest, "/")
		switch {
		case first == "bin":
			return "it lies in ~/bin, whose programs the user runs"
		case first == "Library" && !strings.HasPrefix(deeper, "Mobile Documents/") && !strings.HasPrefix(deeper, "CloudStorage/"):
			return "it lies in ~/Library, whose files programs obey"
		case strings.HasPrefix(first, ".") && (first == ".git" || !trust.HoldsCheckouts(deeper)):
			return "it lies in ~/" + first + ", whose files programs obey"
		}
	}
	for _, variable := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"} {
		for _, dir := range b.plain.Canonical(b.env(variable)) {
			if pathrule.Within(real, dir) && !slices.Contains(b.own, dir) && !trust.HoldsCheckouts(strings.TrimPrefix(real, dir)) {
				return "it lies in " + variable + ", whose files programs obey"
			}
		}
	}
	return ""
}

// homes are the directories that are homes as far as real is concerned: the
// harness's own, whatever HOME says, and the one that real would lie in by its name.
func (b *Builder) homes(real string) []string {
	homes := []string{"/root"}
	if b.homeReal != "" {
		homes = append(homes, b.homeReal)
	}
	for _, all := range []string{"/home/", "/Users/"} {
		if rest, found := strings.CutPrefix(real, all); found {
			user, _, _ := strings.Cut(rest, "/")
			homes = append(homes, all+user)
		}
	}
	return homes
}

// onPath says whether the user runs programs from real: it is a directory of PATH,
// and not of a repository around it, or it contains a toolchain that is in use.
func (b *Builder) onPath(real string) string {
	search := b.plain.Canonical(splitList(b.env("PATH"))...)
	if slices.Contains(search, real) && !b.inRepository(path.Dir(real)) {
		return "it is a directory of PATH, whose programs the user runs"
	}
	for _, t := range trust.Toolchains {
		root := pathrule.Join(b.homeReal, t.Root)
		used := func(dir string) bool { return pathrule.Within(dir, root) && pathrule.Within(dir, real) }
		if b.homeReal != "" && pathrule.Within(root, real) && slices.ContainsFunc(search, used) {
			return "it contains ~/" + t.Root + ", whose programs the user runs"
		}
	}
	return ""
}

// inRepository reports whether a directory from dir up to the home is the top of a
// repository.
func (b *Builder) inRepository(dir string) bool {
	for ; dir != "/" && !slices.Contains(b.homes(dir), dir); dir = path.Dir(dir) {
		if b.isRepository(dir) {
			return true
		}
	}
	return false
}

func (b *Builder) isRepository(dir string) bool {
	return slices.ContainsFunc(trust.Repository, func(mark string) bool {
		return b.plain.Find(pathrule.Join(dir, mark)).Err == nil
	})
}

// plantedLink returns a link on the way to the workspace, which r has followed, that a
// tool can have made: it lies in what may have been a workspace, and leads out of
// it. A link of the system and one that lies in the home itself (~/project) are
// neither, for no preset lets a tool write there.
func (b *Builder) plantedLink(r *resolve.Resolver) (link, tree string) {
	for link := range r.Links {
		if b.places.Holds(link) {
			continue
		}
		end := r.Find(link)
		for dir := path.Dir(link); dir != "/"; dir = path.Dir(dir) {
			if b.notAProject(dir, true) != "" {
				continue
			}
			if end.Err == nil && !pathrule.Within(end.Path, dir) {
				return link, dir
			}
			break
		}
	}
	return "", ""
}
