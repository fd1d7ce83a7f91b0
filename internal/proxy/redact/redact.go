package redact

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"sync"
)

// A Redactor puts placeholders back where an answer reflects secrets, in any of the
// encodings that servers give to what they echo. The nil redactor changes nothing.
type Redactor struct {
	known func() *patternSet // made when an answer first needs it
}

// patternSet is what a redactor finds secrets by.
type patternSet struct {
	texts   *automaton
	longest int // bytes of the longest writing
}

// A Secret is replaced by its placeholder. Text is a function, which no printer follows.
type Secret struct {
	Text        func() string
	Placeholder string
}

// New makes the redactor of some secrets; nil for none.
func New(list []Secret) *Redactor {
	if len(list) == 0 {
		return nil
	}
	return &Redactor{sync.OnceValue(func() *patternSet {
		k := &patternSet{texts: newAutomaton(encodingsOfAll(list))}
		for _, s := range k.texts.encodings {
			k.longest = max(k.longest, s.most)
		}
		return k
	})}
}

// encodingsOfAll are those of all secrets, with the placeholder of each.
func encodingsOfAll(list []Secret) []encoding {
	var all []encoding
	for _, c := range list {
		for _, s := range encodingsOf(c.Text()) {
			s.with = c.Placeholder
			all = append(all, s)
		}
	}
	return all
}

// A replacer takes secrets out of one stream of bytes.
type replacer struct {
	m    matcher
	base int64 // of the first byte that is held
	held []byte
	hits []hit
}

// feed takes more bytes and appends to out what may be passed on, all but the last hold
// bytes, with placeholders. One that is whole may be a part of a longer one that is not
// yet: what is left of that would be half a secret.
func (p *replacer) feed(out, b []byte, hold int) []byte {
	p.held = append(p.held, b...)
	p.hits = p.m.feed(b, p.hits)
	end := p.base + int64(len(p.held))
	sure := end - int64(min(hold, len(p.held)))
	slices.SortStableFunc(p.hits, func(a, b hit) int { return cmp.Compare(a.from, b.from) })
	at := p.base
	rest := p.hits[:0]
	with := false // a placeholder ends at at
	for _, h := range p.hits {
		switch {
		case h.from >= sure:
			rest = append(rest, h)
		case h.to <= at: // within another
		case h.from < at && with: // goes on from another
			at = h.to
		default:
			out = append(append(out, p.held[at-p.base:max(h.from, at)-p.base]...), h.with...)
			at, with = h.to, true
		}
	}
	if sure > at {
		out = append(out, p.held[at-p.base:sure-p.base]...)
		at = sure
	}
	p.hits = rest
	p.held = append(p.held[:0], p.held[at-p.base:]...)
	p.base = at
	return out
}

// Text redacts a string.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	p := replacer{m: matcher{by: r.known().texts}}
	return string(p.feed(nil, []byte(s), 0))
}

// header redacts values, and drops a header whose name has a secret.
func (r *Redactor) header(h http.Header) {
	if r == nil {
		return
	}
	for name, values := range h {
		for i, v := range values {
			values[i] = r.Text(v)
		}
		if r.Text(name) != name {
			delete(h, name)
		}
	}
}

// redactChunk is how much of a body is looked at in one piece.
const redactChunk = 16 << 10

// body returns a reader of a body in which secrets are replaced. What it holds back,
// since it may be a secret's beginning, does not depend on the secret: a tool that has
// its guesses echoed would see by what is held back how far they are right. No secret
// goes on after a line's end, but in digits, so that a stream of lines, or of events, streams.
func (r *Redactor) body(src io.ReadCloser, atEnd func()) *redactedBody {
	return &redactedBody{src: src, by: r, atEnd: atEnd, units: new(lineUnits).feed, pass: replacer{m: matcher{by: r.known().texts}}}
}

type redactedBody struct {
	src   io.ReadCloser
	by    *Redactor
	atEnd func()           // trailers have arrived
	units func([]byte) int // says where in the next bytes the last unit ends that no secret straddles
	after int              // bytes since then
	pass  replacer
	ready []byte
	chunk []byte
	err   error
}

func (d *redactedBody) Read(p []byte) (int, error) {
	for len(d.ready) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.fill()
	}
	n := copy(p, d.ready)
	d.ready = d.ready[n:]
	return n, nil
}

// fill reads once. What is held back when an error cuts the body off is not passed on.
func (d *redactedBody) fill() {
	if d.chunk == nil {
		d.chunk = make([]byte, redactChunk)
	}
	n, err := d.src.Read(d.chunk)
	d.after = sinceUnit(d.after, n, d.units(d.chunk[:n]))
	hold := min(d.after, d.by.known().longest-1)
	if err == io.EOF {
		hold = 0
	}
	d.ready = d.pass.feed(d.ready[:0], d.chunk[:n], hold)
	switch {
	case err == io.EOF:
		d.atEnd()
	case err != nil: // it goes into the event, and may quote what could not be read
		err = d.by.CleanError(err)
	}
	d.err = err
}

func (d *redactedBody) Close() error { return d.src.Close() }
