package callback

import "sync/atomic"

// A Limit bounds the calls that have not returned. A caller stops waiting when its context
// ends; a function that ignores its context keeps its place.
type Limit struct{ open atomic.Int64 }

// Acquire reports whether there is room for another call, which Release ends.
func (l *Limit) Acquire(most int) bool {
	if l.open.Add(1) <= int64(most) {
		return true
	}
	l.Release()
	return false
}

// Release ends a call.
func (l *Limit) Release() { l.open.Add(-1) }

// Panics calls a function of the policy's, and reports whether that panics.
func Panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
