package resolve

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// GrantWorktrees adds to Read or Write the repositories of Files.Worktrees, and to Read the work tree around one that
// is no work tree's top, with a note for each that is granted or refused. It returns those that can be written.
// Files.Hide refuses a repository where its rule is the deepest one; a rule for one of covers, which the presets hide
// around each workspace (/home), refuses none beside a work tree in it.
func GrantWorktrees(p *policy.Policy, unfit Unfit, covers []string) (written []gitobeyed.Link) {
	r := New()
	covers = r.Canonical(covers...)
	for i, dir := range p.Files.Worktrees {
		at := r.Find(dir)
		if at.Err != nil || moved(p.Files.Found, dir, at.Path) || slices.Contains(p.Open, policy.BoundFiles) {
			continue // what is wrong with it another rule says
		}
		top, l, problem := gitobeyed.Above(at.Path)
		if top == "" {
			l, problem = gitobeyed.Linked(at.Path)
		}
		if problem == "" && l.Repository == "" {
			continue
		}
		l.Tree = cmp.Or(top, at.Path)
		g := worktreeGrant{Resolver: r, files: &p.Files, tree: at.Path, top: top, link: l, covers: covers}
		class, why := "not granted", problem
		if kind, shown, _ := g.deepest(l.Repository); problem == "" || shown && kind == pathrule.Write {
			class, why = g.grant(unfit)
		}
		switch {
		case class == "":
			continue
		case g.writes:
			written = append(written, l)
		}
		p.Notes = append(p.Notes, policy.Note{At: errtext.Indexed("Files.Worktrees", i), Rule: dir, Class: class, Why: why})
	}
	return written
}

// A worktreeGrant is about one of Files.Worktrees, whose repository has been found.
type worktreeGrant struct {
	*Resolver
	files  *policy.Files
	tree   string // of Worktrees
	top    string // the work tree around it, whose repository it is; "": it is the top itself
	link   gitobeyed.Link
	covers []string
	writes bool // the repository is granted for writing
}

// deepest returns the rule that decides about a path, which is free of links: the deepest around it. Shown: it shows
// the host's files. Hidden: a rule of Hide is the deepest.
func (g *worktreeGrant) deepest(p string) (kind pathrule.Kind, shown, hidden bool) {
	at := ""
	for _, list := range g.files.Lists() { // Hide is the last
		for _, dir := range g.Canonical(list.Paths...) {
			if pathrule.Within(p, dir) && len(dir) >= len(at) {
				kind, at = list.Kind, dir
			}
		}
	}
	cover := slices.Contains(g.covers, at) && at != p && pathrule.Within(g.tree, at)
	hidden = at != "" && kind == pathrule.Hide && !cover
	return kind, at != "" && (kind == pathrule.Read || kind == pathrule.Write || kind == pathrule.CopyOnWrite), hidden
}

// grant adds the rules. The class is "" where there is nothing to add.
func (g *worktreeGrant) grant(unfit Unfit) (class, why string) {
	f, repo := g.files, g.link.Repository
	repoKind, repoShown, repoHidden := g.deepest(repo)
	treeKind, treeShown, _ := g.deepest(g.tree)
	_, topShown, topHidden := g.deepest(cmp.Or(g.top, g.tree))
	switch {
	case repoShown && repoKind == pathrule.Write:
		return "", ""
	case !slices.Contains(f.ProtectedPatterns(), ".git"):
		return "not granted", "its repository is " + repo + ", and git directories are not protected (Files.Protect)"
	case repoHidden || g.top != "" && topHidden:
		return "not granted", "its repository " + repo + " is hidden (Files.Hide)"
	case !topShown && g.top != "" && len(f.HideNames) > 0:
		return "not granted", "its work tree " + g.top + " would be shown, and Files.HideNames hides nothing outside of Files.Write"
	case !treeShown || treeKind == pathrule.CopyOnWrite:
		return "not granted", "neither Files.Read nor Files.Write shows it"
	case treeKind == pathrule.Read && repoShown:
		return "", ""
	}
	if !topShown {
		if problem, _ := unfit(g.top, true); problem != "" {
			return "not granted", "its work tree " + g.top + " cannot be shown: " + problem
		}
	}
	list := &f.Read
	why = "its repository " + repo + " can be read"
	if treeKind == pathrule.Write {
		list, g.writes = &f.Write, true
		why = "its repository " + repo + " can be written, but for what other work trees have in it and what git obeys"
	}
	if !topShown {
		f.Read = append(f.Read, g.top)
		why += "; so can the work tree " + g.top + " around it, to which nothing can be written"
	}
	*list = append(*list, g.link.Written)
	return "granted", why
}
