package redact

import (
	"io"
	"net"
	"sync"
	"time"
)

const (
	chunk = 16 << 10             // of a stream, looked at in one piece
	tick  = 5 * time.Millisecond // of waiting
	ticks = 4                    // that a server has for the rest of a writing
)

// A stream passes a body, or a WebSocket's frames, on and masks secrets in place. What may be the beginning of a
// writing waits for the rest until the server has been silent for some ticks: then more of it is passed on, but for more than half
// of a writing, which cannot be guessed step by step. What waits, and for how long, does not depend on the secret
// otherwise, and is bounded by the longest writing.
//
// The time is counted in ticks so that bytes which have come are read before it is over, on a busy machine too.
type stream struct {
	src   io.ReadCloser
	by    *Redactor
	atEnd func() // trailers have arrived
	scan  *scanner
	text  []byte // that has come, from at on not read yet
	at    int
	free  int   // up to where text may be read
	base  int64 // of text
	err   error

	asked bool          // it reads
	still bool          // nothing has come for some ticks
	more  chan struct{} // asks for more
	got   chan piece
	done  chan struct{}
	close sync.Once
}

// A piece is what one read has returned.
type piece struct {
	b   []byte
	err error
}

func (r *Redactor) stream(src io.ReadCloser, atEnd func()) *stream {
	s := &stream{src: src, by: r, atEnd: atEnd, more: make(chan struct{}), got: make(chan piece, 1), done: make(chan struct{})}
	s.scan = newScanner(r.known(), func(from, to int64, placeholder string) {
		passed := max(s.base-from, 0)
		mask(s.text[from+passed-s.base:to-s.base], placeholder, int(passed))
	})
	go s.pump()
	return s
}

// mask writes a placeholder in as many bytes as a secret's writing has, from one of them on.
func mask(b []byte, placeholder string, from int) {
	for i := range b {
		if b[i] = '_'; from+i < len(placeholder) {
			b[i] = placeholder[from+i]
		}
	}
}

func (s *stream) Read(p []byte) (int, error) {
	for len(p) > 0 && s.at == s.free {
		if s.err != nil {
			return 0, s.err
		}
		s.fill()
	}
	n := copy(p, s.text[s.at:s.free])
	s.at += n
	return n, nil
}

// fill waits for more, or for what has waited long enough. What waits when an error cuts the stream off is not passed on.
func (s *stream) fill() {
	if !s.asked {
		select {
		case s.more <- struct{}{}:
			s.asked = true
		case <-s.done:
			s.err = net.ErrClosed
			return
		}
	}
	p, came := s.wait()
	if s.still = !came; s.still {
		s.free = int(max(s.scan.half()-s.base, int64(len(s.text)-s.scan.by.longest+1), int64(s.free)))
		return
	}
	s.asked = false
	s.base += int64(s.at)
	s.text = append(s.text[:copy(s.text, s.text[s.at:])], p.b...)
	s.at = 0
	s.scan.feed(p.b)
	if s.err = p.err; s.err == io.EOF {
		s.scan.end()
		s.free = len(s.text)
		s.atEnd()
		return
	} else if s.err != nil { // it goes into the event, and may quote what could not be read
		s.err = s.by.CleanError(s.err)
	}
	s.free = len(s.text) - s.scan.by.open(s.text)
}

// wait waits for what the server sends next: for some ticks, if something is held back for it.
func (s *stream) wait() (p piece, came bool) {
	for i := 0; s.still || s.free == len(s.text) || i < ticks; i++ {
		var late <-chan time.Time
		if !s.still && s.free < len(s.text) {
			late = time.After(tick)
		}
		select {
		case p := <-s.got:
			return p, true
		case <-late:
		}
	}
	return p, false
}

// pump reads as it is asked to.
func (s *stream) pump() {
	b := make([]byte, chunk)
	for {
		select {
		case <-s.more:
		case <-s.done:
			return
		}
		n, err := s.src.Read(b)
		if s.got <- (piece{b[:n], err}); err != nil {
			return
		}
	}
}

// Close may be called at any time.
func (s *stream) Close() error {
	s.close.Do(func() { close(s.done) })
	return s.src.Close()
}
