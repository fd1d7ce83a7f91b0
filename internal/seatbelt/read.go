package seatbelt

import (
	"fmt"
	"strconv"
	"strings"
)

// A reader turns text into nodes, as far as Limits go.
type reader struct {
	m    *machine
	src  string // its name
	text string
	at   int
	line int
	bol  int // where the line begins
}

func (r *reader) pos() Position {
	return Position{Source: r.src, Line: r.line, Column: r.at - r.bol + 1}
}

func (r *reader) fail(p Position, format string, args ...any) error {
	return &Error{Source: p.Source, Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...)}
}

// forms reads the whole text.
func (r *reader) forms() ([]node, error) {
	var all []node
	for {
		if err := r.skip(); err != nil {
			return nil, err
		}
		if r.at == len(r.text) {
			return all, nil
		}
		n, err := r.form(0)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
}

// skip passes spaces and comments: ; and #! to the end of the line, #| to |#,
// which nest.
func (r *reader) skip() error {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == '\n':
			r.newline()
		case c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v':
			r.at++
		case c == ';' || c == '#' && r.peek(1) == '!':
			for r.at < len(r.text) && r.text[r.at] != '\n' {
				r.at++
			}
		case c == '#' && r.peek(1) == '|':
			if err := r.block(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

func (r *reader) newline() {
	r.at++
	r.line++
	r.bol = r.at
}

func (r *reader) peek(n int) byte {
	if r.at+n < len(r.text) {
		return r.text[r.at+n]
	}
	return 0
}

func (r *reader) block() error {
	from := r.pos()
	for depth := 0; r.at < len(r.text); {
		switch {
		case r.text[r.at] == '#' && r.peek(1) == '|':
			depth++
			r.at += 2
		case r.text[r.at] == '|' && r.peek(1) == '#':
			r.at += 2
			if depth--; depth == 0 {
				return nil
			}
		case r.text[r.at] == '\n':
			r.newline()
		default:
			r.at++
		}
	}
	return r.fail(from, "unterminated comment")
}

// form reads one form; there is one, skip has seen to it.
func (r *reader) form(depth int) (node, error) {
	p := r.pos()
	n := node{line: int32(p.Line), col: int32(p.Column)}
	if err := r.m.spend(8, p); err != nil {
		return n, err
	}
	if depth >= r.m.limits.Depth {
		return n, r.fail(p, "nested too deep: more than %d", r.m.limits.Depth)
	}
	switch c := r.text[r.at]; c {
	case '(', '[':
		return r.list(n, p, depth)
	case ')', ']':
		return n, r.fail(p, "unexpected %c", c)
	case '\'':
		return r.quoted(n, "quote", depth)
	case '`':
		return r.quoted(n, "quasiquote", depth)
	case ',':
		if r.peek(1) == '@' {
			r.at++
			return r.quoted(n, "unquote-splicing", depth)
		}
		return r.quoted(n, "unquote", depth)
	case '"':
		return r.escaped(n, p)
	case '#':
		if r.peek(1) == '"' {
			return r.raw(n, p)
		}
	}
	return r.atom(n, p)
}

func (r *reader) list(n node, p Position, depth int) (node, error) {
	n.kind = listNode
	closing := byte(')')
	if r.text[r.at] == '[' {
		closing = ']'
	}
	r.at++
	for dot := false; ; {
		if err := r.skip(); err != nil {
			return n, err
		}
		if r.at == len(r.text) {
			return n, r.fail(p, "unterminated list")
		}
		if c := r.text[r.at]; c == ')' || c == ']' {
			if c != closing || dot && !n.tail {
				return n, r.fail(r.pos(), "unexpected %c", c)
			}
			r.at++
			return n, nil
		}
		here := r.pos()
		if n.tail {
			return n, r.fail(here, "more than one form behind a dot")
		}
		if r.text[r.at] == '.' && delimiter(r.peek(1)) {
			if len(n.list) == 0 || dot {
				return n, r.fail(here, "unexpected .")
			}
			dot = true
			r.at++
			continue
		}
		e, err := r.form(depth + 1)
		if err != nil {
			return n, err
		}
		n.list = append(n.list, e)
		n.tail = dot
	}
}

// quoted reads what stands behind a quote sign as (quote FORM).
func (r *reader) quoted(n node, name string, depth int) (node, error) {
	r.at++
	if err := r.skip(); err != nil {
		return n, err
	}
	if r.at == len(r.text) {
		return n, r.fail(r.pos(), "nothing to %s", name)
	}
	e, err := r.form(depth + 1)
	head := node{kind: symbolNode, text: name, line: n.line, col: n.col}
	n.kind, n.list = listNode, []node{head, e}
	return n, err
}

// raw reads #"...", in which a backslash stands for itself.
func (r *reader) raw(n node, p Position) (node, error) {
	r.at += 2
	from := r.at
	for r.at < len(r.text) && r.text[r.at] != '"' {
		if r.text[r.at] == '\\' && r.peek(1) == '"' {
			return n, r.fail(r.pos(), `\" in a raw string is ambiguous: it may end there or not`)
		}
		if r.text[r.at] == '\n' {
			r.newline()
			continue
		}
		r.at++
	}
	if r.at == len(r.text) {
		return n, r.fail(p, "unterminated string")
	}
	n.kind, n.text = stringNode, r.text[from:r.at]
	r.at++
	return n, r.m.fits(n.text, p)
}

// escaped reads "...", with the escapes that the Scheme under seatbelt has.
func (r *reader) escaped(n node, p Position) (node, error) {
	r.at++
	var b strings.Builder
	for r.at < len(r.text) {
		c := r.text[r.at]
		switch c {
		case '"':
			r.at++
			n.kind, n.text = stringNode, b.String()
			return n, r.m.fits(n.text, p)
		case '\\':
			if err := r.escape(&b); err != nil {
				return n, err
			}
			continue
		case '\n':
			r.line++
			r.bol = r.at + 1
		}
		b.WriteByte(c)
		r.at++
	}
	return n, r.fail(p, "unterminated string")
}

func (r *reader) escape(b *strings.Builder) error {
	p := r.pos()
	c := r.peek(1)
	r.at += 2
	switch {
	case r.at > len(r.text):
		return r.fail(p, "unterminated string")
	case c == 'n':
		b.WriteByte('\n')
	case c == 't':
		b.WriteByte('\t')
	case c == 'r':
		b.WriteByte('\r')
	case c == 'x' || c == 'X':
		v, err := strconv.ParseUint(r.text[r.at:min(r.at+2, len(r.text))], 16, 8)
		if err != nil || r.at+2 > len(r.text) {
			return r.fail(p, "\\x needs two hexadecimal digits")
		}
		b.WriteByte(byte(v))
		r.at += 2
	case c >= '0' && c <= '7':
		v, n := int(c-'0'), 1
		for ; n < 3 && r.peek(0) >= '0' && r.peek(0) <= '7'; n++ {
			v = v*8 + int(r.peek(0)-'0')
			r.at++
		}
		if v > 255 {
			return r.fail(p, "an octal escape above 377")
		}
		b.WriteByte(byte(v))
	default:
		if c == '\n' {
			r.line++
			r.bol = r.at
		}
		b.WriteByte(c)
	}
	return nil
}

func delimiter(c byte) bool {
	return c == 0 || strings.IndexByte(" \t\r\n\f\v()[]\";'`,", c) >= 0
}

// atom reads a symbol, a number or a boolean.
func (r *reader) atom(n node, p Position) (node, error) {
	from := r.at
	for r.at < len(r.text) && (r.text[r.at] == 0 || !delimiter(r.text[r.at])) {
		r.at++
	}
	n.text = r.text[from:r.at]
	if err := r.m.fits(n.text, p); err != nil {
		return n, err
	}
	switch n.text {
	case "#t", "#true":
		n.kind, n.num = boolNode, 1
		return n, nil
	case "#f", "#false":
		n.kind = boolNode
		return n, nil
	}
	if strings.HasPrefix(n.text, `#\`) {
		return r.char(n, p)
	}
	if strings.HasPrefix(n.text, "#") {
		v, ok := radix(n.text)
		if !ok {
			return n, r.fail(p, "undefined sharp expression: %s", clip(n.text, 40))
		}
		n.kind, n.num = numberNode, v
		return n, nil
	}
	if v, err := strconv.ParseInt(n.text, 10, 64); err == nil {
		n.kind, n.num = numberNode, v
		return n, nil
	}
	if strings.IndexByte(n.text, 0) >= 0 {
		return n, r.fail(p, "a NUL in the text")
	}
	n.kind = symbolNode
	return n, nil
}

// charNames are those of R5RS.
var charNames = map[string]byte{"space": ' ', "newline": '\n', "tab": '\t', "return": '\r'}

// char reads #\a and #\space: one byte. A delimiter may be the character.
func (r *reader) char(n node, p Position) (node, error) {
	n.kind = charNode
	name := n.text[2:]
	if name == "" && r.at < len(r.text) && r.text[r.at] != '\n' {
		name = r.text[r.at : r.at+1]
		r.at++
	}
	c, named := charNames[name]
	if !named && len(name) != 1 {
		return n, r.fail(p, "undefined sharp expression: %s", clip(n.text, 40))
	}
	if n.num = int64(c); !named {
		n.num = int64(name[0])
	}
	return n, nil
}

// radix reads #x1f, #o17, #b11 and #d9.
func radix(s string) (int64, bool) {
	if len(s) < 3 {
		return 0, false
	}
	base := map[byte]int{'x': 16, 'o': 8, 'b': 2, 'd': 10}[s[1]]
	if base == 0 {
		return 0, false
	}
	v, err := strconv.ParseInt(s[2:], base, 64)
	return v, err == nil
}
