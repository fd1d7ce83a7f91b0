package supervisor

// What may lie in a git directory: gitrepository-layout(5), and what git is seen to write. It is an
// allow-list, in one place: a path that no line names is closed. "?" stands for one byte, "*" for any bytes but "/",
// "^" for capitals with a "_" among them, and "/**" at the end for all beneath. Letters count as they are: "Objects" is closed where "objects"
// is not. Where a file system folds case, what another spelling of a closed path is, is closed, too (gitfold.go). The first line that fits counts. A linked
// worktree's directory, worktrees/NAME, is judged by the same lines again.

// The classes of paths in a git directory.
const (
	gitUnknown = iota // no line names it: it cannot be made, but removed
	gitKept           // it cannot be made, changed or removed
	gitDir            // a directory, and nothing else
	gitFixed          // as gitDir, and its mode stays
	gitData           // a file or directory of any content
	gitTree           // as gitData, below a directory of such
	gitConfig         // replaced by a checked copy
	gitLock           // made with O_EXCL, renamed to its name without .lock
	gitCommon         // "../.." and nothing else
	gitText           // a text that is checked when it is closed or renamed to its name: see text_linux.go
	gitModules        // below modules, outside what has the shape of a git directory
	gitProbe          // git init makes and removes a file and a link of this name
)

type gitLine struct {
	glob  string
	class uint8
	why   string
}

var gitLines = [...]gitLine{
	{"HEAD", gitData, "names a branch or commit"},
	{"config", gitConfig, "harmless settings may change, by git config"},
	{"config.lock", gitLock, "who holds it open would have the configuration open"},
	{"config.worktree", gitKept, "a configuration, too"},
	{"hooks", gitFixed, "templates make it"},
	{"hooks/*.sample", gitData, "git runs no hook of such a name"},
	{"hooks/**", gitKept, "git runs them"},
	{"info", gitFixed, "holds attributes"},
	{"info/attributes", gitKept, "filters and merge drivers are chosen by it"},
	{"info/exclude", gitData, "names of files to ignore"},
	{"info/exclude.*", gitData, "its editors' files"},
	{"info/refs*", gitData, "for dumb servers"},
	{"info/sparse-checkout*", gitData, "names of files"},
	{"info/commit-graphs/**", gitTree, ""},
	{"commondir", gitKept, "another directory's configuration and hooks would count"},
	{"remotes", gitFixed, "old templates make it"},
	{"remotes/**", gitUnknown, "the older place of a remote's URL, which is not checked there"},
	{"branches", gitFixed, "as remotes"},
	{"branches/**", gitUnknown, "as remotes"},
	{"objects", gitDir, ""},
	{"objects/info", gitDir, ""},
	{"objects/info/alternates", gitKept, "names a directory that git reads objects from"},
	{"objects/info/http-alternates", gitKept, "as alternates"},
	{"objects/**", gitTree, "content"},
	{"refs", gitDir, ""},
	{"refs/**", gitTree, "commits by name"},
	{"packed-refs", gitData, "commits by name"},
	{"packed-refs.lock", gitData, ""},
	{"packed-refs.new", gitData, ""},
	{"reftable", gitDir, ""},
	{"reftable/**", gitTree, "commits by name"},
	{"logs", gitDir, ""},
	{"logs/**", gitTree, "what names meant before"},
	{"index", gitText, "git writes files by the names in it: gitindex_linux.go"},
	{"index.lock", gitLock, "becomes the index"},
	{"index.*", gitData, "its locks and temporary files"},
	{"next-index-*", gitData, "git commit FILE"},
	{"sharedindex.*", gitText, "part of a split index"},
	{"sharedindex_*", gitData, "becomes one"},
	{"shallow", gitData, "where history ends"},
	{"shallow.lock", gitData, ""},
	{"shallow_??????", gitData, ""},
	{"description", gitData, "a line of text"},
	{"gc.*", gitData, "git gc's lock and log"},
	{"MERGE_RR", gitText, "git rerere copies the files it names into rr-cache, links followed"},
	{"MERGE_RR.lock", gitLock, "becomes MERGE_RR"},
	{"^", gitData, "MERGE_HEAD, COMMIT_EDITMSG and their like: commits and messages"},
	{"^.lock", gitData, "their locks"},
	{"^~", gitData, "what editors keep"},
	{".^.sw?", gitData, "what editors keep"},
	{"sed??????", gitData, "sed -i as an editor of messages"},
	{"HEAD.lock", gitData, ""},
	{"NOTES_MERGE_WORKTREE/**", gitTree, "notes being merged"},
	{"git-interpret-trailers-??????", gitData, "git commit --trailer"},
	{"addp-hunk-edit.diff", gitData, "git add -e"},
	{"rebased-patches", gitData, "git rebase --apply"},
	{"rr-cache", gitDir, ""},
	{"rr-cache/**", gitTree, "resolutions of conflicts"},
	{"lost-found", gitDir, ""},
	{"lost-found/**", gitTree, "git fsck --lost-found"},
	{"lfs", gitDir, ""},
	{"lfs/**", gitTree, "objects of git-lfs"},
	{"filter-repo", gitDir, ""},
	{"filter-repo/**", gitTree, "git-filter-repo's reports"},
	{"opencode", gitData, "a name of the project"},
	{"rebase-merge", gitDir, ""},
	{"rebase-merge/git-rebase-todo", gitText, "exec lines are commands"},
	{"rebase-merge/git-rebase-todo.lock", gitLock, ""},
	{"rebase-merge/strategy", gitText, "a program's name"},
	{"rebase-merge/strategy_opts", gitText, "that program's options"},
	{"rebase-merge/**", gitTree, "commits and messages"},
	{"rebase-apply", gitDir, ""},
	{"rebase-apply/strategy", gitText, "as in rebase-merge"},
	{"rebase-apply/strategy_opts", gitText, "as in rebase-merge"},
	{"rebase-apply/apply-opt", gitText, "--unsafe-paths writes outside the work tree"},
	{"rebase-apply/**", gitTree, "patches and messages"},
	{"sequencer", gitDir, ""},
	{"sequencer/opts", gitText, "a strategy is a program's name"},
	{"sequencer/opts.lock", gitLock, ""},
	{"sequencer/**", gitTree, "picks and reverts alone are taken from todo here"},
	{"worktrees", gitDir, ""},
	{"worktrees/*", gitDir, ""},
	{"worktrees/*/commondir", gitCommon, "the repository whose configuration and hooks count"},
	{"worktrees/*/gitdir", gitText, "git worktree remove deletes the directory it names"},
	{"worktrees/*/locked", gitData, "a reason"},
	{"worktrees/*/config", gitKept, "git makes none there; it counts if commondir is gone"},
	{"modules", gitDir, ""},
	{"modules/**", gitModules, "git directories of submodules"},
	{"t??????", gitProbe, "whether links work"},
}

// gitClass returns the class of the path in m from byte at on, which is relative to a git directory.
//
//go:norace
func (m *matcher) gitClass(at uint) uint8 {
	for {
		for i := range gitLines {
			if m.glob(gitLines[i].glob, at) {
				switch c := gitLines[i].class; {
				case c == gitModules:
					return m.moduleClass(at)
				case c == gitTree || c == gitData:
					return m.foldedClass(at, c)
				default:
					return c
				}
			}
		}
		next := m.inWorktree(at)
		if next == 0 {
			return gitUnknown
		}
		at = next
	}
}

// inWorktree returns where the path goes on below worktrees/NAME, or 0.
//
//go:norace
func (m *matcher) inWorktree(at uint) uint {
	const head = "worktrees/"
	if !m.begins(at, head) {
		return 0
	}
	for at += uint(len(head)); at < m.n; at++ {
		if m.path[at&(longRoom-1)] == '/' {
			return at + 1
		}
	}
	return 0
}

// moduleClass judges a path below modules which is in nothing that has the shape of a git directory yet. A submodule's name may
// have slashes, so any component but the first may be a name in a git directory that git is about to make: those that are
// obeyed are held already.
//
//go:norace
func (m *matcher) moduleClass(at uint) uint8 {
	end := m.n
	if m.fold {
		if end > longRoom/2-512 || m.otherSpelling(at) {
			return gitKept
		}
		at = m.foldCopy(at)
	}
	c := m.obeyedBelow(at)
	m.n = end
	return c
}

// otherSpelling reports whether a component of the path from byte at on may be another name to vfat or NTFS: see spell.go.
//
//go:norace
func (m *matcher) otherSpelling(at uint) bool {
	for ; at < m.n; at++ {
		c, d := m.path[at&(longRoom-1)], byte('/')
		if at+1 < m.n {
			d = m.path[(at+1)&(longRoom-1)]
		}
		if c == ':' || c == '~' && d >= '0' && d <= '9' || (c == '.' || c == ' ') && d == '/' {
			return true
		}
	}
	return false
}

// foldCopy puts the path from byte at on, as a file system reads it that folds case, into the upper half of m.path, which is
// free then, and returns where; n is its end.
//
//go:norace
func (m *matcher) foldCopy(at uint) uint {
	to := uint(longRoom / 2)
	for ; at < m.n; at++ {
		for w := folded(m.path[at&(longRoom-1)], m.path[(at+1)&(longRoom-1)], m.path[(at+2)&(longRoom-1)]); w != 0; w >>= 8 {
			m.path[to&(longRoom-1)] = byte(w)
			to++
		}
	}
	m.n = to
	return longRoom / 2
}

//go:norace
func (m *matcher) obeyedBelow(at uint) uint8 {
	slashes := 0
	for i := at; i < m.n; i++ {
		if m.path[i&(longRoom-1)] != '/' {
			continue
		}
		if slashes++; slashes < 2 {
			continue
		}
		for k := range gitLines {
			switch c := gitLines[k].class; {
			case (c == gitKept || c == gitUnknown || c == gitConfig || c == gitLock || c == gitText || c == gitProbe || c == gitCommon) && m.glob(gitLines[k].glob, i+1):
				if c == gitCommon {
					c = gitKept
				}
				return c
			case c == gitData && gitLines[k].glob == "hooks/*.sample" && m.glob(gitLines[k].glob, i+1):
				return c
			}
		}
	}
	return gitModules
}

//go:norace
func (m *matcher) begins(at uint, word string) bool {
	if at+uint(len(word)) > m.n {
		return false
	}
	for i := 0; i < len(word); i++ {
		if m.path[(at+uint(i))&(longRoom-1)] != word[i] {
			return false
		}
	}
	return true
}

// glob reports whether the path from byte at on is what the glob says.
//
//go:norace
func (m *matcher) glob(g string, at uint) bool {
	size := uint(len(g))
	i, star, back := uint(0), ^uint(0), uint(0)
	for {
		if i >= size && at == m.n {
			return true
		}
		want, c := byte(0), byte(0)
		if i < size {
			want = g[i]
		}
		if at < m.n {
			c = m.path[at&(longRoom-1)]
		}
		switch {
		case want == '*' && i+1 < size && g[i+1] == '*':
			return at < m.n
		case want == '*':
			star, back = i, at
			i++
			continue
		case want == '^' && capital(c):
			joined := false
			for at < m.n && capital(m.path[at&(longRoom-1)]) {
				joined = joined || m.path[at&(longRoom-1)] == '_'
				at++
			}
			if !joined {
				return false
			}
			i++
			continue
		case want != 0 && at < m.n && (want == c || want == '?' && c != '/'):
			i++
			at++
			continue
		}
		if star == ^uint(0) || back >= m.n || m.path[back&(longRoom-1)] == '/' {
			return false
		}
		back++
		i, at = star+1, back
	}
}

//go:norace
func capital(c byte) bool { return c >= 'A' && c <= 'Z' || c == '_' }

// gitHit returns the bits for a class.
//
//go:norace
func (m *matcher) gitHit(class, flags uint8, at uint) uint32 {
	switch class {
	case gitUnknown:
		return hitWhole | hitLoose
	case gitKept:
		if flags&flagHooks != 0 && m.begins(at, "hooks/") || flags&flagAttributes != 0 && m.begins(at, "info/attributes") {
			return 0
		}
		return hitWhole
	case gitConfig, gitLock:
		if flags&flagConfig != 0 && m.begins(at, "config") {
			return 0
		}
		if class == gitConfig {
			return hitConfig
		}
		return hitLock
	case gitFixed:
		return hitFixed
	case gitCommon:
		return hitCommon
	case gitText:
		return hitText
	}
	return 0
}

// withGit joins the bits of a class with those of the names: what a name protects cannot be removed.
//
//go:norace
func (m *matcher) withGit(hit uint32) uint32 {
	if m.hit&hitWhole != 0 {
		hit &^= hitLoose
	}
	return m.hit | hit
}

//go:norace
func (m *matcher) isComp(i uint, word string) bool {
	at := uint(m.off[i&(compRoom-1)])
	return m.begins(at, word) && uint(m.off[(i+1)&(compRoom-1)])-1-at == uint(len(word))
}
