package emit

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// check refuses what cannot be said in a profile, or would say something else.
func (g Grants) check() error {
	if g.AllFiles && (len(g.Rules) > 0 || len(g.Names) > 0) {
		return &Error{Field: "AllFiles", Problem: "contradicts Rules and Names"}
	}
	for i, r := range g.Rules {
		field := r.Field
		if field == "" {
			field = fmt.Sprintf("Rules[%d].Path", i)
		}
		if p := checkPath(r.Path); p != "" {
			return &Error{field, r.Path, p}
		}
		if r.Kind < Read || r.Kind > Socket {
			return &Error{field, r.Path, "has no kind"}
		}
	}
	for i, r := range g.Roots {
		if p := checkPath(r); p != "" {
			return &Error{fmt.Sprintf("Roots[%d]", i), r, p}
		}
	}
	for i, n := range g.Names {
		field := n.Field
		if field == "" {
			field = fmt.Sprintf("Names[%d]", i)
		}
		if p := checkName(n.Path); p != "" {
			return &Error{field, n.Path, p}
		}
	}
	for i, n := range g.Network.Ports {
		if n < 1 || n > 65535 { // "localhost:0" is no address to seatbelt
			return &Error{fmt.Sprintf("Network.Ports[%d]", i), fmt.Sprint(n), "is not a port number"}
		}
	}
	for _, c := range []byte(g.Tag) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.') {
			return &Error{"Tag", g.Tag, "has a character that is no letter, digit, '-', '_' or '.'"}
		}
	}
	return nil
}

// checkPath says what is wrong with a path; "": nothing. A slash at the end would
// make a subpath filter match nothing.
func checkPath(p string) string {
	switch {
	case p == "":
		return "is empty"
	case p[0] != '/':
		return "is not absolute"
	case strings.ContainsRune(p, 0):
		return "has a NUL byte"
	case !utf8.ValidString(p):
		return "is not UTF-8"
	case p != "/" && p[len(p)-1] == '/':
		return "ends in a slash"
	case strings.Contains(p+"/", "/../"):
		return `has a ".."`
	case path.Clean(p) != p:
		return "is not clean"
	}
	return ""
}

func checkName(n string) string {
	if strings.ContainsRune(n, 0) {
		return "has a NUL byte"
	}
	if !utf8.ValidString(n) {
		return "is not UTF-8"
	}
	for i, c := range strings.Split(n, "/") {
		text := strings.TrimSuffix(c, "*")
		if text == c {
			text = strings.TrimPrefix(c, "*")
		}
		switch {
		case c == "" || c == "." || c == "..":
			return "has an unusable component"
		case c == "*" && i > 0, c == "**" && i > 0:
		case text == "" || strings.Contains(text, "*"):
			return "has a wildcard where none is understood"
		}
	}
	return ""
}
