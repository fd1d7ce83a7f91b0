package presets

import (
	"slices"
	"strings"
)

// gitSetting is one harmless setting. Section and key are in lower case; a
// subsection follows the section after a dot.
type gitSetting struct{ section, key, value string }

// gitScanner reads a configuration (git-config(1), "CONFIGURATION FILE").
type gitScanner struct{ rest string }

// parseGitConfig returns the harmless settings in text, in order. Includes are
// not followed. A line that it does not understand is left out.
func parseGitConfig(text string) []gitSetting {
	var out []gitSetting
	s := gitScanner{strings.TrimPrefix(text, "\ufeff")}
	section := ""
	for s.rest != "" {
		s.rest = strings.TrimLeft(s.rest, " \t\r\n")
		if strings.HasPrefix(s.rest, "[") {
			section = s.header()
			continue
		}
		key, value, ok := s.setting()
		if ok && section != "" && gitHarmless(section+"."+key) {
			out = append(out, gitSetting{section, key, value})
		}
	}
	return out
}

// line takes what is left of the present line.
func (s *gitScanner) line() string {
	line, rest, _ := strings.Cut(s.rest, "\n")
	s.rest = rest
	return line
}

// header takes "[section]" or "[section "subsection"]" and leaves what follows
// on the line. It returns "" for a header that no harmless setting stands under.
func (s *gitScanner) header() string {
	end := strings.IndexAny(s.rest, "]\n\"")
	if end < 0 || s.rest[end] == '\n' {
		s.line()
		return ""
	}
	name, sub := strings.ToLower(strings.TrimSpace(s.rest[1:end])), ""
	if s.rest[end] == '"' {
		var found bool
		if sub, s.rest, found = strings.Cut(s.rest[end+1:], `"]`); !found || !gitWord(sub, "-_") {
			s.line()
			return ""
		}
		sub = "." + sub
	} else {
		s.rest = s.rest[end+1:]
	}
	plain, dotted, old := strings.Cut(name, ".") // "[section.subsection]"
	if !gitWord(plain, "-") || old && (sub != "" || !gitWord(dotted, "-_")) {
		return ""
	}
	return name + sub
}

// setting takes one "key = value", which may go over several lines.
func (s *gitScanner) setting() (key, value string, ok bool) {
	end := strings.IndexAny(s.rest, "=\n#;")
	if end < 0 {
		end = len(s.rest)
	}
	key = strings.ToLower(strings.TrimSpace(s.rest[:end]))
	if !gitWord(key, "-") {
		s.line()
		return "", "", false
	}
	if end == len(s.rest) || s.rest[end] != '=' {
		s.line()
		return key, "true", true
	}
	s.rest = s.rest[end+1:]
	value, ok = s.value()
	return key, value, ok && !strings.ContainsRune(value, 0)
}

// value takes the rest of the logical line: quotes and escapes resolved,
// comments and the spaces around it gone.
func (s *gitScanner) value() (string, bool) {
	var b strings.Builder
	quoted, ok, keep := false, true, 0 // keep: how much of b is no trailing space
	s.rest = strings.TrimLeft(s.rest, " \t\r")
	for i := 0; i < len(s.rest); i++ {
		c := s.rest[i]
		switch {
		case c == '\n':
			s.rest = s.rest[i+1:]
			return b.String()[:keep], ok && !quoted
		case c == '\\':
			if i++; i < len(s.rest) && s.rest[i] == '\r' && strings.HasPrefix(s.rest[i:], "\r\n") {
				i++
			}
			if i < len(s.rest) && s.rest[i] == '\n' {
				continue
			}
			at := -1
			if i < len(s.rest) {
				at = strings.IndexByte(`nt"\`, s.rest[i])
			}
			if ok = ok && at >= 0; ok {
				b.WriteByte("\n\t\"\\"[at])
				keep = b.Len()
			}
		case c == '"':
			quoted = !quoted
		case (c == '#' || c == ';') && !quoted:
			s.line()
			return b.String()[:keep], ok
		default:
			b.WriteByte(c)
			if quoted || !strings.ContainsRune(" \t\r", rune(c)) {
				keep = b.Len()
			}
		}
	}
	s.rest = ""
	return b.String()[:keep], ok && !quoted
}

// gitWord reports whether s is of ASCII letters, digits and the bytes of more.
func gitWord(s, more string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if (c < 'a' || c > 'z') && (s[i] < '0' || s[i] > '9') && !strings.Contains(more, s[i:i+1]) {
			return false
		}
	}
	return s != ""
}

// gitHarmless looks a full key up in gitKeys.
func gitHarmless(key string) bool {
	return slices.ContainsFunc(gitKeys, func(k string) bool {
		prefix, all := strings.CutSuffix(k, "*")
		return k == key || all && strings.HasPrefix(key, prefix)
	})
}

// gitSection writes a section's header.
func gitSection(section string) string {
	if name, sub, found := strings.Cut(section, "."); found {
		return "[" + name + ` "` + sub + `"]`
	}
	return "[" + section + "]"
}

// quoteGit writes a value so that git reads it back unchanged.
func quoteGit(v string) string {
	return `"` + gitQuoter.Replace(v) + `"`
}

var gitQuoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`)
