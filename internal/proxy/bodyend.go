package proxy

import "strings"

// A bodyMeter follows a request's body to its end: net/http is given nothing of what is behind it together with it,
// since that is a header of which nothing was counted. It reads chunks as net/http does, which refuses those that are malformed.
type bodyMeter struct {
	left    int64 // bytes of the body, or of a chunk and the end of line behind it
	chunked bool
	size    uint64 // of the chunk whose line is being read
	sized   bool   // the line's digits have ended
}

// begin starts a body of a length, or in chunks: -1.
func (m *bodyMeter) begin(length int64) {
	*m = bodyMeter{left: max(length, 0), chunked: length < 0}
}

// take returns how many bytes are the body's; last: a trailer follows these.
func (m *bodyMeter) take(b []byte) (n int, last bool) {
	for n < len(b) && (m.left > 0 || m.chunked) {
		if m.left == 0 {
			m.line(b[n])
			n, last = n+1, !m.chunked
			continue
		}
		part := min(m.left, int64(len(b)-n))
		m.left, n = m.left-part, n+int(part)
	}
	return n, last
}

// line takes a byte of a chunk's line: its size, perhaps extensions, and its end.
func (m *bodyMeter) line(c byte) {
	digit := strings.IndexByte("0123456789abcdef", c|' ')
	switch {
	case c == '\n' && m.size == 0:
		m.chunked = false
	case c == '\n':
		m.left = int64(min(m.size, 1<<62)) + int64(len("\r\n"))
		m.size, m.sized = 0, false
	case digit >= 0 && !m.sized:
		m.size = m.size<<4 | uint64(digit)
	default:
		m.sized = true
	}
}
