package errtext

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

// speaks returns the first character of a text that a terminal obeys or that is not seen.
func speaks(s string) string {
	if !utf8.ValidString(s) {
		return "no UTF-8"
	}
	for _, c := range s {
		if unicode.In(c, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Bidi_Control, unicode.Variation_Selector) {
			return string(c)
		}
	}
	return ""
}

func TestATextThatSpeaksToATerminalIsEscaped(t *testing.T) {
	for s, want := range map[string]string{
		"":                             "",
		"GET /a?b=c -> 1.2.3.4:443 é日": "GET /a?b=c -> 1.2.3.4:443 é日",
		"\x1b]0;title\a\x1b[2J":        `\x1b]0;title\a\x1b[2J`,
		"a\r\nb\tc\x00\x7f":            `a\r\nb\tc\x00\x7f`,
		"\u009b2J\u0085":               `\u009b2J\u0085`,
		"\x9b2J\xff":                   `\x9b2J\xff`,
		"a\u202eb\u2066c\u200b\ufeff":  `a\u202eb\u2066c\u200b\ufeff`,
		"a\u2028b\u2029":               `a\u2028b\u2029`,
		"\U000e0041\ufe0f\U000e0100":   `\U000e0041\ufe0f\U000e0100`,
		"\u00a0\u3164\ufffd":           `\u00a0\u3164` + "\ufffd",
		`\x1b and \\`:                  `\x1b and \\`,
	} {
		if got := Printable(s); got != want || Printable(got) != got || speaks(got) != "" {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
