package redact

import (
	"math/bits"
	"strings"
)

// patterns are what a redactor finds secrets by.
type patterns struct {
	automaton
	placeholders []string
	longest      int       // bytes of the longest writing in a source: what is held back at most
	within       [256]bool // bytes that may be in a writing of any such secrets
}

// maxWriting is how many bytes a byte of a secret takes at most, and of a writing that is digits, with line ends between them.
const maxWriting, maxDigit = 32, 4

func newPatterns(list []Secret) *patterns {
	p := &patterns{}
	p.nodes = make([]node, 1)
	tokens := true
	for i, s := range list {
		secret := s.Text()
		for _, w := range writingsOf(secret) {
			p.add(w, i)
		}
		p.placeholders = append(p.placeholders, s.Placeholder)
		p.longest = max(p.longest, maxWriting*len(secret))
		tokens = tokens && !strings.ContainsFunc(secret, func(c rune) bool { return c > 0x7e || !inToken(byte(c)) })
	}
	p.link()
	p.longest = max(p.longest, maxDigit*p.automaton.longest)
	for c := range p.within {
		p.within[c] = !tokens || inToken(byte(c)) || c == 0 || c == '\r' || c == '\n'
	}
	return p
}

// inToken reports whether a byte is one of most tokens or of their escapes.
func inToken(c byte) bool {
	return alphanumeric(c) || strings.IndexByte(`+/-_.~=:%&#;\`, c) >= 0
}

// A scanner looks for secrets in one stream of bytes, each byte once.
type scanner struct {
	by                       *patterns
	at                       int64 // bytes so far
	raw, once, twice, quoted view
	found                    func(from, to int64, placeholder string)
}

func newScanner(by *patterns, found func(from, to int64, placeholder string)) *scanner {
	s := &scanner{by: by, found: found}
	for _, v := range []*view{&s.raw, &s.once, &s.twice, &s.quoted} {
		v.by, v.undo, v.begins, v.source = &by.automaton, undoEscape, escapes, &s.raw
	}
	s.raw.from = make([]int64, 1<<bits.Len(uint(by.automaton.longest)))
	s.raw.source, s.twice.source = nil, &s.once
	s.quoted.undo, s.quoted.begins = undoQuoted, "="
	s.twice.put = func(c symbol) { s.take(&s.twice, c) }
	s.quoted.put = func(c symbol) { s.take(&s.quoted, c) }
	s.once.put = func(c symbol) {
		s.twice.read(c)
		s.take(&s.once, c)
	}
	return s
}

// take gives a view its next symbol, unless it stands still.
func (s *scanner) take(v *view, c symbol) {
	if v.source != nil && v.apart == 0 {
		return
	}
	if hit, from := v.take(c); hit != nil {
		s.found(from, c.to, s.by.placeholders[hit.secret])
	}
}

// feed looks at the next bytes, and tells found of each secret that ends in them.
func (s *scanner) feed(b []byte) {
	for _, c := range b {
		next := symbol{c, s.at, s.at + 1}
		s.at++
		if c == '%' || c == '\\' || c == '&' || s.once.apart+s.twice.apart > 0 {
			s.once.read(next)
		}
		if c == '=' || s.quoted.apart > 0 {
			s.quoted.read(next)
		}
		s.take(&s.raw, next)
	}
}

// end has what looks like the beginning of an escape stand for itself.
func (s *scanner) end() {
	for _, v := range []*view{&s.once, &s.twice, &s.quoted} {
		for len(v.token) > 0 {
			v.giveUp()
		}
	}
}

// half is where the first writing begins of which more than half has come; at is the end, if there is none.
func (s *scanner) half() int64 {
	first := s.at
	for _, v := range []*view{&s.raw, &s.once, &s.twice, &s.quoted} {
		if n := v.by.nodes[v.state].half; n > 0 && (v.source == nil || v.apart > 0) {
			first = min(first, v.back(n))
		}
	}
	return first
}

// open is how many bytes at the end of a text may be within a writing of some secret, whichever the secrets are: a tool that has its
// guesses echoed would see by what is held back how far they are right. No writing goes on after an empty line.
func (p *patterns) open(text []byte) int {
	i := len(text)
	for least := max(0, len(text)-p.longest+1); i > least && p.within[text[i-1]]; i-- {
		if text[i-1] == '\n' && i > 1 && (text[i-2] == '\n' || text[i-2] == '\r' && i > 2 && text[i-3] == '\n') {
			break
		}
	}
	for i < len(text) && (text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return len(text) - i
}
