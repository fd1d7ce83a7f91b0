package resolve

import (
	"slices"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/gitobeyed"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// GrantWorktrees adds to Read or Write the repositories of Files.Worktrees, with a note for each that is granted or refused. It
// returns those that can be written.
func GrantWorktrees(p *policy.Policy) (written []gitobeyed.Link) {
	f := &p.Files
	r := New()
	for i, dir := range f.Worktrees {
		at := r.Find(dir)
		if at.Err != nil || slices.Contains(p.Open, policy.BoundFiles) {
			continue // what is wrong with it another rule says
		}
		l, problem := gitobeyed.Linked(at.Path)
		if problem == "" && l.Repository == "" {
			continue
		}
		read, write, hide := r.Canonical(f.Read...), r.Canonical(f.Write...), r.Canonical(f.Hide...)
		note := policy.Note{At: errtext.Indexed("Files.Worktrees", i), Rule: dir, Class: "not granted", Why: problem}
		list := &f.Read
		switch {
		case problem != "":
		case pathrule.WithinAny(l.Repository, write):
			continue
		case !slices.Contains(f.ProtectedPatterns(), ".git"):
			note.Why = "its repository is " + l.Repository + ", and git directories are not protected (Files.Protect)"
		case pathrule.WithinAny(l.Repository, hide):
			note.Why = "its repository " + l.Repository + " is hidden (Files.Hide)"
		case pathrule.WithinAny(at.Path, write):
			list = &f.Write
			note.Class, note.Why = "granted", "its repository "+l.Repository+" can be written, but for what other work trees have in it and what git obeys"
			written = append(written, l)
		case !pathrule.WithinAny(at.Path, read):
			note.Why = "neither Files.Read nor Files.Write shows it"
		case pathrule.WithinAny(l.Repository, read):
			continue
		default:
			note.Class, note.Why = "granted", "its repository "+l.Repository+" can be read"
		}
		if note.Class == "granted" {
			*list = append(*list, l.Written)
		}
		p.Notes = append(p.Notes, note)
	}
	return written
}
