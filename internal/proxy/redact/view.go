package redact

import (
	"encoding/hex"
	"encoding/json"
	"html"
	"strings"
)

// A symbol is a byte of a text, and the bytes of the source that write it.
type symbol struct {
	b        byte
	from, to int64
}

// A view is a text as an automaton reads it: as it stands, or with escapes undone. It reads the symbols of its source, and
// stands still while it would see the same as that one.
type view struct {
	by     *automaton
	state  int32
	breaks byte    // line ends since the last symbol
	n      int64   // symbols so far
	from   []int64 // of the last symbols, in a ring: where each is written

	source *view
	undo   func(token []byte) (text []byte, more bool)
	begins string       // bytes by which undo's tokens begin
	apart  int          // symbols for which the view may differ from its source
	token  []symbol     // the beginning of an escape
	put    func(symbol) // is given what the view reads
}

// maxToken is how long an escape may be: two surrogates of JSON.
const maxToken = 12

// take moves the automaton on. It returns what ends here, and where that began. A line end may stand between two symbols,
// since encoders write digits in lines.
func (v *view) take(s symbol) (hit *found, from int64) {
	if s.b == '\r' || s.b == '\n' {
		if v.breaks&(1<<(s.b&7)) != 0 {
			v.state = 0
		}
		v.breaks |= 1 << (s.b & 7)
		return nil, 0
	}
	v.breaks = 0
	v.from[v.n&int64(len(v.from)-1)] = s.from
	v.n++
	v.state = v.by.step(v.state, folded[s.b])
	if i := v.by.nodes[v.state].hit; i != 0 {
		hit = &v.by.hits[i-1]
		return hit, v.back(hit.bytes)
	}
	return nil, 0
}

// back is where the last symbols begin, n of them.
func (v *view) back(n int32) int64 { return v.from[(v.n-int64(n))&int64(len(v.from)-1)] }

// read takes a symbol of the source, before the source's automaton does.
func (v *view) read(s symbol) {
	if len(v.token) == 0 && strings.IndexByte(v.begins, s.b) < 0 {
		if v.put(s); v.apart > 0 && s.b != '\r' && s.b != '\n' {
			v.apart--
		}
		return
	}
	if v.apart == 0 {
		source := v.source
		for source.source != nil && source.apart == 0 {
			source = source.source
		}
		v.state, v.breaks, v.n, v.from = source.state, source.breaks, source.n, append(v.from[:0], source.from...)
	}
	v.apart = v.by.longest + 1 // after as many symbols alike the automaton is where the source's is
	v.token = append(v.token, s)
	var b [maxToken]byte
	for i, s := range v.token {
		b[i] = s.b
	}
	text, more := v.undo(b[:len(v.token)])
	if text != nil {
		first := v.token[0].from
		v.token = v.token[:0]
		for _, c := range text {
			v.put(symbol{c, first, s.to})
		}
	} else if !more || len(v.token) == maxToken {
		v.giveUp()
	}
}

// giveUp has the first byte of a token stand for itself, and looks at the others anew.
func (v *view) giveUp() {
	var rest [maxToken]symbol
	n := copy(rest[:], v.token[1:])
	first := v.token[0]
	v.token = v.token[:0]
	v.put(first)
	for _, s := range rest[:n] {
		v.read(s)
	}
}

// undoEscape undoes an escape of a URL, JSON, HTML or a string of a language. Without a text it is none, or wants more.
func undoEscape(token []byte) (text []byte, more bool) {
	n, last := len(token), token[len(token)-1]
	switch {
	case n == 1:
		return nil, true
	case token[0] == '&':
		if s := string(token); last == ';' && html.UnescapeString(s) != s {
			return []byte(html.UnescapeString(s)), false
		}
		return nil, alphanumeric(last) || n == 2 && last == '#'
	case token[0] == '%':
		return hexByte(token[1:])
	case token[1]|0x20 == 'x':
		return hexByte(token[2:])
	case token[1]|0x20 == 'u':
		var s string // of two tokens, if the first is half of a surrogate pair (RFC 8259, 7)
		if n%6 != 0 {
			return nil, true
		} else if json.Unmarshal([]byte(`"`+strings.ToLower(string(token))+`"`), &s) != nil {
			return nil, false
		} else if s == "\ufffd" && n < maxToken {
			return nil, true
		}
		return []byte(s), false
	case token[1] == 'n':
		return []byte("\n"), false
	case token[1] == 'r':
		return []byte("\r"), false
	}
	return []byte{last}, false
}

// undoQuoted undoes quoted-printable (RFC 2045, 6.7), with its soft line ends.
func undoQuoted(token []byte) (text []byte, more bool) {
	switch string(token) {
	case "=", "=\r":
		return nil, true
	case "=\n", "=\r\n":
		return []byte{}, false
	}
	return hexByte(token[1:])
}

func hexByte(digits []byte) (text []byte, more bool) {
	if len(digits) < 2 {
		return nil, true
	}
	if text, err := hex.DecodeString(string(digits)); err == nil {
		return text, false
	}
	return nil, false
}

func alphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// unescaped is a text with its escapes undone, as a view has it.
func unescaped(s string) string {
	var b []byte
	v := view{by: new(automaton), source: new(view), undo: undoEscape, begins: escapes, put: func(s symbol) { b = append(b, s.b) }}
	for i := range len(s) {
		v.read(symbol{b: s[i]})
	}
	for len(v.token) > 0 {
		v.giveUp()
	}
	return string(b)
}

// escapes are the bytes by which those of undoEscape begin.
const escapes = `%\&`
