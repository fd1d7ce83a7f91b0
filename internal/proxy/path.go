package proxy

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are the reasons why a path is not judged by its prefix.
var (
	errPathForm   = errors.New("the path does not begin with /")
	errPathEscape = errors.New("the path has a broken percent escape")
	errPathHidden = errors.New("the path escapes a slash, a backslash, a dot, a percent or a control character, which servers read differently")
	errPathDots   = errors.New("the path has a segment of nothing but dots, or dots and spaces")
	errPathEmpty  = errors.New("the path has an empty segment (//)")
	errPathSign   = errors.New("the path has a semicolon, a backslash, a ?, a # or a control character, which servers read differently")
	errPathUTF8   = errors.New("the path is not UTF-8")
)

// canonicalPath decodes a path as it stands in a request line, without the query,
// if every server reads it as the same path. What some decode twice, merge, cut at
// a semicolon or take for a parent is refused, not resolved: the request is passed on
// as it was written, and which reading its server has is not known here.
func canonicalPath(escaped string) (string, error) {
	if escaped == "" {
		return "/", nil
	}
	if escaped[0] != '/' {
		return "", errPathForm
	}
	path, err := decodePath(escaped)
	if err != nil {
		return "", err
	}
	for i, segment := range strings.Split(path[1:], "/") {
		switch {
		case segment != "" && strings.TrimFunc(segment, dotted) == "":
			return "", errPathDots
		case segment == "" && i < strings.Count(path, "/")-1:
			return "", errPathEmpty
		}
	}
	if strings.ContainsAny(path, compatible) {
		return "", errPathHidden
	}
	if !utf8.ValidString(path) { // overlong forms of dot and slash too
		return "", errPathUTF8
	}
	return path, nil
}

// dotted reports whether a character stands in what may be read as a dot segment:
// Windows has no dots and spaces at a name's end, and some programs take away spaces
// of every kind, and what is not seen.
func dotted(c rune) bool { return c == '.' || unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) }

// compatible are the characters that Unicode's compatible forms (NFKC), and Windows'
// best fits of one code page or another (where the yen's and the won's sign are the
// backslash), make dots, slashes and the like of.
const compatible = "\u037e\ufe14\ufe19\ufe30\u2100\u2101\u2105\u2106\u2216\u00a5\u20a9\u066a" +
	"\uff0e\u2024\u2025\u2026\ufe52\uff0f\u2044\u2215\uff3c\ufe68\uff05\ufe6a\uff1b\ufe54"

func decodePath(escaped string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		c := escaped[i]
		switch {
		case c == '%':
			if i+2 >= len(escaped) || unhex(escaped[i+1]) < 0 || unhex(escaped[i+2]) < 0 {
				return "", errPathEscape
			}
			c = byte(unhex(escaped[i+1])<<4 | unhex(escaped[i+2]))
			if c < 0x20 || c == 0x7f || strings.IndexByte(`/\.%;`, c) >= 0 {
				return "", errPathHidden
			}
			i += 2
		case c < 0x20, c == 0x7f, strings.IndexByte(`;\?#`, c) >= 0:
			return "", errPathSign
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}

// isBelow says whether a path is a prefix or below it, by whole segments: /a is /a
// and /a/b, not /ab. A prefix that ends in a slash does not have itself without it.
func isBelow(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}
