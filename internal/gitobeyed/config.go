package gitobeyed

import (
	"strings"

	"github.com/holdfast-dev/holdfast/internal/regularfile"
)

const largest = 1 << 20

// A setting is one line of a configuration: "core.hookspath", with the subsection left out.
type setting struct{ key, value string }

// settings reads a configuration file: git-config(1), "CONFIGURATION FILE". What git would call an error ends it.
func settings(path string) []setting {
	text, _ := read(path)
	return parse(text)
}

// parse returns the settings of a configuration's text.
func parse(text string) []setting {
	p := &parser{text: strings.TrimPrefix(text, "\ufeff")}
	for p.line() {
	}
	return p.found
}

// read returns a regular file's content.
func read(path string) (string, error) {
	b, err := regularfile.Read(path, largest)
	return string(b), err
}

type parser struct {
	text    string
	section string
	found   []setting
}

// line reads what begins at the next byte that is no blank: a comment, a header or a setting. It reports false at the end.
func (p *parser) line() bool {
	p.text = strings.TrimLeft(p.text, " \t\r\n\v\f")
	if p.text == "" {
		return false
	}
	switch p.text[0] {
	case '#', ';':
		_, p.text, _ = strings.Cut(p.text, "\n")
		return true
	case '[':
		return p.header()
	}
	end := strings.IndexFunc(p.text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-')
	})
	if end < 0 {
		end = len(p.text)
	}
	if end == 0 {
		return false
	}
	key := p.section + "." + strings.ToLower(p.text[:end])
	p.text = strings.TrimLeft(p.text[end:], " \t")
	value := ""
	if rest, ok := strings.CutPrefix(p.text, "="); ok {
		p.text = rest
		value = p.value()
	}
	p.found = append(p.found, setting{key, value})
	return true
}

// header reads [section], [section.sub] or [section "sub"].
func (p *parser) header() bool {
	end := strings.IndexAny(p.text, "]\n\"")
	if end < 0 || p.text[end] == '\n' {
		return false
	}
	name := strings.TrimSpace(p.text[1:end])
	if p.text[end] == '"' {
		for end++; end < len(p.text) && p.text[end] != '"' && p.text[end] != '\n'; end++ {
			if p.text[end] == '\\' {
				end++
			}
		}
		if end+1 >= len(p.text) || p.text[end] != '"' || p.text[end+1] != ']' {
			return false
		}
		end++
	}
	name, _, _ = strings.Cut(name, ".")
	p.section, p.text = strings.ToLower(name), p.text[end+1:]
	return true
}

// value reads up to the line's end, with quotes, escapes, comments and continued lines.
func (p *parser) value() string {
	var b strings.Builder
	quoted, kept := false, 0 // what is behind byte kept is blanks so far
	for i := 0; i < len(p.text); i++ {
		c := p.text[i]
		switch {
		case c == '\n', !quoted && (c == '#' || c == ';'):
			p.text = p.text[i:]
			if c != '\n' {
				_, p.text, _ = strings.Cut(p.text, "\n")
			}
			return b.String()[:kept]
		case c == '"':
			quoted = !quoted
			kept = b.Len()
			continue
		case c == '\\' && i+1 < len(p.text):
			i++
			if p.text[i] == '\r' && i+1 < len(p.text) && p.text[i+1] == '\n' {
				i++
			}
			if p.text[i] == '\n' {
				continue
			}
			c = p.text[i]
			if at := strings.IndexByte("ntb", c); at >= 0 {
				c = "\n\t\b"[at]
			}
			b.WriteByte(c)
			kept = b.Len()
			continue
		case !quoted && (c == ' ' || c == '\t' || c == '\r') && b.Len() == 0:
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' && c != '\r' {
			kept = b.Len()
		}
	}
	p.text = ""
	return b.String()[:kept]
}
