package emit

import (
	"strings"
	"unicode/utf8"
)

// folds are runs of ASCII letters and what else macOS's file systems take for them
// where they fold case: what Unicode's CaseFolding.txt (C and F) maps to ASCII. The
// longer run comes first.
var folds = []struct {
	run    string
	others []string
}{
	{"ffi", []string{"\ufb03", "\ufb00[iI]"}}, {"ffl", []string{"\ufb04", "\ufb00[lL]"}}, {"sst", []string{"(\u00df|\u1e9e)[tT]", "(\u017f|[sS])(\ufb05|\ufb06)"}},
	{"ff", []string{"\ufb00"}}, {"fi", []string{"\ufb01"}}, {"fl", []string{"\ufb02"}},
	{"ss", []string{"\u00df", "\u1e9e"}}, {"st", []string{"\ufb05", "\ufb06"}}, {"k", []string{"\u212a"}}, {"s", []string{"\u017f"}},
}

// foldedRegex is a regular expression for text, whatever its case. A run that has
// one character for it is written as the alternatives, of which the letters one by
// one are the last.
func foldedRegex(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := writeFold(&b, text)
		text = text[n:]
	}
	return b.String()
}

// writeFold writes the first unit of text and returns how long it is.
func writeFold(b *strings.Builder, text string) int {
	lower := asciiLower(text)
	for _, f := range folds {
		if !strings.HasPrefix(lower, f.run) {
			continue
		}
		b.WriteByte('(')
		for _, o := range f.others {
			b.WriteString(o)
			b.WriteByte('|')
		}
		if len(f.run) == 1 {
			writeLetter(b, f.run[0])
		} else {
			writeFold(b, text[:1]) // of which the rest follows
			b.WriteString(foldedRegex(text[1:len(f.run)]))
		}
		b.WriteByte(')')
		return len(f.run)
	}
	if c := text[0]; c < utf8.RuneSelf {
		writeLetter(b, lower[0])
		return 1
	}
	_, n := utf8.DecodeRuneInString(text)
	b.WriteString("(" + text[:n] + ")?") // it counts as none: see policy.ProtectedNames
	return n
}

// writeLetter writes one ASCII character as a regular expression.
func writeLetter(b *strings.Builder, c byte) {
	switch {
	case c >= 'a' && c <= 'z':
		b.WriteByte('[')
		b.WriteByte(c)
		b.WriteByte(c - 0x20)
		b.WriteByte(']')
	case strings.IndexByte(`\.+*?()|[]{}^$`, c) >= 0:
		b.WriteByte('\\')
		b.WriteByte(c)
	default:
		b.WriteByte(c)
	}
}

func asciiLower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// plainRegex is a regular expression for exactly text.
func plainRegex(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if strings.IndexByte(`\.+*?()|[]{}^$`, c) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}
