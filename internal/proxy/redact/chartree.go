package redact

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
)

// A charTree is how one character may be written: a tree of bytes, folded. It says nothing
// of a secret, and each is made once for the process.
type charTree struct {
	next  []edge
	whole bool // the character ends here
	idle  bool // a separator that may stand between two characters ends here
}

type edge struct {
	b  byte
	to *charTree
}

// after is what follows a byte; nil: nothing does.
func (c *charTree) after(b byte) *charTree {
	for i := range c.next {
		if c.next[i].b == b {
			return c.next[i].to
		}
	}
	return nil
}

// add puts a text into the tree and returns where it ends.
func (c *charTree) add(s string) *charTree {
	for i := range len(s) {
		to := c.after(s[i])
		if to == nil {
			to = &charTree{}
			c.next = append(c.next, edge{s[i], to})
		}
		c = to
	}
	return c
}

// An alphabet is the set of characters of an encoding. It decides which separators may
// stand between them and how each may be escaped.
type alphabet uint8

const (
	plainText alphabet = iota // the secret itself, escaped or not
	digits64                  // of base64: of either alphabet, in lines
	digitText                 // of hexadecimal or base32: in lines
	exact                     // nothing but itself
)

type charKey struct {
	script alphabet
	char   string
}

var charTrees = struct {
	sync.Mutex
	made map[charKey]*charTree
}{made: map[charKey]*charTree{}}

// charTreeOf returns how a character may be written.
func charTreeOf(k charKey) *charTree {
	charTrees.Lock()
	defer charTrees.Unlock()
	c := charTrees.made[k]
	if c == nil {
		c = k.make()
		charTrees.made[k] = c
	}
	return c
}

// breaks are the line ends between two lines of digits, escaped too, and the soft line
// ends of quoted-printable.
var breaks = map[alphabet][]string{
	plainText: {"=\r\n", "=\n"},
	digits64:  {"\r", "\n", `\r`, `\n`, "%0d", "%0a", "&#13;", "&#10;", "=\r\n", "=\n"},
	digitText: {"\r", "\n", `\r`, `\n`},
}

func (k charKey) make() *charTree {
	c := &charTree{}
	forms := []string{k.char}
	if other := (map[string]string{"+": "-", "-": "+", "/": "_", "_": "/"})[k.char]; k.script == digits64 && other != "" {
		forms = append(forms, other)
	}
	for _, f := range forms {
		if k.script == plainText || k.script == digits64 && !alphanumeric(f) {
			for _, s := range written(f) {
				c.add(folded(s)).whole = true
			}
		}
		c.add(folded(f)).whole = true
	}
	for _, s := range breaks[k.script] {
		c.add(s).idle = true
	}
	return c
}

func alphanumeric(s string) bool {
	return len(s) == 1 && ('a' <= s[0]|0x20 && s[0]|0x20 <= 'z' || '0' <= s[0] && s[0] <= '9')
}

// folded is a text in the case in which texts are compared: servers write hexadecimal
// digits, entities and the names of headers in either case, and a secret in another case
// still tells most of it. Bytes beyond ASCII are left as they are.
func folded(s string) string {
	b := []byte(s)
	for i := range b {
		b[i] = lower[b[i]]
	}
	return string(b)
}

var lower = func() (to [256]byte) {
	for i := range to {
		if to[i] = byte(i); 'A' <= i && i <= 'Z' {
			to[i] |= 0x20
		}
	}
	return to
}()

// written is how servers write a character: escaped for a URL, JSON, HTML, a string of a
// language, quoted-printable; and, unless it is a letter or a digit, each of these within
// another one, the whole of it or the sign alone by which it begins.
func written(char string) []string {
	var once, twice []string
	for _, by := range escapes {
		once = append(once, by(char))
	}
	if !alphanumeric(char) {
		for _, s := range once {
			for _, by := range escapes {
				twice = append(twice, escapedBy(s, by, len(s)), escapedBy(s, by, 1))
			}
		}
	}
	return append(once, twice...)
}

// escapes are the ways to escape a character. One that does not know it returns it as it is.
var escapes = []func(char string) string{
	eachByte("%%%02x"), eachByte("=%02x"), eachByte(`\x%02x`),
	codePoint(`\u%04x`), codePoint("&#%d;"), codePoint("&#%03d;"), codePoint("&#x%x;"), codePoint("&#x%04x;"),
	func(char string) string { return cmp.Or(entities[char], char) },
	func(char string) string { return cmp.Or(otherEntities[char], char) },
	func(char string) string {
		if len(char) == 1 && char != " " && !alphanumeric(char) {
			return `\` + char
		}
		return char
	},
}

// entities are those that libraries for HTML and XML write, PHP's htmlentities with ENT_HTML5 for each sign that has one, and the space of URL-encoded
// forms. otherEntities are further names of the same signs.
var (
	entities = map[string]string{"&": "&amp;", "<": "&lt;", ">": "&gt;", `"`: "&quot;", "'": "&apos;", "/": "&sol;", "+": "&plus;", "=": "&equals;", " ": "+",
		"!": "&excl;", "#": "&num;", "$": "&dollar;", "%": "&percnt;", "(": "&lpar;", ")": "&rpar;", "*": "&ast;", ",": "&comma;", ".": "&period;", ":": "&colon;", ";": "&semi;",
		"?": "&quest;", "@": "&commat;", "[": "&lbrack;", `\`: "&bsol;", "]": "&rbrack;", "^": "&Hat;", "_": "&lowbar;", "`": "&grave;", "{": "&lbrace;", "|": "&vert;", "}": "&rbrace;"}
	otherEntities = map[string]string{"*": "&midast;", "[": "&lsqb;", "]": "&rsqb;", "_": "&UnderBar;", "{": "&lcub;", "|": "&verbar;", "}": "&rcub;"}
)

func eachByte(form string) func(string) string {
	return func(char string) string {
		var b strings.Builder
		for _, c := range []byte(char) {
			fmt.Fprintf(&b, form, c)
		}
		return b.String()
	}
}

// codePoint writes a character's number: by two surrogates where there is room for 16 bits.
func codePoint(form string) func(string) string {
	return func(char string) string {
		r := []rune(char)
		if len(r) != 1 {
			return char
		}
		if hi, lo := utf16.EncodeRune(r[0]); hi != unicode.ReplacementChar && strings.HasPrefix(form, `\u`) {
			return fmt.Sprintf(form, hi) + fmt.Sprintf(form, lo)
		}
		return fmt.Sprintf(form, r[0])
	}
}

// escapedBy escapes the signs among a text's first bytes.
func escapedBy(s string, by func(string) string, first int) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i : i+1]; i < first && !alphanumeric(c) && c[0] < 0x80 {
			b.WriteString(by(c))
		} else {
			b.WriteString(c)
		}
	}
	return b.String()
}
