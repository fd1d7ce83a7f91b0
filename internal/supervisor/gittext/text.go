package gittext

// What a harmless key's value has to be.
const (
	anyValue = iota
	urlValue
	remoteValue
	treeValue
	refsValue
	groupValue
)

// Room is how large a text may be.
const Room = 1 << 16

// Text is one text and a cursor in it. B holds its N bytes.
type Text struct {
	B [Room]byte
	N uint

	Modules  bool // the configuration is a submodule's
	WorkTree bool // it is a .gitmodules
	Removing bool // the configuration is to be removed

	// Where Judge says IfDirectory: the bytes of the value that are the directory's path.
	Local, LocalEnd uint

	pos     uint // the next line begins here
	at, end uint // the present line, without its newline
	sec     uint // the present section's header line: sec to secEnd
	secEnd  uint
	name    uint // in the header: the section's name
	nameEnd uint
	sub     bool // the header has a quoted subsection
	known   bool // the header is well-formed
	ongoing bool // the line before ends in a backslash, so the present line belongs to it
	key     uint // the present pair's key, to keyEnd
	keyEnd  uint
	val     uint // and its value, to end
}

// A Verdict is what a line of a configuration is.
type Verdict uint8

// The verdicts.
const (
	Foreign     Verdict = iota // git may run or obey something by it
	Harmless                   // at worst it breaks the repository it stands in
	IfDirectory                // harmless if Local is the path of a directory, without a link on the way
)

// c returns byte i, or 0 behind the end.
//
//go:norace
func (t *Text) c(i uint) byte {
	if i >= t.N {
		return 0
	}
	return t.B[i&(Room-1)]
}

// Rewind goes back to the first line.
//
//go:norace
func (t *Text) Rewind() {
	t.pos, t.sec, t.secEnd, t.known, t.ongoing = 0, 0, 0, false, false
}

// Next goes to the next line; false at the end.
//
//go:norace
func (t *Text) Next() bool {
	if t.pos >= t.N {
		return false
	}
	t.at = t.pos
	t.end = t.at
	for t.end < t.N && t.c(t.end) != '\n' {
		t.end++
	}
	t.pos = t.end + 1
	return true
}

//go:norace
func equalBytes(a, b *Text, i, iEnd, j, jEnd uint) bool {
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
func (t *Text) is(at, end uint, word string) bool {
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

// SameLine reports whether the present lines of a and b, and the headers of their sections, are the same.
//
//go:norace
func SameLine(a, b *Text) bool {
	return equalBytes(a, b, a.sec, a.secEnd, b.sec, b.secEnd) && equalBytes(a, b, a.at, a.end, b.at, b.end)
}

//go:norace
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}
