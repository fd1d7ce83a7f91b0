package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// A sniffedKind is what a client sends first on a connection to its target.
type sniffedKind uint8

const (
	sniffedOther sniffedKind = iota // something else, or nothing
	sniffedTLS                      // a TLS ClientHello
	sniffedHTTP                     // the first line of an HTTP/1 request
)

// sniffed is what a client has sent first, all of which was read.
type sniffed struct {
	kind  sniffedKind
	bytes []byte
	hello *tls.ClientHelloInfo
}

// preface begins a connection of HTTP/2 (RFC 9113, 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

const (
	maxRequestLine = 16 << 10 // of a request that is recognised as one
	maxClientHello = 64 << 10
)

// errHello and errLine refuse what begins as something to be judged and cannot be.
var (
	errHello = errors.New("it begins as a TLS ClientHello and cannot be read as one")
	errLine  = errors.New("it begins as an HTTP request whose first line does not end")
)

// firstBytes waits for what the client sends first, as long as the connection
// lasts and the other direction is alive.
func (f *direction) firstBytes() ([]byte, error) {
	read := reader(f.src)
	for {
		if err := f.await(); err != nil {
			return nil, err
		}
		b, n, err := read(bufferSize)
		var head []byte
		if b != nil {
			head = bytes.Clone(b[:n])
			buffers.Put(b)
		}
		switch {
		case n > 0 || errors.Is(err, io.EOF):
			return head, nil
		case !errors.Is(err, os.ErrDeadlineExceeded) || !f.alive():
			return nil, f.why(err)
		}
	}
}

// sniff reads as much of what a client sends as tells what it is. Once that has
// begun the client has little time for the rest.
func sniff(c net.Conn, head []byte) (sniffed, error) {
	if len(head) == 0 {
		return sniffed{}, nil
	}
	r := &recordingConn{c: c, seen: head, until: time.Now().Add(headerTimeout)}
	var l classifier
	looks := l.classify(r.seen)
	for looks == guessUnknown {
		if err := r.more(); err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return sniffed{}, &Refusal{Why: errLine.Error()}
		}
		looks = l.classify(r.seen)
	}
	defer c.SetReadDeadline(time.Time{})
	switch looks {
	case guessTLS:
		hello, err := r.hello()
		if err != nil {
			return sniffed{}, &Refusal{Why: fmt.Sprintf("%v: %v", errHello, err)}
		}
		return sniffed{kind: sniffedTLS, bytes: r.seen, hello: hello}, nil
	case guessHTTP:
		return sniffed{kind: sniffedHTTP, bytes: r.seen}, nil
	}
	return sniffed{bytes: r.seen}, nil
}

// guess is what bytes look like so far.
type guess uint8

const (
	guessOther guess = iota
	guessTLS
	guessHTTP
	guessUnknown
)

// A classifier says what the first bytes of a connection look like, of which more come
// from one look to the next: no byte of a line is looked at twice, however small the
// pieces are that a client makes of it.
//
// Whatever a lax server could take for a request is HTTP: a line that begins with a
// token and has "HTTP/" in it, blank lines before it or not. HTTP/2's preface is not,
// if it is whole: see the package's Limits. Its first line alone is a request to
// servers that do not speak HTTP/2, and the next one follows it.
type classifier struct {
	at    int  // so far the bytes were looked at
	start int  // of the line
	begun bool // the line: it is not blank
	word  bool // its first word has ended
}

func (l *classifier) classify(b []byte) guess {
	if len(b) > 0 && b[0] >= recordFirst && b[0] <= recordLast {
		return guessRecord(b)
	}
	if n := min(len(b), len(preface)); n > len("PR") && string(b[:n]) == preface[:n] {
		return map[bool]guess{true: guessOther, false: guessUnknown}[n == len(preface)]
	}
	for ; l.at < len(b); l.at++ {
		switch c := b[l.at]; {
		case !l.begun && (c == '\r' || c == '\n'):
			l.start = l.at + 1
			continue
		case c == '\n' && (bytes.Contains(bytes.ToUpper(b[l.start:l.at]), []byte("HTTP/")) || isHTTP09(b[l.start:l.at])):
			return guessHTTP
		case c == '\n':
			return guessOther
		case c == ' ' || c == '\t' || c == '\r':
			l.word = true
		case c < ' ' || c == 0x7f || !l.word && !tokenByte(c):
			return guessOther
		}
		l.begun = true
	}
	return guessUnknown
}

// isHTTP09 reports whether a line is a request of HTTP/0.9, which has no version.
// Some servers read a header after it all the same.
func isHTTP09(line []byte) bool {
	words := bytes.Fields(line)
	return len(words) == 2 && string(words[0]) == "GET" && (words[1][0] == '/' || bytes.Contains(words[1], []byte("://")))
}

// The kinds of TLS records (RFC 8446, 5.1; RFC 6520).
const (
	recordFirst, recordLast = 0x14, 0x18
	recordAlert             = 0x15
	recordHandshake         = 0x16

	recordHeader    = 5
	versionMajor    = 3  // of every version that there is
	maxVersionMajor = 15 // that some servers take in a first record, Go's among them
)

// guessRecord tells TLS from what has a first byte in common with it. Servers put
// up with a warning before the ClientHello, and some with any version in the first
// record's header; what begins with neither is not looked at by any of them.
func guessRecord(b []byte) guess {
	if len(b) == 1 {
		return guessUnknown
	}
	if b[1] == versionMajor {
		return guessTLS
	}
	if b[1] > maxVersionMajor || b[0] != recordHandshake && b[0] != recordAlert {
		return guessOther
	}
	if len(b) <= recordHeader {
		return guessUnknown
	}
	size, first := int(b[3])<<8|int(b[4]), b[5]
	if b[0] == recordHandshake && first == 1 || b[0] == recordAlert && size == 2 && first <= 2 {
		return guessTLS
	}
	return guessOther
}

// tokenByte reports whether a byte may stand in a method (RFC 9110, 5.6.2).
func tokenByte(c byte) bool {
	return c > ' ' && c < 0x7f && !bytes.ContainsRune([]byte(`"(),/:;<=>?@[\]{}`), rune(c))
}

// A recordingConn keeps what is read through it.
type recordingConn struct {
	net.Conn          // nil: what TLS would write goes nowhere
	c        net.Conn // nil: what is seen is all
	seen     []byte
	given    int
	until    time.Time // when the whole of it has to be there
}

// more reads on, with little time: what has begun is to be completed.
func (r *recordingConn) more() error {
	if len(r.seen) >= maxRequestLine {
		return errLine
	}
	return r.fill(maxRequestLine)
}

func (r *recordingConn) fill(most int) error {
	if len(r.seen) >= most {
		return errors.New("it is too long")
	}
	r.c.SetReadDeadline(r.until)
	r.seen = append(r.seen, make([]byte, 1024)...)
	n, err := r.c.Read(r.seen[len(r.seen)-1024:])
	r.seen = r.seen[:len(r.seen)-1024+n]
	if n > 0 {
		return nil
	}
	return err
}

// errSeen ends a handshake once its first message has been read.
var errSeen = errors.New("seen")

// hello has crypto/tls read the ClientHello.
func (r *recordingConn) hello() (*tls.ClientHelloInfo, error) {
	var hello *tls.ClientHelloInfo
	err := tls.Server(r, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errSeen
	}}).HandshakeContext(context.Background())
	if hello == nil {
		return nil, err
	}
	hello.Conn = nil
	return hello, nil
}

func (r *recordingConn) Read(p []byte) (int, error) {
	if r.given == len(r.seen) {
		if r.c == nil {
			return 0, io.ErrUnexpectedEOF
		}
		if err := r.fill(maxClientHello); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.seen[r.given:])
	r.given += n
	return n, nil
}

func (r *recordingConn) Write(p []byte) (int, error)      { return len(p), nil }
func (r *recordingConn) Close() error                     { return nil }
func (r *recordingConn) SetDeadline(time.Time) error      { return nil }
func (r *recordingConn) SetReadDeadline(time.Time) error  { return nil }
func (r *recordingConn) SetWriteDeadline(time.Time) error { return nil }
