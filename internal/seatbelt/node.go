package seatbelt

import (
	"strconv"
	"strings"
)

// A node is one form of a profile's text. Lists hold their elements by value:
// a hostile text is mostly nodes.
type node struct {
	kind nodeKind
	line int32
	col  int32
	text string // of a symbol or a string
	num  int64
	list []node
	tail bool // of a list: its last element stood behind a dot
}

type nodeKind uint8

const (
	symbolNode nodeKind = iota
	stringNode
	numberNode
	boolNode // num is 0 or 1
	charNode // num is the byte
	listNode
)

// clip is the beginning of a string, for a message.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// quote writes a string so that the reader reads it back.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c < 0x20 || c == 0x7f:
			b.WriteString(`\x`)
			if c < 16 {
				b.WriteByte('0')
			}
			b.WriteString(strconv.FormatUint(uint64(c), 16))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
