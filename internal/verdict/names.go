package verdict

import (
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// nameRules are the names that a policy protects or hides below Write. They are
// compared here by a matcher of their own, not by the supervisor's: tests hold the
// one against the other.
type nameRules struct {
	Rules []NameRule
}

// A NameRule is a name, or a path of names, that may not be made or changed below Write, or is hidden there.
type NameRule struct {
	Field string
	Name  string
	parts []string
	Kind  protected.Kind
	Hides bool

	obeyed bool // name is a path, or a name at every depth, that a configuration of git names
}

func newNameRules(f policy.Files) *nameRules {
	n := &nameRules{}
	kinds := map[string]protected.Kind{}
	for _, p := range protected.Patterns() {
		kinds[p.Path] = p.Kind
	}
	for _, name := range f.ProtectedPatterns() {
		field := "Files.Protect"
		if i := slices.Index(f.Protect.Add, name); i >= 0 {
			field = errtext.Indexed("Files.Protect.Add", i)
		}
		n.Rules = append(n.Rules, NameRule{Field: field, Name: name, parts: strings.Split(name, "/"), Kind: kinds[name]})
	}
	for i, name := range f.HideNames {
		n.Rules = append(n.Rules, NameRule{Field: errtext.Indexed("Files.HideNames", i), Name: name, parts: strings.Split(name, "/"), Hides: true})
	}
	return n
}

// obey adds what git obeys by a configuration.
func (n *nameRules) obey(o resolve.Obeyed) {
	for _, p := range append(slices.Clone(o.Paths), o.Names...) {
		n.Rules = append(n.Rules, NameRule{Field: "Files.Protect", Name: p, parts: strings.Split(strings.TrimPrefix(p, "/"), "/"), obeyed: true})
	}
	for _, p := range o.Hidden {
		n.Rules = append(n.Rules, NameRule{Field: "Files.HideNames", Name: p, parts: strings.Split(strings.TrimPrefix(p, "/"), "/"), Hides: true})
	}
}

// A match is what a path is to one of the names: of several, the last of these.
type match uint8

const (
	matchNone       match = iota // nothing
	matchInWildcard              // a place on the way to such a name, inside its "**"
	matchAbove                   // a place on the way to such a name, by its fixed part
	matchBelow                   // something below such a name
	matchExact                   // such a name
)

// match compares the components of a path with the name. Only what ends below
// the first floor components counts: the directories around a root have names
// that are not the tool's to choose.
func (n NameRule) match(path []string, floor int) match {
	best := matchNone
	for i := range path {
		best = max(best, n.at(path, i, n.parts, floor))
	}
	return best
}

// at compares parts with the components from i on.
func (n NameRule) at(path []string, i int, parts []string, floor int) match {
	switch {
	case len(parts) == 0 && i <= floor:
		return matchNone
	case len(parts) == 0 && i == len(path):
		return matchExact
	case len(parts) == 0:
		return matchBelow
	case i == len(path):
		return matchAbove
	case parts[0] == "**":
		best := matchInWildcard
		for j := i + 1; j < len(path); j++ {
			if m := n.at(path, j, parts[1:], floor); m == matchExact || m == matchBelow {
				best = max(best, m)
			}
		}
		return best
	case samePart(parts[0], path[i]):
		return n.at(path, i+1, parts[1:], floor)
	}
	return matchNone
}

// under returns the components of p, and how many of them the outermost root
// around it has. ok is false if p lies in no root.
func (m *Evaluator) under(p string) (path []string, floor int, ok bool) {
	for _, root := range m.Roots { // an outer one comes first
		if p != root && pathrule.Within(p, root) {
			return strings.Split(p[1:], "/"), strings.Count(strings.TrimSuffix(root, "/"), "/"), true
		}
	}
	return nil, 0, false
}

// byName asks the rules about names for every path of an access that the rules
// about places allow.
func (m *Evaluator) byName(a Access) (bool, Reason) {
	if ok, r := m.nameAllows(a, a.Path, false); !ok {
		return false, r
	}
	if a.Op == OpRename || a.Op == OpLink {
		if ok, r := m.nameAllows(a, a.To, true); !ok {
			return false, r
		}
	}
	_, r := m.byPath(a)
	return true, r
}

func (m *Evaluator) nameAllows(a Access, p string, arrives bool) (bool, Reason) {
	path, floor, ok := m.under(p)
	if !ok {
		return true, Reason{}
	}
	in, git, opener := m.Names.inGit(path, floor)
	if git.Inside {
		if gitForbids(a, git, arrives, m) {
			r := Reason{Bound: policy.BoundFiles, Field: in.Field, Why: p + " lies in a git directory, where tools may not have it", Remedy: "name .git in Files.Protect.Except, which opens all of git's directories"}
			if opener != "" {
				r.Remedy = "name " + opener + " in Files.Protect.Except, if git outside may obey it"
			}
			return false, r
		}
	}
	for _, n := range m.Names.Rules {
		if git.Inside && strings.HasPrefix(n.Name, ".git/") && !n.Hides {
			continue
		}
		how := n.match(path, floor)
		if how == matchNone || how == matchBelow && n.Kind != protected.Whole && !n.Hides {
			continue
		}
		if m.Policy.Files.Protect.NoNewRepositories && a.Op == OpCreate && how == matchExact && n.Kind == protected.GitFile {
			return false, Reason{Bound: policy.BoundFiles, Field: "Files.Protect.NoNewRepositories", Why: p + " would be a new repository", Remedy: "leave it false"}
		}
		if why := n.forbids(a, how, arrives); why != "" {
			return false, n.reason(p, why, "/"+strings.Join(path[:floor], "/"))
		}
	}
	return true, Reason{}
}

// reason says that a path below root is n, lies below it or is above it (why), and what would allow it.
func (n NameRule) reason(p, why, root string) Reason {
	r := Reason{Bound: policy.BoundFiles, Field: n.Field, Why: p + " " + why + " the protected name " + n.Name, Remedy: "name it in Files.Protect.Except"}
	switch {
	case n.obeyed && n.Name[0] != '/':
		r.Why += ", where git runs hooks: a configuration of git names it (core.hooksPath)"
		r.Remedy = "name " + pathrule.Join(root, n.Name) + " in Files.Write, which opens that name everywhere"
	case n.obeyed:
		r.Why, r.Remedy = p+" "+why+" "+n.Name+", which a configuration of git names", "name it in Files.Write"
	case n.Hides:
		r.Why, r.Remedy = p+" "+why+" the hidden name "+n.Name, "take it out of Files.HideNames"
	case strings.HasPrefix(n.Field, "Files.Protect.Add"):
		r.Remedy = "take it out of Files.Protect.Add"
	case slices.Contains(policy.BuildNames(), n.Name):
		r.Remedy += ", or set Files.Protect.BuildFiles"
	}
	return r
}

// inGit finds the directory named .git that the path lies in, and what the list of names in git directories makes of it. Whether
// other directories have the shape of one is for the supervisor to see.
//
// opener is the name that opens it when it is taken out of the list; "": there is none.
func (n *nameRules) inGit(path []string, floor int) (_ NameRule, _ supervisor.Judgement, opener string) {
	i := slices.IndexFunc(n.Rules, func(r NameRule) bool { return r.Name == ".git" && !r.Hides })
	if i < 0 || floor >= len(path) {
		return NameRule{}, supervisor.Judgement{}, ""
	}
	for at := len(path) - 1; at > 0 && at >= floor; at-- {
		if !samePart(".git", path[at-1]) {
			continue
		}
		has := func(name string) bool {
			return slices.ContainsFunc(n.Rules, func(r NameRule) bool { return r.Name == name && !r.Hides })
		}
		inside := path[at:]
		j := supervisor.Inside(inside, true)
		switch {
		case inside[0] == "hooks" && len(inside) > 1:
			opener = ".git/hooks"
		case strings.HasPrefix(strings.Join(inside, "/"), "info/attributes"):
			opener = ".git/info/attributes"
		case inside[0] == "config", inside[0] == "config.lock":
			opener = ".git/config"
		}
		switch {
		case opener == "" || has(opener):
		case opener == ".git/config":
			j.Config, j.Lock = false, false
		default:
			j.Whole = false
		}
		return n.Rules[i], j, opener
	}
	return NameRule{}, supervisor.Judgement{}, ""
}

// gitForbids is what may not be done in a git directory.
func gitForbids(a Access, j supervisor.Judgement, arrives bool, m *Evaluator) bool {
	names := j.Whole || j.Config || j.CommonDir || j.Lock || j.Text
	switch a.Op {
	case OpWrite:
		return names
	case OpLink:
		return names || arrives && j.OnlyDir
	case OpCreate:
		return names && !(j.Lock && !a.Dir) || j.OnlyDir && !a.Dir
	case OpSymlink:
		return names || !j.Probe || strings.ContainsAny(a.To, "/.")
	case OpBind, OpSetXattr:
		return true
	case OpRemove:
		return j.Whole && !j.Loose || j.Config || j.Lock
	case OpChmod:
		return j.Whole || j.Fixed
	case OpRename:
		if !a.Dir {
			return j.Whole || j.Config || j.CommonDir || j.Lock || arrives && (j.Text || j.OnlyDir)
		}
		if names || !j.Data {
			return true
		}
		path, floor, ok := m.under(a.Path)
		_, from, _ := m.Names.inGit(path, floor)
		return arrives && (!ok || !j.Tree || !from.Tree)
	}
	return false
}

// forbids says how the path has to do with the name if the access is forbidden by
// that, and "" if not.
func (n NameRule) forbids(a Access, how match, arrives bool) string {
	verdict := false
	switch how {
	case matchAbove, matchInWildcard:
		verdict = !n.Hides && forbiddenAbove(a, how, arrives)
		if verdict {
			return "is above"
		}
		return ""
	default:
		if n.Hides {
			verdict = forbiddenHidden(a.Op, a.Dir)
		} else {
			verdict = forbiddenName(a, n.Kind, arrives)
		}
	}
	switch {
	case !verdict:
		return ""
	case how == matchExact:
		return "is"
	}
	return "lies below"
}

// forbiddenAbove: what is moved or linked to a place above a protected name would
// bring that name along, and what is moved away would take it along.
func forbiddenAbove(a Access, how match, arrives bool) bool {
	switch a.Op {
	case OpRename:
		return a.Dir
	case OpSymlink:
		return how == matchAbove || strings.ContainsAny(a.To, "/.") // git init makes links to a neighbour, to see whether they work
	}
	return false
}

// forbiddenHidden: a hidden name's content cannot be had by any name. What it is
// called, and that it goes, gives nothing away.
func forbiddenHidden(d Op, dir bool) bool {
	switch d {
	case OpRead, OpList, OpWrite, OpRename, OpLink, OpSymlink, OpBind, OpSetXattr:
		return true
	case OpCreate:
		return !dir
	}
	return false
}

// forbiddenName is what may not be done to a protected name of this kind.
func forbiddenName(a Access, kind protected.Kind, arrives bool) bool {
	switch a.Op {
	case OpWrite, OpLink, OpSymlink, OpBind, OpSetXattr:
		return true
	case OpCreate:
		if kind == protected.Lock {
			return a.Dir
		}
		return !a.Dir || kind != protected.GitFile // a directory named .git is how a repository begins
	case OpRemove:
		return kind != protected.GitFile && kind != protected.CommonDir
	case OpChmod:
		return kind == protected.Whole
	case OpRename:
		return arrives || kind != protected.GitFile || !a.Dir
	}
	return false
}
