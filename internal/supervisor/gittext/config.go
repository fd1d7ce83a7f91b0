package gittext

// A tool may change its repository's configuration, but not plant in it what git runs: core.hooksPath,
// core.fsmonitor, core.sshCommand, aliases, filters, pagers, includes and whatever later versions add. So the
// rule is a list of what is harmless. A new configuration is accepted when the lines that are *not* on the list
// are, one by one and in their sections, those of the configuration it replaces.
//
// The grammar is narrower than git's (git-config(1), "CONFIGURATION FILE"): a line that this file does not
// understand is never harmless, which is the safe answer.

// harmlessKeys are the keys whose values can at worst break the repository they stand in.
var harmlessKeys = [...]harmlessKey{
	{"core", "repositoryformatversion", false, anyValue},
	{"core", "filemode", false, anyValue},
	{"core", "bare", false, anyValue},
	{"core", "logallrefupdates", false, anyValue},
	{"core", "ignorecase", false, anyValue},
	{"core", "precomposeunicode", false, anyValue},
	{"core", "symlinks", false, anyValue},
	{"core", "autocrlf", false, anyValue},
	{"core", "eol", false, anyValue},
	{"core", "worktree", false, treeValue}, // see DropWorktree
	{"core", "sharedrepository", false, groupValue},
	{"core", "compression", false, anyValue},
	{"core", "abbrev", false, anyValue},
	{"core", "quotepath", false, anyValue},
	{"core", "safecrlf", false, anyValue},
	{"core", "sparsecheckout", false, anyValue},
	{"core", "sparsecheckoutcone", false, anyValue},
	{"receive", "denynonfastforwards", false, anyValue}, // git init --shared
	{"extensions", "objectformat", false, anyValue},
	{"extensions", "refstorage", false, refsValue},
	{"user", "name", false, anyValue},
	{"user", "email", false, anyValue},
	{"init", "defaultbranch", false, anyValue},
	{"branch", "remote", true, remoteValue},
	{"branch", "merge", true, anyValue},
	{"branch", "rebase", true, anyValue},
	{"remote", "url", true, urlValue},
	{"remote", "fetch", true, anyValue},
	{"remote", "tagopt", true, anyValue},
	{"remote", "prune", true, anyValue},
	{"branch", "description", true, anyValue},
	{"branch", "pushremote", true, remoteValue},
	{"submodule", "shallow", true, anyValue},
	{"submodule", "url", true, urlValue},
	{"submodule", "active", true, anyValue},
	{"submodule", "branch", true, anyValue},
	{"submodule", "active", false, anyValue},
	{"pull", "rebase", false, anyValue},
	{"pull", "ff", false, anyValue},
	{"push", "default", false, anyValue},
	{"push", "autosetupremote", false, anyValue},
	{"fetch", "prune", false, anyValue},
	{"merge", "conflictstyle", false, anyValue},
}

// Judge reads the present line.
//
//go:norace
func (t *Text) Judge() Verdict {
	part := t.ongoing
	t.ongoing = t.end > t.at && t.c(t.end-1) == '\\'
	if part {
		return Foreign
	}
	quotes := uint(0)
	plain := true
	for i := t.at; i < t.end; i++ {
		switch c := t.c(i); {
		case c == '"':
			quotes++
		case c == '\\', c == 0x7f, c < ' ' && c != '\t':
			plain = false
		}
	}
	i := t.blanks(t.at)
	if t.c(i) == '[' && i < t.end {
		return harmlessIf(t.header(i) && plain)
	}
	if !plain || quotes&1 != 0 {
		return Foreign
	}
	if i >= t.end || t.c(i) == '#' || t.c(i) == ';' {
		return Harmless
	}
	if !t.known {
		return Foreign
	}
	return t.pair(i)
}

//go:norace
func harmlessIf(fine bool) Verdict {
	if fine {
		return Harmless
	}
	return Foreign
}

//go:norace
func (t *Text) blanks(i uint) uint {
	for i < t.end && (t.c(i) == ' ' || t.c(i) == '\t') {
		i++
	}
	return i
}

//go:norace
func (t *Text) word(i uint) uint {
	for ; i < t.end; i++ {
		c := lower(t.c(i))
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			break
		}
	}
	return i
}

// header reads `[name]` or `[name "subsection"]` at i, with nothing behind it.
//
//go:norace
func (t *Text) header(i uint) bool {
	t.sec, t.secEnd, t.known, t.sub = t.at, t.end, false, false
	t.name = i + 1
	t.nameEnd = t.word(t.name)
	i = t.nameEnd
	if i == t.name {
		return false
	}
	if j := t.blanks(i); j > i && t.c(j) == '"' {
		t.sub = true
		for i = j + 1; i < t.end && t.c(i) != '"' && t.c(i) != '\\'; i++ {
		}
		if t.c(i) != '"' || i == j+1 || t.WorkTree && !t.insidePath(j+1, i) {
			return false // the name is that of a directory below modules
		}
		i++
	}
	t.known = i < t.end && t.c(i) == ']' && t.blanks(i+1) == t.end
	return t.known
}

// pair reads `key = value` at i and looks it up.
//
//go:norace
func (t *Text) pair(i uint) Verdict {
	t.key, t.keyEnd = i, t.word(i)
	i = t.blanks(t.keyEnd)
	if t.keyEnd == t.key || i >= t.end || t.c(i) != '=' {
		return Foreign
	}
	t.val = t.blanks(i + 1)
	if t.WorkTree {
		return t.harmlessModule()
	}
	for k := range harmlessKeys {
		h := &harmlessKeys[k]
		if h.sub == t.sub && t.is(t.name, t.nameEnd, h.section) && t.is(t.key, t.keyEnd, h.key) {
			switch h.value {
			case urlValue:
				return t.harmlessURL()
			case remoteValue:
				return harmlessIf(t.harmlessRemote())
			case treeValue:
				return harmlessIf(t.Removing)
			case groupValue:
				return harmlessIf(t.sharesWithGroup())
			case refsValue:
				return harmlessIf(t.is(t.val, t.end, "files") || t.is(t.val, t.end, "reftable"))
			}
			return Harmless
		}
	}
	return Foreign
}

// groupValues are those of core.sharedRepository by which git makes nothing writable to users beyond the repository's group.
var groupValues = [...]string{"umask", "group", "false", "true", "no", "yes", "off", "on", "0", "1", "0600", "0640", "0660"}

//go:norace
func (t *Text) sharesWithGroup() bool {
	for i := range groupValues {
		if t.is(t.val, t.end, groupValues[i]) {
			return true
		}
	}
	return false
}

// harmlessRemote accepts what a branch follows: this repository, or a remote that this very configuration gives a
// URL. Of any other word git would make a path relative to its working directory.
//
//go:norace
func (t *Text) harmlessRemote() bool {
	if t.Removing {
		return true
	}
	size := t.end - t.val
	if size == 1 && t.c(t.val) == '.' {
		return true
	}
	const head, tail = "[remote \"", "\"]\n\turl"
	for i := uint(0); i < t.N; i++ {
		if t.c(i) != '[' || (i > 0 && t.c(i-1) != '\n') || !t.is(i, i+uint(len(head)), head) {
			continue
		}
		name := i + uint(len(head))
		if equalBytes(t, t, name, name+size, t.val, t.end) && t.is(name+size, name+size+uint(len(tail)), tail) {
			return size > 0
		}
	}
	return false
}

// DropWorktree takes out of a submodule's configuration the core.worktree that git gives it, unless one stands there already. git
// finds the work tree by the .git file as well; and the path would count later, when links may have come in its way.
//
//go:norace
func (t *Text) DropWorktree(old *Text) {
	if !t.Modules {
		return
	}
	old.Rewind()
	for old.Next() {
		if old.Judge() == Foreign && old.isWorktree() {
			return
		}
	}
	t.Rewind()
	for t.Next() {
		if t.Judge() != Foreign || !t.isWorktree() {
			continue
		}
		to := t.at
		for i := t.pos; i < t.N; i++ {
			t.B[to&(Room-1)] = t.B[i&(Room-1)]
			to++
		}
		t.N, t.pos = to, t.at
	}
}

//go:norace
func (t *Text) isWorktree() bool { return t.IsKey("core", "worktree") }

// IsKey reports whether the present line, which Judge has read, sets this key, in small letters.
//
//go:norace
func (t *Text) IsKey(section, key string) bool {
	return t.known && !t.sub && t.is(t.name, t.nameEnd, section) && t.is(t.key, t.keyEnd, key) && t.key >= t.at && t.keyEnd <= t.end
}

// WorkTreePath returns where the value of core.worktree stands; 0, 0 where the text has none, or one with quotes or escapes.
//
//go:norace
func (t *Text) WorkTreePath() (at, end uint) {
	t.Rewind()
	for t.Next() {
		if t.Judge(); t.isWorktree() {
			at, end = t.val, t.end
		}
	}
	for i := at; i < end; i++ {
		if c := t.c(i); c == '"' || c == '\\' {
			return 0, 0
		}
	}
	return at, end
}
