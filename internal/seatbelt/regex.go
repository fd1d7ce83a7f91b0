package seatbelt

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A profile's regular expressions are POSIX extended ones, over the text of a path
// or a name; a match may be anywhere in it. They are rewritten for Go's engine:
//
//	. matches a newline too; $ is the very end
//	x*? is (x*)?: POSIX has no lazy operators; x** is (x*)*
//	{2}, {2,} and {2,5} are intervals, up to 255; any other { is itself
//	[...] is POSIX's, with [:alpha:] and the like; \ in it quotes a sign, as authors
//	of profiles expect, where POSIX would have a backslash; \w in it is [_[:alnum:]]
//
// Errors: backreferences and other \ before a letter or digit, (?...), [.x.] and [=x=], an
// operator that stands behind nothing, and what is not UTF-8.

// regexp compiles a profile's regular expression.
func (m *machine) regexp(text string, at Position) (*regexp.Regexp, error) {
	if c, ok := m.regexps[text]; ok {
		return c.re, nil
	}
	t := translator{text: text}
	out, size, err := t.alternatives(0)
	if err == nil && t.at < len(text) {
		err = fmt.Errorf("unmatched )")
	}
	if err != nil {
		return nil, fail(at, "invalid regular expression %s: %s", quote(clip(text, 80)), err)
	}
	if size > m.limits.Regexp {
		return nil, fail(at, "regular expression too large: %s", quote(clip(text, 80)))
	}
	if m.program += size; m.program > m.limits.Regexps {
		return nil, fail(at, "regular expressions too large: more than %d instructions in all", m.limits.Regexps)
	}
	re, err := regexp.Compile("(?s)" + out)
	if err != nil {
		return nil, fail(at, "invalid regular expression %s: %s", quote(clip(text, 80)), strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	m.regexps[text] = compiled{re, size}
	return re, nil
}

// A translator writes a POSIX expression as Go's, and counts its size.
type translator struct {
	text string
	at   int
}

// enough is a size that is too large for any limit.
const enough = 1 << 30

func (t *translator) more() bool { return t.at < len(t.text) }

// alternatives reads up to the end or a closing parenthesis.
func (t *translator) alternatives(depth int) (string, int, error) {
	if depth > 100 {
		return "", 0, fmt.Errorf("nested too deep")
	}
	var b strings.Builder
	total := 1
	for {
		branch, size, err := t.branch(depth)
		if err != nil {
			return "", 0, err
		}
		b.WriteString(branch)
		total = min(total+size+1, enough)
		if !t.more() || t.text[t.at] != '|' {
			return b.String(), total, nil
		}
		t.at++
		b.WriteByte('|')
	}
}

func (t *translator) branch(depth int) (string, int, error) {
	var b strings.Builder
	total := 0
	for t.more() && t.text[t.at] != '|' && t.text[t.at] != ')' {
		atom, size, err := t.atom(depth)
		if err != nil {
			return "", 0, err
		}
		for n := 0; t.more(); n++ {
			op, times := t.operator()
			if op == "" {
				break
			}
			if times < 0 || n > 8 {
				return "", 0, fmt.Errorf("invalid repetition %s", op)
			}
			if n > 0 {
				atom = "(?:" + atom + ")"
			}
			atom += op
			size = min(size*max(times, 1)+1, enough)
		}
		b.WriteString(atom)
		total = min(total+size, enough)
	}
	return b.String(), total, nil
}

// operator reads a repetition: what Go's engine is to see, and by how much it
// multiplies; -1 is an error.
func (t *translator) operator() (string, int) {
	switch c := t.text[t.at]; c {
	case '*', '+', '?':
		t.at++
		return string(c), 1
	case '{':
		if end := strings.IndexByte(t.text[t.at:], '}'); end > 0 && interval(t.text[t.at+1:t.at+end]) {
			op := t.text[t.at : t.at+end+1]
			t.at += end + 1
			low, high, both := strings.Cut(op[1:len(op)-1], ",")
			n, err := strconv.Atoi(low)
			m := n
			if both && high != "" && err == nil {
				m, err = strconv.Atoi(high)
			}
			if err != nil || n > 255 || m > 255 || m < n {
				return op, -1
			}
			return op, m + 1
		}
	}
	return "", 0
}

// interval: digits, or digits and a comma and perhaps digits.
func interval(s string) bool {
	low, high, _ := strings.Cut(s, ",")
	return low != "" && strings.Trim(low+high, "0123456789") == ""
}

func (t *translator) atom(depth int) (string, int, error) {
	c := t.text[t.at]
	t.at++
	switch c {
	case '(':
		if t.more() && t.text[t.at] == '?' {
			return "", 0, fmt.Errorf("(? has no meaning here")
		}
		in, size, err := t.alternatives(depth + 1)
		if err != nil {
			return "", 0, err
		}
		if !t.more() {
			return "", 0, fmt.Errorf("unmatched (")
		}
		t.at++
		return "(?:" + in + ")", size, nil
	case '[':
		return t.class()
	case '\\':
		return t.quoted()
	case '*', '+', '?':
		return "", 0, fmt.Errorf("nothing to repeat before %c", c)
	case '.', '^', '$':
		return string(c), 1, nil
	}
	if c < 0x80 {
		return regexp.QuoteMeta(string(c)), 1, nil
	}
	from := t.at - 1 // the whole of a character, so that an operator repeats it all
	for t.more() && t.text[t.at]&0xc0 == 0x80 {
		t.at++
	}
	return t.text[from:t.at], t.at - from, nil
}

func (t *translator) quoted() (string, int, error) {
	if !t.more() {
		return "", 0, fmt.Errorf("trailing backslash")
	}
	c := t.text[t.at]
	t.at++
	if alphanumeric(c) || c >= 0x80 {
		return "", 0, fmt.Errorf(`\%c has no meaning here`, c)
	}
	return regexp.QuoteMeta(string(c)), 1, nil
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// class reads [...], the bracket being behind us.
func (t *translator) class() (string, int, error) {
	var b strings.Builder
	b.WriteByte('[')
	size := 2
	if t.more() && t.text[t.at] == '^' {
		b.WriteByte('^')
		t.at++
	}
	for first := true; t.more(); first = false {
		c := t.text[t.at]
		t.at++
		size++
		switch {
		case c == ']' && !first:
			b.WriteByte(']')
			return b.String(), size, nil
		case c == '[' && t.more() && (t.text[t.at] == '.' || t.text[t.at] == '='):
			return "", 0, fmt.Errorf("collating elements are not there")
		case c == '[' && t.more() && t.text[t.at] == ':':
			end := strings.Index(t.text[t.at:], ":]")
			if end < 0 {
				return "", 0, fmt.Errorf("unmatched %q", "[:")
			}
			b.WriteString("[" + t.text[t.at:t.at+end+2]) // Go's engine knows the names, and refuses others
			t.at += end + 2
			size += 10
		case c == '\\':
			if !t.more() {
				return "", 0, fmt.Errorf("trailing backslash")
			}
			q, _, err := t.quotedInClass()
			if err != nil {
				return "", 0, err
			}
			b.WriteString(q)
		case c == '[' || c == ']' || c == '^' || c == '&' || c == '~':
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			b.WriteByte(c) // a range's - included
		}
	}
	return "", 0, fmt.Errorf("unmatched [")
}

func (t *translator) quotedInClass() (string, int, error) {
	c := t.text[t.at]
	t.at++
	if c == 'w' {
		return "0-9A-Z_a-z", 4, nil
	}
	if alphanumeric(c) || c >= 0x80 {
		return "", 0, fmt.Errorf(`\%c has no meaning in [...]`, c)
	}
	return `\` + string(c), 1, nil
}

// quoteRegexp is regex-quote: a text as an expression that matches it.
func quoteRegexp(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`\.[]{}()*+?^$|`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
