package supervisor

// What a harmless key's value has to be.
const (
	anyValue = iota
	urlValue
	remoteValue
	treeValue
	refsValue
)

const textRoom = 1 << 16

// text is one configuration and a cursor in it. It is read in the forked child: see the rules above Serve.
type text struct {
	b        [textRoom]byte
	n        uint
	pos      uint // the next line begins here
	at, end  uint // the present line, without its newline
	sec      uint // the present section's header line: sec to secEnd
	secEnd   uint
	name     uint // in the header: the section's name
	nameEnd  uint
	sub      bool // the header has a quoted subsection
	known    bool // the header is well-formed
	ongoing  bool // the line before ends in a backslash, so the present line belongs to it
	modules  bool // the configuration is a submodule's
	base     int  // descriptor of its .git directory, beside which relative paths of repositories begin; or -1
	key      uint // the present pair's key, to keyEnd
	keyEnd   uint
	val      uint     // and its value, to end
	rules    *matcher // where the roots are; its path is overwritten
	owner    *State   // who looks at local paths; nil: they are judged by their text
	removing bool     // the configuration is to be removed
	workTree bool     // it is a .gitmodules
}

// c returns byte i, or 0 behind the end.
//
//go:norace
func (t *text) c(i uint) byte {
	if i >= t.n {
		return 0
	}
	return t.b[i&(textRoom-1)]
}

//go:norace
func (t *text) rewind() {
	t.pos, t.sec, t.secEnd, t.known, t.ongoing = 0, 0, 0, false, false
}

//go:norace
func (t *text) nextLine() {
	t.at = t.pos
	t.end = t.at
	for t.end < t.n && t.c(t.end) != '\n' {
		t.end++
	}
	t.pos = t.end + 1
}

//go:norace
func equalBytes(a, b *text, i, iEnd, j, jEnd uint) bool {
	if iEnd-i != jEnd-j {
		return false
	}
	for ; i < iEnd; i++ {
		if a.c(i) != b.c(j) {
			return false
		}
		j++
	}
	return true
}

//go:norace
func (t *text) is(at, end uint, word string) bool {
	if end-at != uint(len(word)) {
		return false
	}
	for j := 0; j < len(word); j++ {
		if lower(t.c(at+uint(j))) != word[j] {
			return false
		}
	}
	return true
}

type harmlessKey struct {
	section, key string
	sub          bool
	value        uint8
}
