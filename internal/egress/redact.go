package egress

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
)

// A redactor puts placeholders back where an answer reflects secrets, in any of the
// spellings that servers give to what they echo. The nil redactor changes nothing.
type redactor struct {
	needles []needle // the longest first
	longest int
}

type needle struct {
	text  []byte
	lower string // in which the names of headers are compared
	with  string
}

// redact makes the redactor of some credentials.
func (all credentials) redact() *redactor {
	if len(all) == 0 {
		return nil
	}
	r := &redactor{}
	for _, c := range all {
		for _, s := range spellings(c.secret()) {
			if !slices.ContainsFunc(r.needles, func(n needle) bool { return string(n.text) == s }) {
				r.needles = append(r.needles, needle{[]byte(s), strings.ToLower(s), c.placeholder})
				r.longest = max(r.longest, len(s))
			}
		}
	}
	slices.SortStableFunc(r.needles, func(a, b needle) int { return cmp.Compare(len(b.text), len(a.text)) })
	return r
}

// find returns where the first needle is in b; the longest of those that begin
// there. No needle: i is -1.
func (r *redactor) find(b []byte) (i int, n needle) {
	i = -1
	for _, c := range r.needles {
		within := b
		if i >= 0 {
			within = b[:min(len(b), i+len(c.text)-1)]
		}
		if j := bytes.Index(within, c.text); j >= 0 {
			i, n = j, c
		}
	}
	return i, n
}

// half returns how many bytes at the end of b are the beginning of a needle, and more
// than half of it.
func (r *redactor) half(b []byte) int {
	for k := min(r.longest-1, len(b)); k > 0; k-- {
		tail := b[len(b)-k:]
		if slices.ContainsFunc(r.needles, func(n needle) bool { return k > len(n.text)/2 && bytes.HasPrefix(n.text, tail) }) {
			return k
		}
	}
	return 0
}

// replace appends b to out with the needles replaced, but for the last bytes, as many
// as hold says, which are returned.
func (r *redactor) replace(out, b []byte, hold int) (more, rest []byte) {
	for {
		sure := len(b) - min(hold, len(b))
		// One that is whole may be a part of a longer one that is not yet: what is
		// left of that would be half a secret.
		i, n := r.find(b)
		if i < 0 || i >= sure {
			return append(out, b[:sure]...), b[sure:]
		}
		out = append(append(out, b[:i]...), n.with...)
		b = b[i+len(n.text):]
	}
}

// text redacts a string.
func (r *redactor) text(s string) string {
	if r == nil {
		return s
	}
	out, _ := r.replace(nil, []byte(s), 0)
	return string(out)
}

// header redacts values, and drops a header whose name has a secret: names are
// written in another case than the server's.
func (r *redactor) header(h http.Header) {
	if r == nil {
		return
	}
	for name, values := range h {
		lower := strings.ToLower(name)
		for i, v := range values {
			values[i] = r.text(v)
		}
		for _, n := range r.needles {
			if strings.Contains(lower, n.lower) {
				delete(h, name)
			}
		}
	}
}

// redactChunk is how much of a body is looked at in one piece.
const redactChunk = 16 << 10

// body returns a reader of a body in which secrets are replaced. What it holds back,
// since it may be a secret's beginning, does not depend on the secret: a tool that has
// its guesses echoed would see by what is held back how far they are right. No secret
// goes on after a line's end, so that a stream of lines, or of events, streams.
func (r *redactor) body(src io.ReadCloser, atEnd func()) *redacted {
	return &redacted{src: src, by: r, atEnd: atEnd, units: lines}
}

type redacted struct {
	src   io.ReadCloser
	by    *redactor
	atEnd func()           // trailers have arrived
	units func([]byte) int // says where in the next bytes the last unit ends that no secret straddles
	after int              // bytes since then
	held  []byte           // read, and perhaps a secret's beginning
	ready []byte
	chunk []byte
	err   error
}

func (d *redacted) Read(p []byte) (int, error) {
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
func (d *redacted) fill() {
	if d.chunk == nil {
		d.chunk = make([]byte, redactChunk)
	}
	n, err := d.src.Read(d.chunk)
	d.held = append(d.held, d.chunk[:n]...)
	d.after = since(d.after, n, d.units(d.chunk[:n]))
	hold := min(d.after, d.by.longest-1)
	if err == io.EOF {
		hold = 0
	}
	d.ready, d.held = d.by.replace(d.ready[:0], d.held, hold)
	switch {
	case err == io.EOF:
		d.atEnd()
	case err != nil: // it goes into the event, and may quote what could not be read
		err = d.by.error(err)
	}
	d.err = err
}

func (d *redacted) Close() error { return d.src.Close() }
