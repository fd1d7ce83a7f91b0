package redact

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ErrEncoding is an answer that cannot be looked through.
var ErrEncoding = errors.New("the answer is encoded although none was asked for, and could hide a credential")

// errPacked is a secret where it cannot be masked.
var errPacked = errors.New("the server sent a credential back, compressed")

// Response makes an answer safe to be passed on. Its body keeps its length.
func (r *Redactor) Response(res *http.Response) error {
	res.Status = fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)) // the phrase is the server's own text
	r.header(res.Header)
	r.header(res.Trailer) // its names, which are announced before the body
	res.Header.Del("Accept-Ranges")
	if res.StatusCode == http.StatusSwitchingProtocols {
		if res.Header.Get("Sec-Websocket-Extensions") != "" { // none was asked for; compression is one
			return ErrEncoding
		}
		both, ok := res.Body.(io.ReadWriteCloser)
		if !ok {
			return errors.New("the server switched protocols without a connection")
		}
		res.Body = r.watch(both)
		return nil
	}
	if res.Body == nil || res.Body == http.NoBody || res.Request.Method == http.MethodHead {
		return nil
	}
	if hasMessageEncoding(res.Header) {
		return ErrEncoding
	}
	if err := r.unpack(res); err != nil {
		return err
	}
	res.Body = r.stream(res.Body, func() { r.header(res.Trailer) })
	return nil
}

// watch returns a WebSocket after its handshake, in whose frames secrets are masked: they keep their lengths.
func (r *Redactor) watch(c io.ReadWriteCloser) io.ReadWriteCloser {
	return struct {
		*stream
		io.Writer
	}{r.stream(c, func() {}), c}
}

// hasMessageEncoding reports whether the messages of an answer are compressed each by itself.
func hasMessageEncoding(h http.Header) bool {
	for _, name := range []string{"Grpc-Encoding", "Connect-Content-Encoding"} {
		if coding := h.Get(name); coding != "" && !strings.EqualFold(coding, "identity") {
			return true
		}
	}
	return false
}

// smallBody is how much of a compressed body is looked through before the answer begins.
const smallBody = 64 << 10

// unpack looks through a body that some servers have compressed and send so whatever is asked for. It is passed on as it is, since a
// file would be another one otherwise; but unpacked if it is a stream of events, or short and has a secret.
func (r *Redactor) unpack(res *http.Response) error {
	coding := strings.ToLower(strings.Join(res.Header.Values("Content-Encoding"), ","))
	switch {
	case coding == "" || coding == "identity":
		return nil
	case coding != "gzip" && coding != "x-gzip" || res.StatusCode == http.StatusPartialContent:
		return fmt.Errorf("%w: %.40q", ErrEncoding, coding)
	}
	unpacked := strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream")
	body := struct {
		io.Reader
		io.Closer
	}{res.Body, res.Body}
	if !unpacked && res.ContentLength >= 0 && res.ContentLength <= smallBody {
		all, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, r.packed(io.NopCloser(bytes.NewReader(all))))
		unpacked = errors.Is(err, errPacked)
		body.Reader = bytes.NewReader(all)
	}
	if unpacked {
		res.Header.Del("Content-Encoding")
		res.Header.Del("Content-Length")
		res.ContentLength = -1
		body.Reader = &gunzip{src: body.Reader}
		res.Body = body
		return nil
	}
	res.Body = r.packed(body)
	return nil
}

// A gunzip unpacks as it is read; reading makes the memory needed no larger than a window.
type gunzip struct {
	src io.Reader
	zip *gzip.Reader
}

func (u *gunzip) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.src); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}

// A packed is a gzip body that is passed on as it came, each byte of it when what it stands for has been looked through. A secret in it
// ends it.
type packed struct {
	io.Closer
	src   *bufio.Reader
	text  gunzip
	in    []byte // read and not passed on
	free  int    // how many of them may be
	next  int    // how many of them may be after the next read
	found bool
	scan  *scanner
	out   []byte // of unpacked text
	err   error
}

func (r *Redactor) packed(src io.ReadCloser) *packed {
	p := &packed{Closer: src, src: bufio.NewReader(src)}
	p.text.src = (*packedSource)(p)
	p.scan = newScanner(r.known(), func(int64, int64, string) { p.found = true })
	return p
}

// A packedSource gives compress/flate single bytes, so that it reads none ahead.
type packedSource packed

func (s *packedSource) ReadByte() (byte, error) {
	b, err := s.src.ReadByte()
	if err == nil {
		s.in = append(s.in, b)
	}
	return b, err
}

func (s *packedSource) Read(p []byte) (int, error) {
	n, err := s.src.Read(p)
	s.in = append(s.in, p[:n]...)
	return n, err
}

func (p *packed) Read(b []byte) (int, error) {
	for p.free == 0 && p.err == nil {
		if p.out == nil {
			p.out = make([]byte, 64<<10) // more than flate's window: a read returns all that it has unpacked
		}
		n, err := p.text.Read(p.out)
		p.scan.feed(p.out[:n])
		switch p.err = err; {
		case p.found:
			p.err = errPacked
		case err == io.EOF:
			p.free = len(p.in)
		case err == nil:
			p.free, p.next = p.next, len(p.in) // of the last bytes read, a part may be unpacked by the next read
		}
	}
	if p.free == 0 {
		return 0, p.err
	}
	n := copy(b, p.in[:p.free])
	p.in = append(p.in[:0], p.in[n:]...)
	p.free -= n
	p.next = max(p.next-n, 0)
	return n, nil
}
