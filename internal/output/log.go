package output

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// kept is how much of the output a Log has, and window the longest match between two writes.
const kept, window = 256 << 10, 4 << 10

// A Log has the end of a command's output. Its methods may be called at once.
type Log struct {
	mu      sync.Mutex
	data    []byte // the last bytes, up to twice kept
	end     int64  // how many there were in all
	open    int    // sources that have not ended
	any     bool   // there was a source
	started bool
	ended   chan struct{} // closed: nothing more is printed
	waiters map[*waiter]struct{}
	readers []*os.File // of pipes
	taking  sync.Mutex // from one of them
	closed  atomic.Bool
	writers []*os.File // of pipes, until the command has them
}

// A waiter is a call of Wait.
type waiter struct {
	pattern *regexp.Regexp
	text    []byte // the last bytes, without a match
	found   chan string
}

// New returns an empty Log.
func New() *Log { return &Log{ended: make(chan struct{}), waiters: map[*waiter]struct{}{}} }

// add appends what was printed.
func (l *Log) add(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end += int64(len(p))
	l.data = append(l.data, p[max(0, len(p)-kept):]...)
	if len(l.data) > 2*kept {
		l.data = append(l.data[:0], l.data[len(l.data)-kept:]...)
	}
	for w := range l.waiters {
		if w.look(p) {
			delete(l.waiters, w)
		}
	}
}

// last is what is kept, with the lock held.
func (l *Log) last() []byte { return l.data[max(0, len(l.data)-kept):] }

// look searches what is new with what went before. Where it forgets the beginning of the text, the rest begins with a line, if it has one.
func (w *waiter) look(p []byte) bool {
	w.text = append(w.text, p...)
	if m := w.pattern.Find(w.text); m != nil {
		w.found <- string(m)
		return true
	}
	if from := len(w.text) - window; from > 0 {
		if _, rest, has := bytes.Cut(w.text[from:], []byte("\n")); has {
			from = len(w.text) - len(rest)
		}
		w.text = append(w.text[:0], w.text[from:]...)
	}
	return false
}

// Wait returns the first match in what is kept or follows. The error is ctx's, or wraps [io.EOF] when all has been printed without one.
func (l *Log) Wait(ctx context.Context, pattern *regexp.Regexp) (string, error) {
	w := &waiter{pattern: pattern, found: make(chan string, 1)}
	l.mu.Lock()
	if !w.look(l.last()) {
		l.waiters[w] = struct{}{}
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.waiters, w)
	}()
	var err error
	select {
	case m := <-w.found:
		return m, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.ended:
		err = io.EOF
	}
	select {
	case m := <-w.found:
		return m, nil
	default:
		return "", fmt.Errorf("sandbox: output that matches %q: %w", pattern, err)
	}
}

// Read returns what is kept from an offset on. What a process has written before is part of it.
func (l *Log) Read(offset int64) policy.Output {
	l.catchUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	have := l.last()
	first := l.end - int64(len(have))
	offset = min(max(offset, 0), l.end)
	o := policy.Output{Next: l.end, Dropped: max(first-offset, 0), Ended: l.started && l.open == 0}
	o.Data = bytes.Clone(have[max(offset-first, 0):])
	return o
}

// Seen reports whether anything of what the command prints comes to the Log.
func (l *Log) Seen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.any
}
