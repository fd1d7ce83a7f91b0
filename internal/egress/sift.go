package egress

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"golang.org/x/net/http2/hpack"
)

// A sifted connection is one to a server that speaks HTTP/2. net/http writes a line
// to the program's own log for each frame that it does not know, which are any that a
// server likes to send, and for each that is out of order. Here the former are
// taken out, as RFC 9113 (5.5) has it, and the latter end the connection.
type sifted struct {
	net.Conn
	head bool // all requests are HEAD, and no response has a body

	in    direction // only the reader's
	chunk []byte
	ready []byte
	err   error

	out  direction // only the writer's
	mu   sync.Mutex
	open map[uint32]bool // requests whose response is not whole; true: its final header has come
	last uint32          // of the requests that were sent
}

// Types and flags of frames, RFC 9113 (6).
const (
	frameData         = 0
	frameHeaders      = 1
	framePriority     = 2
	frameReset        = 3
	frameSettings     = 4
	framePushPromise  = 5
	frameContinuation = 9

	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

const (
	frameHead = 9
	siftRead  = 16<<10 + frameHead
	mostBlock = 1 << 20 // bytes of a header as it is sent
	mostFrame = 1 << 20 // bytes of one, which is what net/http allows the server
	tableSize = 4096    // of HPACK, which net/http leaves as it is
	mostOpen  = 1 << 16 // requests of a connection whose responses have not ended, of which most were given up
)

// errSifted is what no server does.
var errSifted = errors.New("the server's HTTP/2 is malformed")

func newSifted(c net.Conn, head bool) *sifted {
	f := &sifted{Conn: c, head: head, open: map[uint32]bool{}}
	f.in.begin, f.in.headed = f.received, f.answered
	f.out.begin, f.out.skip = f.asked, len(preface)
	return f
}

func (f *sifted) unwrap() net.Conn { return f.Conn }

func (f *sifted) Read(p []byte) (int, error) {
	for len(f.ready) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		if f.chunk == nil {
			f.chunk = make([]byte, siftRead)
		}
		n, err := f.Conn.Read(f.chunk)
		if f.ready, f.err = f.in.pass(f.ready[:0], f.chunk[:n]); f.err == nil {
			f.err = err
		}
	}
	n := copy(p, f.ready)
	f.ready = f.ready[n:]
	return n, nil
}

// Write notes which requests are sent before they are.
func (f *sifted) Write(p []byte) (int, error) {
	if _, err := f.out.pass(nil, p); err != nil {
		return 0, err
	}
	return f.Conn.Write(p)
}

// asked notes a frame that is sent.
func (f *sifted) asked(h frame) (keep bool, err error) {
	if h.kind != frameHeaders {
		return false, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if h.stream > f.last { // else these are trailers
		f.last, f.open[h.stream] = h.stream, false
	}
	if len(f.open) > mostOpen {
		return false, errors.New("too many requests were given up")
	}
	return false, nil
}

// received judges a frame that the server sends; false: it is left out.
func (f *sifted) received(h frame) (keep bool, err error) {
	switch {
	case f.in.count == 1 && h.kind != frameSettings:
		return false, fmt.Errorf("%w: it does not begin with its settings", errSifted)
	case f.in.within != (h.kind == frameContinuation):
		return false, fmt.Errorf("%w: a header without its end, or its beginning", errSifted)
	case h.size > mostFrame:
		return false, fmt.Errorf("%w: a frame of more than %d bytes", errSifted, mostFrame)
	case h.kind == framePriority || h.kind > frameContinuation:
		return false, nil
	case h.kind == framePushPromise:
		return false, fmt.Errorf("%w: a push, although it was told not to", errSifted)
	case h.kind == frameReset:
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.open, h.stream)
	case h.kind == frameData:
		return true, f.data(h)
	}
	return true, nil
}

// data judges a piece of a body.
func (f *sifted) data(h frame) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	begun, open := f.open[h.stream]
	switch {
	case !open:
		return fmt.Errorf("%w: a body that nobody asked for, or beyond its end", errSifted)
	case !begun:
		return fmt.Errorf("%w: a body before its header", errSifted)
	case f.head && h.size > 0:
		return fmt.Errorf("%w: a body in answer to HEAD", errSifted)
	}
	if h.flags&flagEndStream != 0 {
		delete(f.open, h.stream)
	}
	return nil
}

// answered notes a whole header of the server's: an interim one has no body.
func (f *sifted) answered(h frame, status string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, open := f.open[h.stream]; !open {
		return
	}
	code, _ := strconv.Atoi(status)
	if f.open[h.stream] = f.open[h.stream] || code < 100 || code > 199; h.flags&flagEndStream != 0 {
		delete(f.open, h.stream)
	}
}

// A frame is the head of one.
type frame struct {
	size   int
	kind   byte
	flags  byte
	stream uint32
}

// A direction is what goes one way on a connection.
type direction struct {
	begin  func(frame) (keep bool, err error)
	headed func(first frame, status string) // nil: headers are not read

	skip   int // bytes before the first frame
	count  int
	head   [frameHead]byte
	have   int // of head
	now    frame
	left   int
	keep   bool
	within bool // of a header
	first  frame
	block  []byte
	decode *hpack.Decoder
	status string
}

// pass takes the next bytes, and appends those to out that are kept.
func (s *direction) pass(out, p []byte) ([]byte, error) {
	n := min(s.skip, len(p))
	s.skip, p = s.skip-n, p[n:]
	for len(p) > 0 {
		if s.left == 0 {
			n := copy(s.head[s.have:], p)
			p = p[n:]
			if s.have += n; s.have < frameHead {
				return out, nil
			}
			if err := s.next(); err != nil {
				return out, err
			}
			if s.keep {
				out = append(out, s.head[:]...)
			}
		}
		n := min(s.left, len(p))
		if s.keep {
			out = append(out, p[:n]...)
		}
		if err := s.payload(p[:n]); err != nil {
			return out, err
		}
		p = p[n:]
	}
	return out, nil
}

// next reads a frame's head.
func (s *direction) next() (err error) {
	b := s.head[:]
	s.have = 0
	s.count++
	s.now = frame{int(b[0])<<16 | int(b[1])<<8 | int(b[2]), b[3], b[4], binary.BigEndian.Uint32(b[5:]) &^ (1 << 31)}
	if s.keep, err = s.begin(s.now); err != nil {
		return err
	}
	s.left = s.now.size
	if s.headed == nil {
		return nil
	}
	if s.now.kind == frameHeaders {
		s.within, s.first, s.block = true, s.now, s.block[:0]
	}
	return nil
}

// payload takes a part of a frame's, and reads a header that is whole.
func (s *direction) payload(p []byte) error {
	s.left -= len(p)
	if !s.within {
		return nil
	}
	if s.block = append(s.block, p...); len(s.block) > mostBlock {
		return fmt.Errorf("%w: a header of more than %d bytes", errSifted, mostBlock)
	}
	if s.left > 0 {
		return nil
	}
	if s.now.kind == frameHeaders {
		if err := s.trim(); err != nil {
			return err
		}
	}
	if s.now.flags&flagEndHeaders == 0 {
		return nil
	}
	s.within = false
	return s.read()
}

// trim leaves of a header's first frame what is encoded.
func (s *direction) trim() error {
	from, pad := 0, 0
	if s.now.flags&flagPadded != 0 && len(s.block) > 0 {
		from, pad = 1, int(s.block[0])
	}
	if s.now.flags&flagPriority != 0 {
		from += 5
	}
	if from+pad > len(s.block) {
		return fmt.Errorf("%w: a header shorter than its padding", errSifted)
	}
	s.block = s.block[from : len(s.block)-pad]
	return nil
}

// read decodes a header, each of them, since one may refer to those before.
func (s *direction) read() error {
	if s.decode == nil {
		s.decode = hpack.NewDecoder(tableSize, func(f hpack.HeaderField) {
			if f.Name == ":status" && s.status == "" {
				s.status = f.Value
			}
		})
	}
	s.status = ""
	_, err := s.decode.Write(s.block)
	if err == nil {
		err = s.decode.Close()
	}
	if err != nil { // which may quote it
		return fmt.Errorf("%w: a header that cannot be decoded", errSifted)
	}
	s.headed(s.first, s.status)
	return nil
}
