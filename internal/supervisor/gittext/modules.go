package gittext

// .gitmodules lies in the work tree and says where submodules come from (gitmodules(5)). It is judged as a configuration is, with a list
// for it alone: git copies its URLs, and for a submodule that is checked out for the first time what update says.

// What a value in .gitmodules has to be, beside those of harmlessKeys.
const (
	pathValue = iota + refsValue + 1
	wordValue
	updateValue
)

var moduleKeys = [...]harmlessKey{
	{"submodule", "path", true, pathValue},
	{"submodule", "url", true, urlValue},
	{"submodule", "branch", true, wordValue},
	{"submodule", "update", true, updateValue},
	{"submodule", "ignore", true, wordValue},
	{"submodule", "shallow", true, wordValue},
	{"submodule", "fetchrecursesubmodules", true, wordValue},
}

// harmlessModule judges a pair of .gitmodules.
//
//go:norace
func (t *Text) harmlessModule() Verdict {
	for k := range moduleKeys {
		h := &moduleKeys[k]
		if !t.sub || !t.is(t.name, t.nameEnd, h.section) || !t.is(t.key, t.keyEnd, h.key) {
			continue
		}
		switch h.value {
		case urlValue:
			return t.harmlessURL()
		case pathValue:
			return harmlessIf(t.insidePath(t.val, t.end))
		case updateValue:
			return harmlessIf(t.is(t.val, t.end, "checkout") || t.is(t.val, t.end, "rebase") || t.is(t.val, t.end, "merge") || t.is(t.val, t.end, "none"))
		}
		return harmlessIf(t.c(t.val) != '-')
	}
	return Foreign
}

// insidePath reports whether the bytes from i to end are a path that stays in the work tree, and out of git directories.
//
//go:norace
func (t *Text) insidePath(i, end uint) bool {
	if i >= end || t.c(i) == '-' {
		return false
	}
	for i <= end {
		to := i
		for to < end && t.c(to) != '/' {
			if c := t.c(to); c == '"' || c == '~' || c == ':' {
				return false
			}
			to++
		}
		if to == i || t.c(to-1) == '.' || t.c(to-1) == ' ' || t.is(i, to, ".git") {
			return false // "." and "..", and other spellings of .git
		}
		i = to + 1
	}
	return true
}

// isRelative reports whether the URL is relative to that of the repository, as git submodule add ../x writes it.
//
//go:norace
func (t *Text) isRelative() bool {
	i := t.val + 1
	if t.c(i) == '.' {
		i++
	}
	return t.c(t.val) == '.' && t.c(i) == '/'
}
