package supervisor

import (
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/protected"
)

// The harness's side of the table of denials, and what they mean. All of it is ordinary Go, for the harness alone.

// A Denial is one record of the table. Paths, Name and Command are text of the tool's, and anything may stand in it.
type Denial struct {
	Seconds, Nanoseconds int64 // since 1970, of the first
	Count                uint64
	Deed                 Deed
	Reason               Reason
	Side                 int       // which of Paths was refused
	Paths                [2]string // as the kernel names them; "": the deed has none. Of DeedConnect, and of ReasonAddress, a struct sockaddr.
	Cut                  [2]bool   // there was no room for all of the path

	NoFollow bool // of ReasonAbsent: the call is about a symbolic link itself

	PID     int    // inside; 0: it is not known
	Name    string // of the thread that made the call, as the process has named it
	Command string // its command line, as the process has written it, with NUL bytes between the arguments

	hit [2]uint32
	git [2]int
}

// ReadDenials reads a copy of the table, of which the bytes may be anything. beyond is how many denials have no record.
func ReadDenials(b []byte) (list []Denial, beyond uint64) {
	t := new(denialTable)
	if len(b) < int(DenialBytes) {
		return nil, 0
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(t)), DenialBytes), b)
	for i := range min(t.used, DenialRoom) {
		if d, ok := denialOf(&t.record[i]); ok && t.hash[i] == t.record[i].sum() {
			list = append(list, d)
		}
	}
	return list, t.beyond
}

// ReadNames returns, of a copy of the table, the protected names that the tool has made in directories that it had made, and the names that
// begin with a dot and that no list has, which it has made in others.
func ReadNames(b []byte) (made, dots Names) {
	t := new(denialTable)
	if len(b) < int(DenialBytes) {
		return made, dots
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(t)), DenialBytes), b)
	return t.names.list(), t.dots.list()
}

// Names is a list of paths that a table had room for, and whether there were more.
type Names struct {
	List []string
	More bool
}

func (t *nameTable) list() (n Names) {
	for i := range min(t.used, NameRoom) {
		n.List = append(n.List, string(t.path[i][:min(t.size[i], DenialPathRoom)]))
	}
	n.More = t.beyond > 0
	return n
}

func denialOf(r *denialRecord) (Denial, bool) {
	d := Denial{
		Seconds: r.time[0], Nanoseconds: r.time[1], Count: r.count, Deed: Deed(r.deed), Reason: Reason(r.reason), Side: int(r.side & 1),
		PID: int(r.who.pid), Name: untilNUL(r.who.comm[:]), Command: trimEnd(string(r.who.command[:min(r.who.size, commandRoom)]), "\x00"), hit: r.hit,
	}
	for d.Name != "" && d.Name[len(d.Name)-1] == '\n' {
		d.Name = d.Name[:len(d.Name)-1]
	}
	for k := range d.Paths {
		n := min(int(r.size[k]), DenialPathRoom)
		d.Paths[k], d.Cut[k], d.git[k] = string(r.path[k][:n]), int(r.size[k]) > n, int(r.git[k])
	}
	return d, d.Deed < deedCount && d.Reason > ReasonNone && d.Reason < reasonCount
}

func untilNUL(b []byte) string {
	for i := range b {
		if b[i] == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// A Cause is the rule by which a name was refused.
type Cause struct {
	// Rule is the name or path as the rules have it, or a line of the list of what git directories may hold; "": none was found.
	Rule string
	Kind CauseKind
	Why  string // of a default name, and of a line of that list: who obeys it
	// Build says that the name is one of the build files.
	Build bool
	// Root is the outermost of Rules.Roots around the path; "": there is none.
	Root string
}

// A CauseKind says where a rule comes from.
type CauseKind uint8

// The kinds. CauseAbove is a directory that would bring along, or is on the way to, what Rule protects.
const (
	CauseUnknown CauseKind = iota
	CauseName              // a protected name
	CauseAbove
	CauseGit        // the list of what git directories may hold
	CauseHiddenName // Rules.Hidden
	CausePath       // Rules.Paths
	CauseHiddenPath
)

// mostComponents is how deep a path may be for its rule to be looked for: each component is compared with each name, and the
// harness has up to DenialRoom paths of the tool's to look at.
const mostComponents = 128

// CauseOf finds the rule, in rules as Encode has written them, by which the path on d's side was refused.
func CauseOf(rules []byte, d Denial) Cause {
	p, hit, git := d.Paths[d.Side], d.hit[d.Side], d.git[d.Side]
	if Check(rules) != nil || p == "" || p[0] != '/' || len(p) > DenialPathRoom {
		return Cause{}
	}
	m := &matcher{rules: rules}
	m.n = uint(copy(m.path[:], p))
	if m.split(); m.nc > mostComponents {
		return Cause{}
	}
	const names = hitWhole | hitConfig | hitGitFile | hitCommon | hitLock | hitText | hitModules
	switch {
	case hit&hitHidden != 0:
		if rule, _ := m.ruleOf(hitHidden, true); rule != "" && rule[0] != '/' {
			return Cause{Rule: rule, Kind: CauseHiddenName}
		} else {
			return Cause{Rule: rule, Kind: CauseHiddenPath}
		}
	case hit&(names|hitFixed) != 0:
		if rule, _ := m.ruleOf(names, git == 0); rule != "" {
			return m.causeOfName(rule)
		}
		if git > 0 && git < len(p) {
			return m.causeInGit(uint(git))
		}
	case hit&hitPlace != 0:
		rule, _ := m.ruleOf(hitWhole|hitHidden|hitFree, false)
		return Cause{Rule: rule, Kind: CausePath}
	case hit&(hitPrefix|hitDeep) != 0:
		rule, _ := m.ruleOf(hitPrefix|hitDeep, true)
		c := m.causeOfName(rule)
		c.Kind = CauseAbove
		return c
	case git > 0 && git < len(p):
		return m.causeInGit(uint(git))
	}
	return Cause{}
}

func (m *matcher) causeOfName(rule string) Cause {
	if rule != "" && rule[0] == '/' {
		return Cause{Rule: rule, Kind: CausePath}
	}
	c := Cause{Rule: rule, Kind: CauseName}
	if m.floor < m.nc {
		c.Root = string(m.path[:m.off[m.floor]-1])
	}
	for _, n := range protected.Names() {
		if n.Path == rule {
			c.Why, c.Build = n.Why, n.Build
		}
	}
	return c
}

// ruleOf returns the first rule that has one of the bits for the path; names below .git only if git is set.
func (m *matcher) ruleOf(bits uint32, git bool) (rule string, found bool) {
	m.split()
	m.pat = offRecords
	m.roots()
	names := m.pat
	for i := uint(0); i < m.nc && m.floor < m.nc; i++ {
		m.pat = names
		c := m.path[uint(m.off[i&(compRoom-1)])&(longRoom-1)]
		first := m.short || m.rb(offBitmap+uint(c>>3))&(1<<(c&7)) != 0
		for n := m.r16(offNames); n > 0; n-- {
			if m.hit = 0; first || n <= m.r16(offTails) {
				m.nameAt(i)
			}
			if m.hit&bits != 0 && (git || m.rb(m.pat)&kindGit == 0) {
				return m.nameText(), true
			}
			m.pat += 4 + m.r16(m.pat+2)
		}
	}
	m.pat = m.r32(offPathsAt)
	for n := m.r16(offPaths); n > 0; n-- {
		kind, size := m.rb(m.pat), m.r16(m.pat+1)
		m.hit = 0
		switch m.stands(m.pat+3, size, kind != byte(protected.Free)) {
		case isAt:
			m.hit |= m.place(kind, 0, true)
		case isBelow:
			m.hit |= m.place(kind, 0, false)
		case isAbove:
			m.hit = hitPrefix
		}
		if m.hit&bits != 0 {
			rule, found = string(m.rules[m.pat+3:m.pat+3+size]), true // of two the later, which is longer, decides
		}
		m.pat += 3 + size
	}
	return rule, found
}

// nameText is the name at the cursor, in the notation of Pattern.
func (m *matcher) nameText() string {
	text := ""
	p := m.pat + 4
	for left := m.rb(m.pat + 1); left > 0; left-- {
		mode, size := m.rb(p), uint(m.rb(p+1))
		if text != "" {
			text += "/"
		}
		if mode == compSuffix || mode == compAny {
			text += "*"
		}
		text += string(m.rules[p+2 : p+2+size])
		switch mode {
		case compPrefix:
			text += "*"
		case compDeep:
			text += "**"
		}
		p += 2 + size
	}
	return text
}

// causeInGit finds the line for the path, which lies in a git directory from byte at on.
func (m *matcher) causeInGit(at uint) Cause {
	for at != 0 {
		for _, l := range gitLines {
			if m.glob(l.glob, at) {
				return Cause{Rule: l.glob, Kind: CauseGit, Why: l.why}
			}
		}
		at = m.inWorktree(at)
	}
	return Cause{Kind: CauseGit}
}
