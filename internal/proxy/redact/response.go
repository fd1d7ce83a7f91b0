package redact

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// ErrEncoding is an answer that cannot be looked through.
var ErrEncoding = errors.New("the answer is encoded although none was asked for, and could hide a credential")

// errReflected ends a WebSocket whose server sends a credential back.
var errReflected = errors.New("the server sent a credential back")

// CleanError keeps the error's type unless its text has a secret.
func (r *Redactor) CleanError(err error) error {
	if s := r.Text(err.Error()); s != err.Error() {
		return errors.New(s)
	}
	return err
}

// Response makes an answer safe to be passed on.
func (r *Redactor) Response(res *http.Response) error {
	res.Status = fmt.Sprintf("%d %s", res.StatusCode, http.StatusText(res.StatusCode)) // the phrase is the server's own text
	r.header(res.Header)
	r.header(res.Trailer) // its names, which are announced before the body
	if res.StatusCode == http.StatusSwitchingProtocols {
		if res.Header.Get("Sec-Websocket-Extensions") != "" { // none was asked for; compression is one
			return ErrEncoding
		}
		if both, ok := res.Body.(io.ReadWriteCloser); ok {
			res.Body = r.watch(both)
			return nil
		}
		return errors.New("the server switched protocols without a connection")
	}
	if res.Body == nil || res.Body == http.NoBody || res.Request.Method == http.MethodHead {
		return nil
	}
	if hasMessageEncoding(res.Header) {
		return ErrEncoding
	}
	if err := decodeBody(res); err != nil {
		return err
	}
	body := r.body(res.Body, func() { r.header(res.Trailer) })
	if ofGRPC(res.Header.Get("Content-Type")) {
		body.units = (&messageUnits{size: grpcMessage}).feed
	}
	res.Body = body
	res.ContentLength = -1 // a placeholder is longer or shorter than its secret
	res.Header.Del("Content-Length")
	return nil
}

// decodeBody takes gzip off, which some servers store and send whatever is asked for.
func decodeBody(res *http.Response) error {
	switch coding := strings.ToLower(strings.Join(res.Header.Values("Content-Encoding"), ",")); coding {
	case "", "identity":
		return nil
	case "gzip", "x-gzip":
		res.Header.Del("Content-Encoding")
		res.Body = &gunzipBody{src: res.Body}
		return nil
	default:
		return fmt.Errorf("%w: %.40q", ErrEncoding, coding)
	}
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

// A gunzipBody body is decompressed as it is read; reading makes the memory needed
// no larger than a window.
type gunzipBody struct {
	src io.ReadCloser
	zip *gzip.Reader
}

func (u *gunzipBody) Read(p []byte) (n int, err error) {
	if u.zip == nil {
		if u.zip, err = gzip.NewReader(u.src); err != nil {
			return 0, err
		}
	}
	return u.zip.Read(p)
}

func (u *gunzipBody) Close() error { return u.src.Close() }

// A watchedConn connection is a WebSocket after its handshake. Its frames say their
// lengths, so nothing in them is replaced: a secret that comes back ends it. A frame is
// passed on to its end once that has come, whatever is in it (see redactor.body); but
// for more than half of a secret, which cannot be guessed step by step.
type watchedConn struct {
	io.ReadWriteCloser
	by    *Redactor
	m     matcher
	units messageUnits
	after int    // bytes since the last frame's end
	held  []byte // read, and not passed on
	ready []byte
	err   error
}

func (r *Redactor) watch(c io.ReadWriteCloser) *watchedConn {
	return &watchedConn{ReadWriteCloser: c, by: r, m: matcher{by: r.known().texts}, units: messageUnits{size: wholeFrame}}
}

func (w *watchedConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		w.fill(p)
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}

// fill reads once, with p for its buffer.
func (w *watchedConn) fill(p []byte) {
	n, err := w.ReadWriteCloser.Read(p[:min(len(p), redactChunk)])
	if err != nil && err != io.EOF {
		err = w.by.CleanError(err)
	}
	if len(w.m.feed(p[:n], nil)) > 0 {
		w.err = errReflected
		return
	}
	w.held = append(w.held, p[:n]...)
	w.after = sinceUnit(w.after, n, w.units.feed(p[:n]))
	keep := min(w.after, w.by.known().longest-1)
	if from, ok := w.m.halfMatched(); ok {
		keep = max(keep, int(w.m.at-from))
	}
	if err == io.EOF {
		keep = 0
	}
	pass := len(w.held) - min(keep, len(w.held))
	w.ready = append(w.ready[:0], w.held[:pass]...)
	w.held, w.err = append(w.held[:0], w.held[pass:]...), err
}
