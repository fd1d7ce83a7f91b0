package main

import (
	"fmt"
	"strings"
)

// clipped keeps the beginning and the end of what is written to it, which is
// where a model finds what it looks for, in memory of a fixed size.
type clipped struct {
	limit int // bytes; zero or less: none are kept
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // the oldest byte of the full ring
	total int64
}

// Write never fails: the command must not notice.
func (c *clipped) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	half := max(c.limit, 0) / 2
	take := min(n, half-len(c.head))
	c.head = append(c.head, p[:take]...)
	p = p[take:]
	room := max(c.limit, 0) - half
	if len(p) > room {
		p = p[len(p)-room:]
	}
	for _, b := range p {
		if len(c.tail) < room {
			c.tail = append(c.tail, b)
			continue
		}
		c.tail[c.next] = b
		c.next = (c.next + 1) % room
	}
	return n, nil
}

// String returns what was kept as valid UTF-8, with a note where something is
// missing.
func (c *clipped) String() string {
	tail := append(append([]byte(nil), c.tail[c.next:]...), c.tail[:c.next]...)
	dropped := c.total - int64(len(c.head)+len(tail))
	text := func(b []byte) string { return strings.ToValidUTF8(string(b), "\uFFFD") }
	if dropped == 0 {
		return text(append(c.head[:len(c.head):len(c.head)], tail...))
	}
	return fmt.Sprintf("%s\n[... %d of %d bytes are left out here ...]\n%s", text(c.head), dropped, c.total, text(tail))
}
