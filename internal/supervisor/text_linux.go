package supervisor

// Texts of a git directory that are more than data: git runs, deletes or writes by what they say. gitLines has the reasons. What
// they say is checked when the tool renames a file to such a name (replaceChecked), or in a deferred write (deferred_linux.go); a rebase's
// todo takes renames alone, since git reads it the moment its editor is gone.

const (
	textNone = iota
	textTodo
	textStrategy
	textStrategyOpts
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
	case sp.isName("strategy_opts"):
		return textStrategyOpts
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
		return t.HarmlessTodo()
	case textStrategy:
		return t.HarmlessStrategy()
	case textStrategyOpts:
		return t.HarmlessStrategyOptions()
	case textOpts:
		return t.HarmlessOpts()
	case textApply:
		return t.HarmlessApply()
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
	s.text[1].N = 0
	if r := s.load(1, b.dir, &b.name[0]); r < 0 && r != -eNOENT {
		return false
	}
	s.text[0].KeepEntries(&s.text[1])
	return true
}
