package supervisor

// pathMax is PATH_MAX, with the NUL at a path's end.
const pathMax = 4096

// A Judgement is what encoded rules say of one path: what the supervisor knows
// when it decides.
type Judgement struct {
	Whole     bool // a Whole name, or something beneath one
	Config    bool // a GitConfig file
	GitFile   bool
	CommonDir bool
	Lock      bool // the lock of a file that is replaced by checked copies
	Text      bool // a text of a git directory that is checked before it stands
	Fixed     bool // a directory of a git directory whose mode stays
	Inside    bool // in a directory named .git
	OnlyDir   bool // where a directory may stand, and no file
	Tree      bool // in it, below a directory of plain data
	Data      bool // as Tree, or plain data itself
	Probe     bool // in it, a name that git init makes a link of
	Loose     bool // with Whole: it may be removed
	Hidden    bool // a hidden name, or something beneath one
	Above     bool // an ancestor of a protected name
	Deep      bool // as Above, inside the "**" of a name
	Placed    bool // an Unread path, something beneath one, or a Free path in what is held: it is not removed
	Fenced    bool // its mode, owner and times stay as they are
}

// Inside says what the list of names in git directories makes of a path below a directory named .git, by its components. Of the
// names that a policy leaves open it knows nothing.
func Inside(path []string, fold bool) Judgement {
	m := &matcher{fold: fold}
	for i, c := range path {
		if i > 0 && m.n < pathMax {
			m.path[m.n] = '/'
			m.n++
		}
		m.n += uint(copy(m.path[m.n:pathMax], c))
	}
	class := m.gitClass(0)
	hit := m.gitHit(class, 0, 0)
	has := func(bit uint32) bool { return hit&bit != 0 }
	return Judgement{
		Whole: has(hitWhole), Config: has(hitConfig), CommonDir: has(hitCommon), Lock: has(hitLock), Text: has(hitText), Fixed: has(hitFixed),
		Inside: true, Tree: class == gitTree, Data: class == gitTree || class == gitData, Probe: class == gitProbe, OnlyDir: class == gitDir || class == gitFixed, Loose: has(hitLoose),
	}
}

// Judge says what the rules, as Encode has written them, make of a canonical
// path. It is for tests of plans. ok is false if the rules or the path are
// nothing that the supervisor would look at.
func Judge(rules []byte, path string) (j Judgement, ok bool) {
	if Check(rules) != nil || len(path) >= pathRoom || path == "" || path[0] != '/' {
		return Judgement{}, false
	}
	m := &matcher{rules: rules}
	m.n = uint(copy(m.path[:], path))
	class, inside := m.judgeByName()
	has := func(bit uint32) bool { return m.hit&bit != 0 }
	return Judgement{
		Whole: has(hitWhole), Config: has(hitConfig), GitFile: has(hitGitFile), CommonDir: has(hitCommon), Lock: has(hitLock), Text: has(hitText), Fixed: has(hitFixed),
		Inside: inside, Tree: class == gitTree, Data: class == gitTree || class == gitData, Probe: class == gitProbe, OnlyDir: class == gitDir || class == gitFixed, Loose: has(hitLoose), Hidden: has(hitHidden),
		Above: has(hitPrefix), Deep: has(hitDeep), Placed: has(hitPlace), Fenced: m.rb(offFence) != 0 && !m.granted,
	}, true
}

// judgeByName is judge where no directory can be looked at: one named .git is a git directory, and no other; the tool has made none.
func (m *matcher) judgeByName() (class uint8, inside bool) {
	m.judge()
	m.hit |= m.byName
	if m.rb(offFlags)&flagShape != 0 && m.floor < m.nc {
		for i := m.nc - 1; i > 0 && i >= m.floor; i-- {
			if m.dotGit(i - 1) {
				at := uint(m.off[i&(compRoom-1)])
				class = m.gitClass(at)
				m.hit = m.withGit(m.gitHit(class, m.rb(offFlags), at))
				return class, true
			}
		}
	}
	m.hit |= m.byGit
	return 0, false
}
