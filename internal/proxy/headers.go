package proxy

import (
	"sync"
	"sync/atomic"
)

// A headMeter counts the lines and bytes of one header after the other before net/http makes
// fields of them, since a field of six bytes takes some 200 there.
type headMeter struct {
	budget *headerBudget
	most   int // fields
	bytes  int // of the header

	mu     sync.Mutex
	done   bool  // nothing is counted: the header is whole, or the connection closed
	closed bool  // the connection is closed
	lines  int   // of the header, blank one not among them
	size   int   // of it
	line   int   // bytes of its last line
	cost   int64 // of it, taken from the budget
}

const (
	maxHeadBytes      = 64 << 10 // bytes of a header
	maxTrailer        = 1 << 10  // bytes of a request's trailer
	maxRequestFields  = 200      // of a request's header
	maxResponseFields = 500      // of a response's header
	maxInterim        = 5        // interim responses before a response
)

// errFields and errBudget refuse headers before they are parsed.
var (
	errBudget = &Refusal{Why: "the headers of all requests under way take as much memory as they may: try again when others have ended"}
	errFields = &Refusal{Why: "the request's header has more fields, or bytes, than a request may have: 200, or 64 KiB"}
)

// count counts the header's part of b: n bytes, up to the blank line if whole. Once the connection is closed, or another's, all of it is.
func (m *headMeter) count(b []byte) (n int, whole bool, fault *Refusal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return len(b), false, nil
	case m.done:
		return 0, false, nil
	}
	before, elements := m.lines, 0
	for ; n < len(b) && !whole; n++ {
		if b[n] == ',' { // net/http makes a map of what a Trailer field lists
			elements++
		}
		switch x := b[n]; {
		case x == '\n' && m.line == 0:
			whole = m.lines > 0 // else it stands before the first line
		case x == '\n':
			m.lines++
			m.line = 0
		case x != '\r':
			m.line++
		}
	}
	m.size += n
	cost := int64(m.lines-before)*fieldCost + int64(elements)*elementCost + int64(n)*byteCost
	if !m.budget.reserve(cost) {
		return n, whole, errBudget
	}
	if m.cost += cost; m.lines > 1+m.most || m.size > m.bytes {
		return n, whole, errFields
	}
	return n, whole, nil
}

// reset starts the next header and returns the last one's cost to the budget.
func (m *headMeter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.release(m.cost)
	m.done, m.lines, m.size, m.line, m.cost = m.closed, 0, 0, 0, 0
}

// trailer has what follows counted as a trailer, with the header's cost.
func (m *headMeter) trailer() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.lines, m.size, m.line = m.closed, 1, m.bytes-maxTrailer, 0 // a trailer may be empty: 1
}

// stop ends the counting: the header is whole.
func (m *headMeter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done = true
}

// stopped reports whether the header is whole.
func (m *headMeter) stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// takeCost returns the header's cost, which the caller returns to the budget.
func (m *headMeter) takeCost() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.cost
	m.cost = 0
	return n
}

// close ends the counting for good: a pending Read takes nothing more of the budget.
func (m *headMeter) close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.reset()
}

// A headerBudget is bytes of memory that all headers under way in a proxy share: those of requests,
// of what is made of these for servers, and of responses.
type headerBudget struct{ used atomic.Int64 }

const (
	maxHeaderMemory = 64 << 20
	fieldCost       = 600 // of a field, in the maps of net/http and of what is cloned of them
	elementCost     = 300 // of an element of a list, such as a Trailer's
	byteCost        = 3
)

// reserve reserves n bytes; false: there is no room.
func (b *headerBudget) reserve(n int64) bool {
	if b.used.Add(n) <= maxHeaderMemory {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *headerBudget) release(n int64) { b.used.Add(-n) }
