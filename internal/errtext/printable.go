package errtext

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable writes a text that a peer or the tool has had a part in so that it says
// nothing to a terminal and shows all that it is: controls (C1's too, which UTF-8 has as
// characters of two bytes), ends of lines, marks of direction, characters that are not
// seen and bytes that are no UTF-8 become escapes as Go writes them. It is the one place
// for that. To escape a text twice changes nothing more.
func Printable(s string) string {
	clean := strings.IndexFunc(s, isInvisible) < 0
	if clean && utf8.ValidString(s) {
		return s
	}
	var b []byte
	for len(s) > 0 {
		c, size := utf8.DecodeRuneInString(s)
		switch {
		case c == utf8.RuneError && size <= 1:
			b = append(b, `\x`...)
			b = append(b, hexDigits[s[0]>>4], hexDigits[s[0]&15])
		case isInvisible(c):
			q := strconv.AppendQuoteRuneToASCII(nil, c)
			b = append(b, q[1:len(q)-1]...)
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
	return string(b)
}

const hexDigits = "0123456789abcdef"

// isInvisible reports whether a character is no letter, mark, digit, sign or space, or is
// not shown by itself: selectors of variants carry texts that a model reads and a
// person does not.
func isInvisible(c rune) bool {
	return !strconv.IsPrint(c) || c > 0x7e && unicode.In(c, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
