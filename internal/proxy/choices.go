package proxy

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// A choice is how one character may be written: a tree of bytes. It says nothing of a
// secret, and each is made once for the process.
type choice struct {
	next  []edge
	whole bool // the character ends here
	idle  bool // what may stand between two characters ends here
}

type edge struct {
	b  byte
	to *choice
}

// after is what follows a byte; nil: nothing does.
func (c *choice) after(b byte) *choice {
	for i := range c.next {
		if c.next[i].b == b {
			return c.next[i].to
		}
	}
	return nil
}

// add puts a text into the tree and returns where it ends.
func (c *choice) add(s string) *choice {
	for i := range len(s) {
		to := c.after(s[i])
		if to == nil {
			to = &choice{}
			c.next = append(c.next, edge{s[i], to})
		}
		c = to
	}
	return c
}

// A script says which characters a spelling is made of, and so what may stand between
// them and for them.
type script uint8

const (
	plainText script = iota // the secret, or what an escape has made of it
	digits64                // of base64: of either alphabet, in lines
	digitText               // of hexadecimal or base32: of either case, in lines
	exact                   // nothing but itself
)

type choiceOf struct {
	script script
	char   string
	fold   bool // the text is in lower case
}

var choices = struct {
	sync.Mutex
	made map[choiceOf]*choice
}{made: map[choiceOf]*choice{}}

// choose returns how a character may be written.
func choose(k choiceOf) *choice {
	choices.Lock()
	defer choices.Unlock()
	c := choices.made[k]
	if c == nil {
		c = k.make()
		choices.made[k] = c
	}
	return c
}

// breaks are what stands between two lines of digits, escaped too, and at the end of a
// line of quoted-printable.
var breaks = map[script][]string{
	plainText: {"=\r\n", "=\n"},
	digits64:  {"\r", "\n", `\r`, `\n`, "%0D", "%0A", "%0d", "%0a", "&#13;", "&#10;", "=\r\n", "=\n"},
	digitText: {"\r", "\n", `\r`, `\n`},
}

func (k choiceOf) make() *choice {
	c := &choice{}
	forms := []string{k.char}
	switch k.script {
	case digits64:
		forms = append(forms, map[string]string{"+": "-", "-": "+", "/": "_", "_": "/"}[k.char])
	case digitText:
		forms = append(forms, strings.ToLower(k.char), strings.ToUpper(k.char))
	}
	for _, f := range forms {
		if f == "" {
			continue
		}
		all := []string{f}
		if k.script == plainText || k.script == digits64 && !alphanumeric(f) {
			all = append(all, written(f)...)
		}
		for _, s := range all {
			if k.fold {
				s = strings.ToLower(s)
			}
			c.add(s).whole = true
		}
	}
	for _, s := range breaks[k.script] {
		c.add(s).idle = true
	}
	return c
}

func alphanumeric(s string) bool {
	return len(s) == 1 && ('a' <= s[0]|0x20 && s[0]|0x20 <= 'z' || '0' <= s[0] && s[0] <= '9')
}

// written is how servers write a character: escaped for a URL, JSON, HTML, a string of a
// language, quoted-printable; and, unless it is a letter or a digit, each of these within
// another one.
func written(char string) []string {
	once := escaped(char)
	if alphanumeric(char) {
		return once
	}
	list := slices.Clone(once)
	for _, s := range once {
		for _, c := range outer {
			if t := escapeBy(s, c, true); t != s {
				list = append(list, t)
			}
			if t := escapeBy(s, c, false); t != s { // the sign alone by which the escape begins
				list = append(list, t)
			}
		}
	}
	return list
}

// escaped is how a character is written once.
func escaped(char string) []string {
	var list []string
	var upper, lower, quoted, byteX, byteUpper strings.Builder
	for _, b := range []byte(char) {
		fmt.Fprintf(&upper, "%%%02X", b)
		fmt.Fprintf(&lower, "%%%02x", b)
		fmt.Fprintf(&quoted, "=%02X", b)
		fmt.Fprintf(&byteX, `\x%02x`, b)
		fmt.Fprintf(&byteUpper, `\x%02X`, b)
	}
	list = append(list, upper.String(), lower.String(), quoted.String(), byteX.String(), byteUpper.String())
	if r := []rune(char); len(r) == 1 {
		for _, form := range []string{`\u%04x`, `\u%04X`, "&#%d;", "&#%03d;", "&#x%x;", "&#x%X;", "&#x%04X;"} {
			if strings.HasPrefix(form, `\u`) && r[0] > 0xffff {
				hi, lo := 0xd800+(r[0]-0x10000)>>10, 0xdc00+(r[0]-0x10000)&0x3ff
				list = append(list, fmt.Sprintf(form, hi)+fmt.Sprintf(form, lo))
				continue
			}
			list = append(list, fmt.Sprintf(form, r[0]))
		}
	}
	if entity := entities[char]; entity != "" {
		list = append(list, entity)
	}
	switch {
	case char == " ":
		list = append(list, "+")
	case len(char) == 1 && !alphanumeric(char):
		list = append(list, `\`+char)
	}
	return list
}

// entities are those that libraries for HTML and XML write.
var entities = map[string]string{"&": "&amp;", "<": "&lt;", ">": "&gt;", `"`: "&quot;", "'": "&apos;", "/": "&sol;", "+": "&plus;", "=": "&equals;"}

// outer are the escapes that stand upon another one: how each of its signs is written.
var outer = []func(c byte) string{
	func(c byte) string { return fmt.Sprintf("%%%02X", c) },
	func(c byte) string { return fmt.Sprintf("%%%02x", c) },
	func(c byte) string { return fmt.Sprintf(`\u%04x`, c) },
	func(c byte) string { return fmt.Sprintf(`\u%04X`, c) },
	func(c byte) string { return fmt.Sprintf("&#%d;", c) },
	func(c byte) string { return fmt.Sprintf("&#x%X;", c) },
	func(c byte) string { return fmt.Sprintf("&#x%x;", c) },
	func(c byte) string { return `\` + string(c) },
	func(c byte) string {
		if e := entities[string(c)]; e != "" {
			return e
		}
		return string(c)
	},
}

// escapeBy escapes the signs of a text, all of them or the first.
func escapeBy(s string, by func(byte) string, every bool) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; !alphanumeric(s[i:i+1]) && c < 0x80 && (every || i == 0) {
			b.WriteString(by(c))
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
