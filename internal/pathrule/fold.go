package pathrule

import "strings"

// FoldName is name as ASCII in lower case. U+212A is the letter k to a file system
// that folds case, U+017F is s, a ligature is its letters; every other character
// beyond ASCII is taken for one that such a file system ignores, which protects
// more.
func FoldName(name string) string {
	name = foldings.Replace(name)
	b := make([]byte, 0, len(name))
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		case c < 0x80:
			b = append(b, c)
		}
	}
	return string(b)
}

// foldings are the characters whose case folding is ASCII alone (Unicode's
// CaseFolding.txt, C and F).
var foldings = strings.NewReplacer("\u212a", "k", "\u017f", "s", "\u00df", "ss", "\u1e9e", "ss",
	"\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st")
