package gitattack

import (
	"path"
	"slices"
	"strings"
)

// places are directories that stand for one another.
var places = [][]string{
	{".git/", ".bare/", "repo.dir/", "x/.git/", ".git/modules/lib/", ".git/modules/a/b/", ".git/worktrees/wt/", ".git/worktrees/wt/modules/lib/", "src/", "lib/.git/", ".GIT/", ".git//", "./.git/"},
	{"evil", "x", "src/evil", "d/evil", ".bare", "evil/../evil", "node_modules/m", ".git/evil", ".git/modules/evil", ".git/objects/evil"},
	{"origin", "evil", "topic"},
}

// mutate changes the sequence in one way.
func (g *generator) mutate(s *sequence) {
	ops := s.Rounds[0].Ops
	i := g.IntN(len(ops))
	switch g.IntN(12) {
	case 0: // another order
		j := g.IntN(len(ops))
		ops[i], ops[j] = ops[j], ops[i]
	case 1: // one less
		if len(ops) > 1 {
			ops = slices.Delete(ops, i, i+1)
		}
	case 2: // one more
		ops = slices.Insert(ops, i, g.some()...)
	case 3: // another place, throughout or once
		g.relocate(ops, i, g.IntN(3) > 0)
	case 4: // another name
		ops[i].Path = gitName(g.Rand)
	case 5, 6: // another spelling
		ops[i].Via = pick(g.Rand, spellings)
	case 7: // another content
		if ops[i].Text != nil {
			ops[i].Text = payload(g.world, g.Rand, ops[i].Path)
		}
	case 8, 9: // another way to the same end
		ops = slices.Replace(ops, i, i+1, g.otherwise(ops[i])...)
	case 10: // a second run
		s.Rounds = append(s.Rounds, round{Ops: slices.Clone(ops[i:]), User: slices.Clone(s.Rounds[0].User)})
		s.Rounds[0].User = g.user(g.IntN(3), ops)
		ops = ops[:max(i, 1)]
	case 11: // the user has something else in mind first
		s.Rounds[0].User = append(g.user(1, ops), s.Rounds[0].User...)
	}
	s.Rounds[0].Ops = ops
}

// relocate writes one place for another.
func (g *generator) relocate(ops []op, i int, throughout bool) {
	group := pick(g.Rand, places)
	from, to := group[0], pick(g.Rand, group)
	for j := range ops {
		if throughout || j == i {
			ops[j].Path = strings.Replace(ops[j].Path, from, to, 1)
			ops[j].To = strings.Replace(ops[j].To, from, to, 1)
			if ops[j].Text != nil && !strings.Contains(path.Base(ops[j].Path), "index") {
				ops[j].Text = []byte(strings.ReplaceAll(string(ops[j].Text), from, to))
			}
		}
	}
}

// otherwise returns operations that may come to the same as o.
func (g *generator) otherwise(o op) []op {
	n := path.Join("tmp", path.Base(o.Path))
	put := o
	switch o.Do {
	case "write", "replace":
		put.Path, put.Via, put.Flag = n, "", 0
		switch g.IntN(8) {
		case 0: // made elsewhere and renamed
			return []op{put, rename(n, o.Path)}
		case 1: // and linked
			return []op{put, {Do: "link", Path: n, To: o.Path}}
		case 2: // with its directory
			put.Path = path.Join("tmp/p", path.Base(o.Path))
			return []op{put, rename(path.Dir(o.Path), "aside"), rename("tmp/p", path.Dir(o.Path))}
		case 3: // a link that leads to it
			return []op{put, unlink(o.Path), link(o.Path, g.ws+"/"+n)}
		case 4: // through a descriptor that was open before
			return []op{{Do: "keep", Path: n, Flag: 0x42, Mode: o.Mode}, rename(n, o.Path), {Do: "put", Path: n, Text: o.Text}}
		case 5: // in the place of the lock
			return []op{{Do: "keep", Path: o.Path + ".lock", Flag: 0x42, Mode: o.Mode}, rename(o.Path+".lock", o.Path), {Do: "put", Path: o.Path + ".lock", Text: o.Text}}
		case 6: // by exchange
			return []op{put, {Do: "rename", Path: n, To: o.Path, Flag: 2}}
		case 7: // the directory is a link while the name is made
			return []op{rename(path.Dir(o.Path), "aside"), link(path.Dir(o.Path), "aside"), o, unlink(path.Dir(o.Path)), rename("aside", path.Dir(o.Path))}
		}
	case "symlink":
		return []op{link(n, o.To), rename(n, o.Path)}
	case "mkdir":
		return []op{mkdir(n), rename(n, o.Path)}
	case "rename":
		return []op{{Do: "rename", Path: o.Path, To: o.To, Flag: 2}}
	case "unlink":
		return []op{rename(o.Path, "aside")}
	}
	return []op{o, o}
}
