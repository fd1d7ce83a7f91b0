package sbpl

import (
	"path"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

// An expansion is a filter that is answered by looking at what exists.
type expansion struct {
	rule    int
	filter  filterOf
	root    string // everything that matches lies in it
	start   string // and begins with this
	negated bool   // its rule is about what does not match
	whole   bool   // it means root and everything in it, or everything in it
	guarded bool   // the guard keeps the name from being made anywhere
	pattern string // the name, in the notation of policy.ProtectedNames, that means the same anywhere; "": none
}

// newExpansion reads as much of a regular expression as has a plain meaning: the
// path it begins with, or the name it ends with.
func newExpansion(rule int, text string) expansion {
	e := expansion{rule: rule, filter: filterOf{Kind: "regex", Args: []string{text}}, root: "/"}
	if rest, anchored := strings.CutPrefix(text, "^"); anchored {
		lit, tail := literalStart(rest)
		if tail == "" || strings.HasPrefix(lit, "/") && isWhole(lit, tail) {
			e.whole = tail != "$"
		}
		if e.root = dirOf(lit); e.whole && !strings.HasSuffix(lit, "/") && tail != "" {
			e.root = lit
		}
		if e.whole && tail == "" && !strings.HasSuffix(lit, "/") {
			e.whole = false // "^/tmp/a" means /tmp/ab too
		}
		if strings.HasPrefix(lit, "/") {
			e.start = lit
			return e
		}
		e.root = "/"
	}
	e.pattern = namePattern(text)
	return e
}

// isWhole reports whether a tail after a path means everything below it.
func isWhole(lit, tail string) bool {
	tail = strings.ReplaceAll(tail, "[/]", "/")
	switch tail {
	case ".*", ".*$", ".+", ".+$":
		return strings.HasSuffix(lit, "/")
	case "(/|$)", "($|/)", "(/.*)?$", "(/.+)?$", "(/.*|$)", "($|/.*)", "(/.*$|$)":
		return !strings.HasSuffix(lit, "/")
	}
	return false
}

// literalStart splits off what a regular expression begins with that is plain.
func literalStart(text string) (lit, tail string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		ch := text[i]
		if ch == '\\' && i+1 < len(text) && strings.IndexByte(`.+*?()[]{}^$|/-_ \`, text[i+1]) >= 0 {
			if i+2 < len(text) && strings.IndexByte("*+?{", text[i+2]) >= 0 {
				return b.String(), text[i:]
			}
			b.WriteByte(text[i+1])
			i++
			continue
		}
		if strings.IndexByte(`.+*?()[]{}^$|\`, ch) >= 0 {
			return b.String(), text[i:]
		}
		if i+1 < len(text) && strings.IndexByte("*+?{", text[i+1]) >= 0 {
			return b.String(), text[i:]
		}
		b.WriteByte(ch)
	}
	return b.String(), ""
}

// namePattern returns the name that a regular expression without a place means,
// such as ".env" of "/\.env$", or "" if it is not as simple as that.
func namePattern(text string) string {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "^"), ".*")
	text, slash := strings.CutPrefix(text, "/")
	if !slash {
		if text, slash = strings.CutPrefix(text, "(^|/)"); !slash {
			return ""
		}
	}
	lit, tail := literalStart(text)
	switch tail {
	case "$", "(/|$)", "($|/)", "(/.*)?$":
	case "[^/]*$", "[^/]*":
		lit += "*"
	case "(/.*)?", "":
		return "" // it goes on
	default:
		return ""
	}
	lit = strings.TrimSuffix(lit, "/")
	if lit == "" || lit == "*" || strings.HasPrefix(lit, "/") || strings.Contains(strings.TrimSuffix(lit, "*"), "*") {
		return ""
	}
	return lit
}

// dirOf is the directory that everything with a prefix lies in.
func dirOf(prefix string) string {
	if !strings.HasPrefix(prefix, "/") {
		return "/"
	}
	return path.Clean(prefix[:strings.LastIndexByte(prefix, '/')+1])
}

type filterOf = seatbelt.Filter
