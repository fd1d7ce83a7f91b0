package sandbox

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// nameRules are the names that a policy protects or hides below Write. They are
// compared here by a matcher of their own, not by the supervisor's: tests hold the
// one against the other.
type nameRules struct {
	rules []nameRule
}

type nameRule struct {
	field string
	name  string
	parts []string
	kind  supervisor.Kind
	hides bool

	obeyed bool // name is a path that a configuration of git names
}

func newNameRules(f Files) *nameRules {
	n := &nameRules{}
	kinds := map[string]supervisor.Kind{}
	for _, p := range supervisor.DefaultNames() {
		kinds[p.Path] = p.Kind
	}
	for _, name := range f.ProtectedPatterns() {
		field := "Files.Protect"
		if i := slices.Index(f.Protect.Add, name); i >= 0 {
			field = errtext.Indexed("Files.Protect.Add", i)
		}
		n.rules = append(n.rules, nameRule{field: field, name: name, parts: strings.Split(name, "/"), kind: kinds[name]})
	}
	for i, name := range f.HideNames {
		n.rules = append(n.rules, nameRule{field: errtext.Indexed("Files.HideNames", i), name: name, parts: strings.Split(name, "/"), hides: true})
	}
	return n
}

// obey adds the paths that git obeys by a repository's configuration.
func (n *nameRules) obey(paths []string) {
	for _, p := range paths {
		n.rules = append(n.rules, nameRule{field: "Files.Protect", name: p, parts: strings.Split(p[1:], "/"), obeyed: true})
	}
}

// A match is what a path is to one of the names: of several, the last of these.
type match uint8

const (
	beside  match = iota // nothing
	strays               // a place on the way to such a name, inside its "**"
	leads                // a place on the way to such a name, by its fixed part
	beneath              // something below such a name
	exactly              // such a name
)

// match compares the components of a path with the name. Only what ends below
// the first floor components counts: the directories around a root have names
// that are not the tool's to choose.
func (n nameRule) match(path []string, floor int) match {
	best := beside
	for i := range path {
		best = max(best, n.at(path, i, n.parts, floor))
	}
	return best
}

// at compares parts with the components from i on.
func (n nameRule) at(path []string, i int, parts []string, floor int) match {
	switch {
	case len(parts) == 0 && i <= floor:
		return beside
	case len(parts) == 0 && i == len(path):
		return exactly
	case len(parts) == 0:
		return beneath
	case i == len(path):
		return leads
	case parts[0] == "**":
		best := strays
		for j := i + 1; j < len(path); j++ {
			if m := n.at(path, j, parts[1:], floor); m == exactly || m == beneath {
				best = max(best, m)
			}
		}
		return best
	case samePart(parts[0], path[i]):
		return n.at(path, i+1, parts[1:], floor)
	}
	return beside
}

// under returns the components of p, and how many of them the outermost root
// around it has. ok is false if p lies in no root.
func (m *meaning) under(p string) (path []string, floor int, ok bool) {
	for _, root := range m.roots { // an outer one comes first
		if p != root && pathrule.Within(p, root) {
			return strings.Split(p[1:], "/"), strings.Count(strings.TrimSuffix(root, "/"), "/"), true
		}
	}
	return nil, 0, false
}

// byName asks the rules about names for every path of an act that the rules
// about places allow.
func (m *meaning) byName(a Act) (bool, Reason) {
	if ok, r := m.nameAllows(a, a.Path, false); !ok {
		return false, r
	}
	if a.Do == ToRename || a.Do == ToLink {
		if ok, r := m.nameAllows(a, a.To, true); !ok {
			return false, r
		}
	}
	_, r := m.atPlace(a)
	return true, r
}

func (m *meaning) nameAllows(a Act, p string, arrives bool) (bool, Reason) {
	path, floor, ok := m.under(p)
	if !ok {
		return true, Reason{}
	}
	in, git := m.names.inGit(path, floor)
	if git.Inside {
		if gitForbids(a, git, arrives, m) {
			return false, Reason{Bound: policy.BoundFiles, Field: in.field, Why: p + " lies in a git directory, where tools may not have it", Remedy: "name .git in Files.Protect.Except, which opens all of git's directories"}
		}
	}
	for _, n := range m.names.rules {
		if git.Inside && strings.HasPrefix(n.name, ".git/") && !n.hides {
			continue
		}
		how := n.match(path, floor)
		if how == beside || how == beneath && n.kind != supervisor.Whole && !n.hides {
			continue
		}
		if m.policy.Files.Protect.NoNewRepositories && a.Do == ToCreate && how == exactly && n.kind == supervisor.GitFile {
			return false, Reason{Bound: policy.BoundFiles, Field: "Files.Protect.NoNewRepositories", Why: p + " would be a new repository", Remedy: "leave it false"}
		}
		if why := n.forbids(a, how, arrives); why != "" {
			r := Reason{Bound: policy.BoundFiles, Field: n.field, Why: p + " " + why + " the protected name " + n.name, Remedy: "name it in Files.Protect.Except"}
			if slices.Contains(policy.BuildNames(), n.name) {
				r.Remedy += ", or set Files.Protect.BuildFiles"
			}
			if n.obeyed {
				r.Why, r.Remedy = p+" "+why+" "+n.name+", which a configuration of git names", "name it in Files.Write"
			} else if n.hides {
				r.Why, r.Remedy = p+" "+why+" the hidden name "+n.name, "take it out of Files.HideNames"
			} else if strings.HasPrefix(n.field, "Files.Protect.Add") {
				r.Remedy = "take it out of Files.Protect.Add"
			}
			return false, r
		}
	}
	return true, Reason{}
}

// inGit finds the directory named .git that the path lies in, and what the list of names in git directories makes of it. Whether
// other directories have the shape of one is for the supervisor to see.
func (n *nameRules) inGit(path []string, floor int) (nameRule, supervisor.Judgement) {
	i := slices.IndexFunc(n.rules, func(r nameRule) bool { return r.name == ".git" && !r.hides })
	if i < 0 || floor >= len(path) {
		return nameRule{}, supervisor.Judgement{}
	}
	for at := len(path) - 1; at > 0 && at >= floor; at-- {
		if !samePart(".git", path[at-1]) {
			continue
		}
		has := func(name string) bool {
			return slices.ContainsFunc(n.rules, func(r nameRule) bool { return r.name == name && !r.hides })
		}
		inside := path[at:]
		j := supervisor.Inside(inside, true)
		switch {
		case inside[0] == "hooks" && len(inside) > 1 && !has(".git/hooks"), strings.HasPrefix(strings.Join(inside, "/"), "info/attributes") && !has(".git/info/attributes"):
			j.Whole = false
		case strings.HasPrefix(inside[0], "config") && !has(".git/config"):
			j.Config, j.Lock = false, false
		}
		return n.rules[i], j
	}
	return nameRule{}, supervisor.Judgement{}
}

// gitForbids is what may not be done in a git directory.
func gitForbids(a Act, j supervisor.Judgement, arrives bool, m *meaning) bool {
	names := j.Whole || j.Config || j.CommonDir || j.Lock || j.Text
	switch a.Do {
	case ToWrite, ToLink:
		return names
	case ToCreate:
		return names && !(j.Lock && !a.Dir)
	case ToSymlink:
		return names || !j.Probe || strings.ContainsAny(a.To, "/.")
	case ToBind, ToSetXattr:
		return true
	case ToRemove:
		return j.Whole && !j.Loose || j.Config || j.Lock
	case ToChmod:
		return j.Whole || j.Fixed
	case ToRename:
		if !a.Dir {
			return j.Whole || j.Config || j.CommonDir || j.Lock || arrives && j.Text
		}
		if names || !j.Data {
			return true
		}
		path, floor, ok := m.under(a.Path)
		_, from := m.names.inGit(path, floor)
		return arrives && (!ok || !j.Tree || !from.Tree)
	}
	return false
}

// forbids says how the path has to do with the name if the act is forbidden by
// that, and "" if not.
func (n nameRule) forbids(a Act, how match, arrives bool) string {
	verdict := false
	switch how {
	case leads, strays:
		verdict = !n.hides && forbiddenAbove(a, how, arrives)
		if verdict {
			return "is above"
		}
		return ""
	default:
		if n.hides {
			verdict = forbiddenHidden(a.Do, a.Dir)
		} else {
			verdict = forbiddenName(a, n.kind, arrives)
		}
	}
	switch {
	case !verdict:
		return ""
	case how == exactly:
		return "is"
	}
	return "lies below"
}

// forbiddenAbove: what is moved or linked to a place above a protected name would
// bring that name along, and what is moved away would take it along.
func forbiddenAbove(a Act, how match, arrives bool) bool {
	switch a.Do {
	case ToRename:
		return a.Dir
	case ToSymlink:
		return how == leads || strings.ContainsAny(a.To, "/.") // git init makes links to a neighbour, to see whether they work
	}
	return false
}

// forbiddenHidden: a hidden name's content cannot be had by any name. What it is
// called, and that it goes, gives nothing away.
func forbiddenHidden(d Deed, dir bool) bool {
	switch d {
	case ToRead, ToList, ToWrite, ToRename, ToLink, ToSymlink, ToBind, ToSetXattr:
		return true
	case ToCreate:
		return !dir
	}
	return false
}

// forbiddenName is what may not be done to a protected name of this kind.
func forbiddenName(a Act, kind supervisor.Kind, arrives bool) bool {
	switch a.Do {
	case ToWrite, ToLink, ToSymlink, ToBind, ToSetXattr:
		return true
	case ToCreate:
		if kind == supervisor.Lock {
			return a.Dir
		}
		return !a.Dir || kind != supervisor.GitFile // a directory named .git is how a repository begins
	case ToRemove:
		return kind != supervisor.GitFile && kind != supervisor.CommonDir
	case ToChmod:
		return kind == supervisor.Whole
	case ToRename:
		return arrives || kind != supervisor.GitFile || !a.Dir
	}
	return false
}
