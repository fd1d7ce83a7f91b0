package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
)

// A sniffedKind is what the first bytes of a connection look like.
type sniffedKind uint8

const (
	sniffedOther   sniffedKind = iota // neither, or nothing
	sniffedTLS                        // a TLS ClientHello
	sniffedHTTP                       // the first line of an HTTP/1 request
	sniffedUnknown                    // more bytes would tell
)

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

// sniff reads as much of what a client sends, after head, as tells what it is. Once that has
// begun the client has little time for the rest.
func sniff(c net.Conn, head []byte) (sniffedKind, []byte, error) {
	if len(head) == 0 {
		return sniffedOther, nil, nil
	}
	c.SetReadDeadline(time.Now().Add(headerTimeout))
	defer c.SetReadDeadline(time.Time{})
	var l classifier
	for {
		kind := l.classify(head)
		if kind != sniffedUnknown {
			return kind, head, nil
		}
		more := make([]byte, 1024)
		n, err := c.Read(more)
		head = append(head, more[:n]...)
		switch {
		case n == 0 && errors.Is(err, io.EOF) && l.classify(append(bytes.Clone(head), '\n')) != sniffedHTTP: // as a server reads the line
			return sniffedOther, head, nil
		case n == 0 && err != nil, len(head) > maxRequestLine:
			return kind, nil, &Refusal{Why: errLine.Error()}
		}
	}
}

// A classifier says what the first bytes of a connection look like, of which more come
// from one look to the next: no byte of a line is looked at twice, however small the
// pieces are that a client makes of it.
//
// Whatever a lax server could take for a request is HTTP: a line that begins with a
// token and has "HTTP/" in it, blank lines before it or not, with any separator between the words, and one of HTTP/0.9. Behind
// what may be a method, control characters do not make it another protocol's. HTTP/2's preface is not,
// if it is whole: see the package's Limits. Its first line alone is a request to
// servers that do not speak HTTP/2, and the next one follows it.
type classifier struct {
	at    int  // so far the bytes were looked at
	start int  // of the line
	first int  // where its first word begins
	word  int  // and how long it is, if begun
	begun bool // the line: it is not blank
	ended bool // its first word
}

func (l *classifier) classify(b []byte) sniffedKind {
	if len(b) > 0 && b[0] >= recordFirst && b[0] <= recordLast {
		return classifyRecord(b)
	}
	if n := min(len(b), len(preface)); n > len("PR") && string(b[:n]) == preface[:n] {
		return map[bool]sniffedKind{true: sniffedOther, false: sniffedUnknown}[n == len(preface)]
	}
	for ; l.at < len(b); l.at++ {
		switch c := b[l.at]; {
		case c == '\n' && !l.begun:
			l.start = l.at + 1
		case c == '\n':
			line := b[l.start:l.at]
			if bytes.Contains(bytes.ToUpper(line), []byte("HTTP/")) || isHTTP09(line) || slices.ContainsFunc(bytes.Split(line, []byte("\r")), isHTTP09) {
				return sniffedHTTP
			}
			return sniffedOther
		case isSpace(rune(c)):
			l.ended = l.begun
		case l.ended && (c < ' ' || c == 0x7f) && !isMethod(b[l.first:l.first+l.word]), !l.ended && !tokenByte(c):
			return sniffedOther
		case !l.begun:
			l.begun, l.first, l.word = true, l.at, 1
		case !l.ended:
			l.word++
		}
	}
	return sniffedUnknown
}

// isMethod reports whether a word may be a method to a server that takes control characters in a target: one of capital letters, and
// of as many as no length in binary has.
func isMethod(word []byte) bool {
	return len(word) >= len("GET") && len(bytes.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")) == 0
}

// methods09 are those with which some servers take a request of HTTP/0.9, which has no version, and read a header after it all the same.
var methods09 = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"}

// isHTTP09 reports whether a line is one, whatever its target is.
func isHTTP09(line []byte) bool {
	latin1 := make([]rune, len(line))
	for i, c := range line {
		latin1[i] = rune(c)
	}
	words := strings.FieldsFunc(string(latin1), isSpace)
	return len(words) == 2 && slices.Contains(methods09, words[0])
}

// isSpace reports whether a character of Latin-1 separates words to some server: RFC 9112, 3 has \v, \f and a bare CR,
// and Python's http.server splits a line by str.split.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// The kinds of TLS records (RFC 8446, 5.1; RFC 6520).
const (
	recordFirst, recordLast = 0x14, 0x18
	recordAlert             = 0x15
	recordHandshake         = 0x16

	recordHeader    = 5
	versionMajor    = 3  // of every version that there is
	maxVersionMajor = 15 // that some servers take in a first record, Go's among them
)

// classifyRecord tells TLS from what has a first byte in common with it. Servers put
// up with a warning before the ClientHello, and some with any version in the first
// record's header; what begins with neither is not looked at by any of them.
func classifyRecord(b []byte) sniffedKind {
	if len(b) == 1 {
		return sniffedUnknown
	}
	if b[1] == versionMajor {
		return sniffedTLS
	}
	if b[1] > maxVersionMajor || b[0] != recordHandshake && b[0] != recordAlert {
		return sniffedOther
	}
	if len(b) <= recordHeader {
		return sniffedUnknown
	}
	size, first := int(b[3])<<8|int(b[4]), b[5]
	if b[0] == recordHandshake && first == 1 || b[0] == recordAlert && size == 2 && first <= 2 {
		return sniffedTLS
	}
	return sniffedOther
}

// tokenByte reports whether a byte may stand in a method (RFC 9110, 5.6.2).
func tokenByte(c byte) bool {
	return c > ' ' && c < 0x7f && !bytes.ContainsRune([]byte(`"(),/:;<=>?@[\]{}`), rune(c))
}
