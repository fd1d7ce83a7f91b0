package supervisor

// Texts of a git directory that are more than data: git runs, deletes or writes by what they say. gitLines has the reasons. What
// they say is checked when the tool renames a file to such a name (replaceChecked), or in a deferred write (deferred_linux.go); a rebase's
// todo takes renames alone, since git reads it the moment its editor is gone.

const (
	textNone = iota
	textTodo
	textStrategy
	textApply
	textOpts
	textGitdir
	textIndex
	textRerere
	textConfig // a configuration or a .gitmodules: hitConfig
)

// textKind says which text the resolved path's name is; the resolved path has hitText.
//
//go:norace
func (sp *resolvedPath) textKind() int {
	switch {
	case sp.isName("git-rebase-todo"):
		return textTodo
	case sp.isName("strategy"):
		return textStrategy
	case sp.isName("apply-opt"):
		return textApply
	case sp.isName("opts"):
		return textOpts
	case sp.isName("merge_rr"):
		return textRerere
	case sp.isName("gitdir"):
		return textGitdir
	case sp.isName("index"), sp.name[0]|0x20 == 's' && sp.name[1]|0x20 == 'h': // sharedindex.*
		return textIndex
	}
	return textNone
}

// harmlessText judges text 0 as what resolved path b is to hold.
//
//go:norace
func (s *State) harmlessText(b *resolvedPath) bool {
	t := &s.text[0]
	switch b.textKind() {
	case textTodo:
		return t.harmlessTodo()
	case textStrategy:
		return t.plainWords(0)
	case textOpts:
		return t.plainWords('=')
	case textApply:
		return t.harmlessApply()
	case textRerere:
		return s.keepConflicts(b)
	}
	return false
}

// keepConflicts takes out of MERGE_RR, which is text 0, the entries that do not stand in the present one: git rerere of the user's
// would copy what they name, through links that come later, into rr-cache. So a conflict that git met in the sandbox is not
// recorded as an example; those on record are applied, and an entry goes once its conflict is solved.
//
//go:norace
func (s *State) keepConflicts(b *resolvedPath) bool {
	s.text[1].n = 0
	if r := s.load(1, b.dir, &b.name[0]); r < 0 && r != -eNOENT {
		return false
	}
	t, to := &s.text[0], uint(0)
	for at := uint(0); at < t.n; {
		end := t.entryEnd(at)
		for keep := s.text[1].hasEntry(t, at, end); at < end; at++ {
			if keep {
				t.b[to&(textRoom-1)] = t.c(at)
				to++
			}
		}
	}
	t.n = to
	return true
}

// entryEnd returns the byte behind the NUL that ends the entry at byte at.
//
//go:norace
func (t *text) entryEnd(at uint) uint {
	for at < t.n && t.c(at) != 0 {
		at++
	}
	return min(at+1, t.n)
}

// hasEntry reports whether an entry of t is bytes at to end of o.
//
//go:norace
func (t *text) hasEntry(o *text, at, end uint) bool {
	for i := uint(0); i < t.n; {
		next := t.entryEnd(i)
		if equalBytes(t, o, i, next, at, end) {
			return true
		}
		i = next
	}
	return false
}

// todoWords are the commands of a rebase but "exec" and "x" (sequencer.c of git, todo_command_info).
var todoWords = [...]string{
	"pick", "p", "revert", "edit", "e", "reword", "r", "fixup", "f", "squash", "s", "break", "b", "label", "l", "reset", "t", "merge", "m",
	"update-ref", "u", "noop", "drop", "d",
}

// harmlessTodo reports whether each line is empty, a comment, or begins with a command that starts no program.
//
//go:norace
func (t *text) harmlessTodo() bool {
	for at := uint(0); at < t.n; {
		end := at
		for end < t.n && t.c(end) != '\n' {
			end++
		}
		for at < end && (t.c(at) == ' ' || t.c(at) == '\t') {
			at++
		}
		word := at
		for word < end && t.c(word) != ' ' && t.c(word) != '\t' {
			if c := t.c(word); c < ' ' || c == 0x7f {
				return false
			}
			word++
		}
		fine := at == end || t.c(at) == '#'
		for i := range todoWords {
			fine = fine || t.spells(at, word, todoWords[i])
		}
		if !fine {
			return false
		}
		at = end + 1
	}
	return true
}

//go:norace
func (t *text) spells(at, end uint, word string) bool {
	if end-at != uint(len(word)) {
		return false
	}
	for i := 0; i < len(word); i++ {
		if t.c(at+uint(i)) != word[i] {
			return false
		}
	}
	return true
}

// plainWords reports whether the text has no slash and no dot: git runs git-merge-STRATEGY, which a slash makes a path.
//
//go:norace
func (t *text) plainWords(also byte) bool {
	for i := uint(0); i < t.n; i++ {
		if c := t.c(i); c == '/' || c == 0 || c == '\\' || also == 0 && (c == ' ' || c == '\t') {
			return false
		}
	}
	return true
}

// harmlessApply accepts options of git apply that say how to treat blanks, and how much context has to agree.
//
//go:norace
func (t *text) harmlessApply() bool {
	for at := uint(0); at < t.n; {
		for at < t.n && (t.c(at) == ' ' || t.c(at) == '\n' || t.c(at) == '\'') {
			at++
		}
		end := at
		for end < t.n && t.c(end) != ' ' && t.c(end) != '\n' {
			if c := t.c(end); c == '/' || c == '\\' || c < ' ' {
				return false
			}
			end++
		}
		if end > at && !t.startsWith(at, "--whitespace=") && !t.startsWith(at, "-C") && !t.startsWith(at, "-p") && !t.startsWith(at, "--ignore-") && !t.startsWith(at, "--reject") {
			return false
		}
		at = end
	}
	return true
}

//go:norace
func (t *text) startsWith(at uint, word string) bool { return t.spells(at, at+uint(len(word)), word) }
