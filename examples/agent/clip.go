package main

import (
	"fmt"
	"strings"
)

// clipped keeps the beginning and the end of what is written to it, which is where a model finds what it looks for.
type clipped struct {
	limit int
	head  []byte
	tail  []byte // at most twice as long as it is to be
	total int
}

// Write never fails: the tool must not notice.
func (c *clipped) Write(p []byte) (int, error) {
	c.total += len(p)
	n := min(len(p), max(c.limit/2-len(c.head), 0))
	c.head = append(c.head, p[:n]...)
	rest := p[n:]
	c.tail = append(c.tail, rest[max(0, len(rest)-c.limit):]...)
	if len(c.tail) > c.limit {
		c.tail = append(c.tail[:0], c.tail[len(c.tail)-c.limit/2:]...)
	}
	return len(p), nil
}

// String returns what was kept, and says how much was not.
func (c *clipped) String() string {
	tail := c.tail[max(0, len(c.tail)-(c.limit-len(c.head))):]
	middle := ""
	if left := c.total - len(c.head) - len(tail); left > 0 {
		middle = fmt.Sprintf("\n[... %d of %d bytes are left out here ...]\n", left, c.total)
	}
	return strings.ToValidUTF8(string(c.head), "\uFFFD") + middle + strings.ToValidUTF8(string(tail), "\uFFFD")
}
