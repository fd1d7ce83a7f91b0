package policy

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
)

// mostFiles is how many files of one directory are suggested one by one: with more the directory is.
const mostFiles = 8

// Suggest says what would allow what was denied, each path and host by itself, but for more than eight files of one directory.
func Suggest(denied []Violation) Suggestion {
	var s Suggestion
	for _, v := range denied {
		w := v.Widening
		w.Why = v.Operation + " by " + cmp.Or(errtext.Shorten(v.Claimed), "the tool")
		if v.Operation == "" {
			w.Why = strings.TrimSpace(v.Protocol + " " + v.Method)
		}
		if against := v.speaksAgainst(); against != "" {
			s.Not = append(s.Not, Widening{Field: w.Field, Value: cmp.Or(w.Value, v.Path, v.Target()), Why: against, Tree: w.Tree, Look: w.Look})
			continue
		}
		s.Add = append(s.Add, w)
	}
	s.Add = withoutCovered(s.Add)
	if grouped := grouped(s.Add); len(grouped) < len(s.Add) {
		s.Add = withoutCovered(grouped)
	}
	s.Not = slices.DeleteFunc(unique(s.Not), func(n Widening) bool { // what exists inside as soon as the rest is shown
		return n.Look && n.Tree && slices.ContainsFunc(s.Add, func(w Widening) bool {
			return strings.HasPrefix(w.Field, "Files.") && pathrule.Within(w.Value, n.Value)
		})
	})
	return s
}

// speaksAgainst says why what would allow the violation is not suggested; "": it is.
func (v Violation) speaksAgainst() string {
	w := v.Widening
	switch {
	case w.Field == "":
		return v.Why + "; " + v.allowedBy()
	case w.Secret != "":
		return w.Secret + "; to allow it: add it to " + w.Field
	case w.Look && w.Tree:
		return "only its metadata was asked for, and Files.Read would show all that lies in it"
	case w.Field == "Files.Write" && (pathrule.WithinAny(w.Value, systemDirs) || path.Dir(w.Value) == "/"):
		return "programs outside of the sandbox run or obey what lies there; to allow it: add it to Files.Write"
	case w.Field == "Files.Write" && (isProtected(w.Value) || isProtected(v.Path)):
		return "it is a protected name, which programs outside of the sandbox obey; to allow it: add it to Files.Write"
	case w.Tree && path.Dir(w.Value) == "/":
		return "it is a whole directory of the root; to allow it: add it to " + w.Field
	}
	return ""
}

var systemDirs = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/proc", "/run", "/sbin", "/sys", "/usr", "/var"}

// protectedRules are the protected names, as the supervisor has them.
var protectedRules = sync.OnceValues(func() ([]byte, error) {
	return (&supervisor.Rules{Roots: []supervisor.Root{{Path: "/", Fold: true}}, Names: protected.Patterns()}).Encode()
})

// isProtected reports whether a path is, or lies in, what ProtectedNames covers.
func isProtected(p string) bool {
	b, err := protectedRules()
	if err != nil {
		return true
	}
	j, ok := supervisor.Judge(b, p)
	return !ok || isHeld(j)
}

// unique leaves the first of equal ones, in the order of fields and values.
func unique(list []Widening) []Widening {
	slices.SortStableFunc(list, func(a, b Widening) int { return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Value, b.Value)) })
	return slices.CompactFunc(list, func(a, b Widening) bool { return a.Field == b.Field && a.Value == b.Value })
}

// withoutCovered leaves out what another of the list grants already.
func withoutCovered(list []Widening) []Widening {
	slices.SortStableFunc(list, func(a, b Widening) int { // of equal values a tree stands first
		if a.Tree != b.Tree && a.Field == b.Field && a.Value == b.Value {
			if a.Tree {
				return -1
			}
			return 1
		}
		return 0
	})
	list = unique(list)
	return slices.DeleteFunc(slices.Clone(list), func(w Widening) bool {
		return strings.HasPrefix(w.Field, "Files.") && slices.ContainsFunc(list, func(around Widening) bool {
			same := around.Field == w.Field
			grants := same || around.Field == "Files.Write" && w.Field == "Files.Read"
			return grants && (around.Tree && pathrule.Within(w.Value, around.Value) || !same && around.Value == w.Value) && around.Value+around.Field != w.Value+w.Field
		})
	})
}

// grouped has the directory in the place of more than mostFiles of its files.
func grouped(list []Widening) (out []Widening) {
	files := map[string]int{}
	of := func(w Widening) string {
		if w.Field != "Files.Read" || w.Tree || w.NoTree {
			return ""
		}
		return path.Dir(w.Value)
	}
	for _, w := range list {
		files[of(w)]++
	}
	done := map[string]bool{}
	for _, w := range list {
		dir := of(w)
		if dir == "" || files[dir] <= mostFiles || path.Dir(dir) == "/" || dir == "/" {
			out = append(out, w)
		} else if !done[dir] {
			done[dir] = true
			out = append(out, Widening{Field: w.Field, Value: dir, Tree: true, Why: fmt.Sprintf("%d files of it; it shows the others, too", files[dir])})
		}
	}
	return out
}
