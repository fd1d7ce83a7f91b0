package resolve

import (
	"cmp"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// GrantWorktrees adds to Read or Write the repositories of Files.Worktrees, and to Read the work tree around one that is no work tree's top,
// with a note for each that is granted or refused. It returns those that can be written.
func GrantWorktrees(p *policy.Policy, unfit Unfit) (written []gitobeyed.Link) {
	r := New()
	for i, dir := range p.Files.Worktrees {
		at := r.Find(dir)
		if at.Err != nil || slices.Contains(p.Open, policy.BoundFiles) {
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
		g := worktreeGrant{Resolver: r, files: &p.Files, tree: at.Path, top: top, link: l}
		class, why := "not granted", problem
		if problem == "" {
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
	writes bool // the repository is granted for writing
}

// grant adds the rules. The class is "" where there is nothing to add.
func (g *worktreeGrant) grant(unfit Unfit) (class, why string) {
	f, repo := g.files, g.link.Repository
	read, write, hide := g.Canonical(f.Read...), g.Canonical(f.Write...), g.Canonical(f.Hide...)
	shown := pathrule.WithinAny(g.top, slices.Concat(read, write))
	switch {
	case pathrule.WithinAny(repo, write):
		return "", ""
	case !slices.Contains(f.ProtectedPatterns(), ".git"):
		return "not granted", "its repository is " + repo + ", and git directories are not protected (Files.Protect)"
	case pathrule.WithinAny(repo, hide) || g.top != "" && pathrule.WithinAny(g.top, hide):
		return "not granted", "its repository " + repo + " is hidden (Files.Hide)"
	case g.top != "" && !shown && len(f.HideNames) > 0:
		return "not granted", "its work tree " + g.top + " would be shown, and Files.HideNames hides nothing outside of Files.Write"
	}
	if g.top != "" && !shown {
		if problem, _ := unfit(g.top, true); problem != "" {
			return "not granted", "its work tree " + g.top + " cannot be shown: " + problem
		}
	}
	list := &f.Read
	switch {
	case pathrule.WithinAny(g.tree, write):
		list, g.writes = &f.Write, true
		why = "its repository " + repo + " can be written, but for what other work trees have in it and what git obeys"
	case !pathrule.WithinAny(g.tree, read):
		return "not granted", "neither Files.Read nor Files.Write shows it"
	case pathrule.WithinAny(repo, read):
		return "", ""
	default:
		why = "its repository " + repo + " can be read"
	}
	if g.top != "" && !shown {
		f.Read = append(f.Read, g.top)
		why += "; so can the work tree " + g.top + " around it, to which nothing can be written"
	}
	*list = append(*list, g.link.Written)
	return "granted", why
}
