package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
)

// ProtectedNames returns the names that a [Policy] protects below its writable
// directories unless [Protect] says otherwise: what makes programs outside the
// sandbox run something, such as ".git/hooks" and ".bashrc". They are held in every directory that
// the tool has not made, at every depth, whether or not they exist, and whatever their case: some file
// systems fold it, and some let the tool choose. In a directory that it has made they are free, but for git directories, the top of a
// writable one, and all of Files.Home and Files.Tmp.
//
// In a name a slash joins components, "*" stands for any one component, "**" for
// one or more, a "*" at the end of a component for any ending, and one at its beginning
// for any beginning. Other patterns ("{a,b}", "?", "[x]") are errors in a policy. A name covers the file or directory and all that lies beneath, also by
// the spellings that NTFS and vfat have for it (".git.", "GIT~1", ".git:stream").
//
// ".git" stands for git directories, whatever they are called: what has the shape of
// one (HEAD, objects and refs) is one. Inside, tools may have what git needs, and
// nothing that makes git run a program: objects, refs, logs, the index and messages
// are free, a configuration takes harmless keys, hooks and attributes are closed, and so is what is not known. The names below
// ".git" say what of that may be left out one by one: ".git/hooks", ".git/config" and ".git/info/attributes". Without ".git" in the list, git directories are not looked for.
//
// With ".git/hooks" in the list, protected is also what core.hooksPath and include.path of an existing repository name
// below a writable directory: of the repository that such a directory lies in, of its own and of those one level below,
// with their submodules and linked worktrees; and of the user's and the machine's configuration; and the files that commands in these name (filters,
// editors, helpers, aliases). They are read when the sandbox is made. A relative
// core.hooksPath is protected at every depth, since it counts in each work tree; of one with an ordinary name, such as "hooks", what git runs in it. [Files] Write with
// such a path leaves it to the tool. Protected, too, is each directory worktrees/NAME of a repository whose work tree the policy does
// not let be written: git worktree prune inside would remove it, since it does not see that work tree. A work tree that core.worktree of an existing repository names, as a submodule's does, stays where it is: neither it nor a directory above it can
// be moved, or become a link.
//
// What a symbolic link leads to that stands at a protected name when the sandbox is made is protected, too: in the top of a writable directory, in repositories one
// level below and in the home.
//
// A character beyond ASCII counts as none where names are compared, but for those
// that fold to ASCII: "café" covers "caf", too. Its other spellings, in two
// characters, are not covered where a file system takes both for one.
//
// It returns a copy. Names of files that only programs inside would obey are not
// in it, nor are instructions for agents in prose, such as AGENTS.md. docs/protected-names.md lists
// them by the programs that obey them, and which are [Protect]'s BuildFiles.
func ProtectedNames() []string {
	patterns := protected.Patterns()
	names := make([]string, len(patterns))
	for i, p := range patterns {
		names[i] = p.Path
	}
	return names
}

// BuildNames returns those of ProtectedNames that Protect.BuildFiles leaves open.
func BuildNames() []string {
	var names []string
	for _, n := range protected.Names() {
		if n.Build {
			names = append(names, n.Path)
		}
	}
	return names
}

// ProtectedPatterns is what f protects, in the notation of [ProtectedNames].
func (f Files) ProtectedPatterns() []string {
	if f.Protect.Off {
		return nil
	}
	var names, open []string
	if f.Protect.BuildFiles {
		open = BuildNames()
	}
	for _, n := range ProtectedNames() {
		if !slices.Contains(f.Protect.Except, n) && !slices.Contains(open, n) && !slices.Contains(f.Protect.Except, strings.TrimSuffix(n, ".lock")) {
			names = append(names, n)
		}
	}
	for _, n := range f.Protect.Add {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func (p Protect) validate() error {
	if p.Off && (len(p.Add) > 0 || len(p.Except) > 0 || p.BuildFiles || p.Everywhere) {
		return &PolicyError{Field: "Files.Protect", Problem: "Off contradicts Add, Except, BuildFiles and Everywhere", Remedy: "leave Off false, or the others zero"}
	}
	if err := checkNames("Files.Protect.Add", p.Add); err != nil {
		return err
	}
	if p.NoNewRepositories && (p.Off || slices.Contains(p.Except, ".git")) {
		return &PolicyError{Field: "Files.Protect.NoNewRepositories", Problem: "git directories are not protected", Remedy: "leave Off false, and .git out of Except"}
	}
	known := ProtectedNames()
	for i, n := range p.Except {
		if !slices.Contains(known, n) {
			return &PolicyError{Field: errtext.Indexed("Files.Protect.Except", i), Value: n, Problem: "no such protected name",
				Remedy: "write it as ProtectedNames has it"}
		}
		if slices.Contains(p.Add, n) {
			return &PolicyError{Field: errtext.Indexed("Files.Protect.Except", i), Value: n, Problem: "Add has the same name", Remedy: "remove one of the two"}
		}
	}
	return nil
}

// maxNames is how many names the supervisor takes in one list.
const maxNames = 4000

// checkNames asks the supervisor, which will match them, whether it understands the names.
func checkNames(field string, names []string) error {
	if len(names) > maxNames {
		return &PolicyError{Field: field, Problem: "too many names", Remedy: "at most 4000"}
	}
	for i, n := range names {
		if strings.ContainsAny(n, `?[]{}|\`) || strings.HasPrefix(n, "~/") {
			return &PolicyError{Field: errtext.Indexed(field, i), Value: n, Problem: "has a pattern or a shell's notation, which would stand for itself and cover no file",
				Remedy: `list each name; "*" at a component's beginning or end is the only wildcard within one`}
		}
		for c := range strings.SplitSeq(n, "/") {
			text, begins := strings.CutSuffix(c, "*")
			text, ends := strings.CutPrefix(text, "*")
			if (begins || ends) && text != "" && text != "*" && pathrule.FoldName(text) == "" {
				return &PolicyError{Field: errtext.Indexed(field, i), Value: n, Problem: "would cover every name: no character of it is ASCII", Remedy: "give it an ASCII character"}
			}
		}
		r := supervisor.Rules{Names: []protected.Pattern{{Path: n}}}
		if _, err := r.Encode(); err != nil {
			return &PolicyError{Field: errtext.Indexed(field, i), Value: n, Problem: "not a name that can be matched", Err: err,
				Remedy: `write file names joined by slashes, without "." and "..", with "*" only as a whole component that is not the first, or at a component's beginning or end`}
		}
	}
	return nil
}

// DecidesWithin is Patience, or its default.
func (f Files) DecidesWithin() time.Duration { return cmp.Or(f.Patience, 30*time.Second) }

// NeverAsked says why Decide is not asked about the file at a path without links, by its name; "": it is asked.
func (f Files) NeverAsked(path string, write bool) string {
	if errtext.Printable(path) != path || strconv.Quote(path) != `"`+path+`"` {
		return "its path is no plain text"
	}
	f.Protect.Off, f.Protect.BuildFiles = false, false
	rules := supervisor.Rules{Roots: []supervisor.Root{{Path: "/", Fold: true}}, Hidden: f.HideNames}
	kinds := map[string]protected.Kind{}
	for _, p := range protected.Patterns() {
		kinds[p.Path] = p.Kind
	}
	for _, name := range f.ProtectedPatterns() {
		rules.Names = append(rules.Names, protected.Pattern{Path: name, Kind: kinds[name]})
	}
	b, err := rules.Encode()
	if err != nil {
		return "its name cannot be judged: " + err.Error()
	}
	switch j, ok := supervisor.Judge(b, path); {
	case !ok:
		return "its name cannot be judged"
	case j.Hidden:
		return "the policy hides files of this name"
	case write && isHeld(j):
		return "it has a protected name, which programs outside of the sandbox obey"
	}
	return ""
}

// isHeld reports whether a path is, or lies in, what a protected name covers.
func isHeld(j supervisor.Judgement) bool {
	return j.Whole || j.Config || j.GitFile || j.CommonDir || j.Lock || j.Text || j.Inside
}
