package redact

import "bytes"

// A matcher finds encodings in a stream of bytes, looking at each byte once: what it
// knows of those before is which characters of which encodings may have been written so
// far (Thompson's simulation of an automaton). A matcher of the same secrets for
// another stream is a copy of its first state.
type matcher struct {
	by    *automaton
	at    int64 // bytes so far
	now   []thread
	spare []thread
	sat   int64        // the byte for which seen holds, and 1
	seen  []seenThread // by seat of a place, once there are many threads: a secret of one character, over and over
}

// An automaton is the immutable part of a matcher, shared by all streams.
type automaton struct {
	encodings []encoding
	first     [256][]start       // the threads that a byte begins
	pairs     [256][256 / 8]byte // whether two bytes, folded, may be the beginning of anything
	seats     []int              // of each encoding's first character
	size      int                // of all seats
}

// A seenThread says which thread is at a place.
type seenThread struct {
	at  int64 // the byte of which that is true, and 1
	now int32
}

type start struct {
	of int32
	at *charTree
}

// A place is how far an encoding has been written, to the end of a character.
type place struct{ of, char int32 }

type thread struct {
	place
	at   *charTree
	from int64 // the encoding's first byte
}

// A hit is an encoding that was found.
type hit struct {
	from, to int64
	with     string
}

func newAutomaton(list []encoding) *automaton {
	a := &automaton{encodings: list}
	for i := range a.encodings {
		s := &a.encodings[i]
		s.compile()
		a.seats = append(a.seats, a.size)
		a.size += len(s.chars)
		for _, e := range s.chars[0].next {
			a.first[e.b] = append(a.first[e.b], start{int32(i), e.to})
			a.pair(e.b, e.to)
			if e.to.whole && len(s.chars) > 1 {
				a.pair(e.b, s.chars[1])
			}
			if e.to.whole && len(s.chars) == 1 {
				a.pairs[e.b] = [32]byte(bytes.Repeat([]byte{0xff}, 32))
			}
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		for first := range a.pairs {
			a.pairs[first][c/8] |= a.pairs[first][(c|0x20)/8] & (1 << (c % 8))
		}
		a.pairs[c] = a.pairs[c|0x20]
	}
	return a
}

// pair notes the bytes that may follow a first one.
func (a *automaton) pair(first byte, then *charTree) {
	for _, e := range then.next {
		a.pairs[first][e.b/8] |= 1 << (e.b % 8)
	}
}

func (a *automaton) begins(first, then byte) bool { return a.pairs[first][then/8]>>(then%8)&1 != 0 }

// seenFrom is the number of threads from which a table finds duplicates.
const seenFrom = 32

// feed looks at more bytes and adds the hits that end in them.
func (m *matcher) feed(b []byte, hits []hit) []hit {
	pairs := &m.by.pairs
	for i := 0; i < len(b); i++ {
		if len(m.now) == 0 { // most bytes begin nothing
			j := i
			for j+1 < len(b) && pairs[b[j]][b[j+1]/8]>>(b[j+1]%8)&1 == 0 {
				j++
			}
			m.at += int64(j - i)
			i = j
		}
		c := lower[b[i]]
		first := m.by.first[c]
		if len(first) > 0 && i+1 < len(b) && !m.by.begins(c, b[i+1]) {
			first = nil
		}
		if len(m.now)+len(first) > 0 {
			hits = m.step(c, first, hits)
		}
		m.at++
	}
	return hits
}

func (m *matcher) step(c byte, first []start, hits []hit) []hit {
	old := m.now
	m.now, m.spare = m.spare[:0], old
	for i := range old {
		if to := old[i].at.after(c); to != nil {
			hits = m.move(old[i], to, hits)
		}
	}
	for _, s := range first {
		hits = m.move(thread{place: place{of: s.of}, from: m.at}, s.at, hits)
	}
	return hits
}

// move takes a thread on to where a byte has led.
func (m *matcher) move(t thread, to *charTree, hits []hit) []hit {
	s := &m.by.encodings[t.of]
	if to.whole {
		if int(t.char)+1 == len(s.chars) {
			hits = append(hits, hit{t.from, m.at + 1, s.with})
		} else {
			m.addThread(thread{place{t.of, t.char + 1}, s.chars[t.char+1], t.from})
		}
	}
	if to.idle && t.char > 0 {
		m.addThread(thread{t.place, s.chars[t.char], t.from})
	}
	if len(to.next) > 0 {
		m.now = append(m.now, thread{t.place, to, t.from})
	}
	return hits
}

// addThread adds a thread at the beginning of a character, unless one is there; of two, the
// one that began first.
func (m *matcher) addThread(t thread) {
	if len(m.now) < seenFrom {
		for i := range m.now {
			if o := &m.now[i]; o.place == t.place && o.at == t.at {
				o.from = min(o.from, t.from)
				return
			}
		}
	} else {
		if m.sat != m.at+1 {
			m.fillSeen()
		}
		s := &m.seen[m.by.seats[t.of]+int(t.char)]
		if s.at == m.at+1 {
			o := &m.now[s.now]
			o.from = min(o.from, t.from)
			return
		}
		*s = seenThread{m.at + 1, int32(len(m.now))}
	}
	m.now = append(m.now, t)
}

// fillSeen notes where the first threads are.
func (m *matcher) fillSeen() {
	if m.sat = m.at + 1; m.seen == nil {
		m.seen = make([]seenThread, m.by.size)
	}
	for i, o := range m.now {
		if o.at == m.by.encodings[o.of].chars[o.char] {
			m.seen[m.by.seats[o.of]+int(o.char)] = seenThread{m.at + 1, int32(i)}
		}
	}
}

// halfMatched is where the first encoding began of which more than half has come; ok is false
// without one.
func (m *matcher) halfMatched() (from int64, ok bool) {
	for _, t := range m.now {
		if int(t.char)*2 > len(m.by.encodings[t.of].chars) && (!ok || t.from < from) {
			from, ok = t.from, true
		}
	}
	return from, ok
}
