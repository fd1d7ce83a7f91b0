package proxy

import (
	"errors"
	"net/url"
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
	errPathSign   = errors.New("the path has a semicolon, a backslash, a ?, a #, a control character or one beyond ASCII that is not escaped, which servers read differently")
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

// decodePath decodes a path's percent escapes, none of which may stand for a sign that separates or means something.
func decodePath(escaped string) (string, error) {
	if strings.ContainsFunc(escaped, isControl) || strings.ContainsAny(escaped, `;\?#`) {
		return "", errPathSign
	}
	path, err := url.PathUnescape(escaped)
	if err != nil {
		return "", errPathEscape
	}
	hides := func(sign string) bool { return strings.Count(path, sign) != strings.Count(escaped, sign) }
	if strings.ContainsFunc(path, isControl) || strings.ContainsAny(path, `\%;`) || hides("/") || hides(".") {
		return "", errPathHidden
	}
	return path, nil
}

func isControl(c rune) bool { return c < 0x20 || c == 0x7f }

// isBelow says whether a path is a prefix or below it, by whole segments: /a is /a
// and /a/b, not /ab. A prefix that ends in a slash does not have itself without it.
func isBelow(path, prefix string) bool {
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || strings.HasSuffix(prefix, "/") || rest[0] == '/')
}
