package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// helloFilter follows the records of a client's TLS that is passed through, for as long as
// it is in clear text, and has each ClientHello judged before it is passed on. There may
// be a second one: a server that wants another key share asks for it by a
// HelloRetryRequest (RFC 8446, 4.1.4), and OpenSSL's then serves the name that the second
// has. It ends with the client's first encrypted record, of which no server takes a
// ClientHello in clear text any more:
//
//   - TLS 1.3: the first record of application data; but a client that has offered early
//     data may send a ClientHello behind it (4.2.10), so that one is followed to its end;
//   - before: the ChangeCipherSpec behind a ClientKeyExchange, or a handshake record behind one
//     that is no ClientHello. In TLS 1.3 that record says nothing (middlebox compatibility, D.4).
//
// Alerts and whatever else of the handshake is in clear text are passed.
type helloFilter struct {
	judge func(*tls.ClientHelloInfo) error

	header        []byte    // of a record, as far as it has come
	kind          byte      // of the record
	left          int       // bytes of the record that are to come
	message       []byte    // of the handshake: a header of four bytes, and the whole of a ClientHello
	skip          int       // bytes of another message that are to come
	held          []byte    // received and not passed on yet, with the records' headers
	deadline      time.Time // for what is held to be whole
	cipherChanged bool      // a ChangeCipherSpec was passed
	earlyData     bool      // a ClientHello has offered early data
	begun         bool      // a ClientHello was judged
	keyExchanged  bool      // a ClientKeyExchange was passed, which no server of TLS 1.3 takes
	done          bool
}

const (
	recordCipher      = 0x14
	recordApplication = 0x17
	maxRecord         = 1<<14 + 2048 // RFC 5246, 6.2.3
	messageHeader     = 4
	typeHello         = 1
	typeKeyExchange   = 16
	leastHello        = messageHeader + 2 + 32 + 1 + 2 + 2 + 2 // RFC 8446, 4.1.2: one cipher suite, no extensions
	earlyData         = 42                                     // the extension
)

// feed takes the next bytes and returns those that may be passed on. An error ends the
// connection.
func (h *helloFilter) feed(b []byte) ([]byte, error) {
	from, passed := len(h.held), 0
	b = append(h.held, b...)
	for i := from; i < len(b) && !h.done; {
		n, err := h.step(b[i:])
		if err != nil {
			return nil, err
		}
		if i += n; len(h.header)+len(h.message) == 0 && (h.kind != recordHandshake || h.left == 0 || h.skip > 0) { // no message has begun, nor does the next byte
			passed = i
		}
	}
	if h.done {
		h.held = nil
		return b, nil
	}
	if len(b)-passed > maxClientHello+maxRecord { // which alerts, and empty records, in the midst of one would fill without end
		return nil, fmt.Errorf("%w: its records are too long", errHello)
	}
	if passed > 0 || from == 0 { // what is held has begun in these
		h.deadline = time.Now().Add(headerTimeout)
	}
	if h.held = b; passed > 0 { // else it grows, and is not copied for each byte
		h.held = slices.Clone(b[passed:])
	}
	return b[:passed], nil
}

// pending reports whether something has begun that is not whole.
func (h *helloFilter) pending() bool { return h != nil && len(h.held) > 0 }

// step looks at some bytes: those of a record's header, or of its body.
func (h *helloFilter) step(b []byte) (n int, err error) {
	if h.left == 0 {
		n = min(recordHeader-len(h.header), len(b))
		if h.header = append(h.header, b[:n]...); len(h.header) == recordHeader {
			err = h.record()
			h.header = h.header[:0]
		}
		return n, err
	}
	n = min(h.left, len(b))
	h.left -= n
	if h.kind == recordHandshake {
		err = h.handshake(b[:n])
	}
	return n, err
}

// record begins a record whose header is whole.
func (h *helloFilter) record() error {
	h.kind, h.left = h.header[0], int(h.header[3])<<8|int(h.header[4])
	switch {
	case h.kind < recordFirst || h.kind > recordLast || h.left > maxRecord, !h.begun && h.kind != recordHandshake && h.kind != recordAlert:
		return fmt.Errorf("%w: no record of TLS follows it", errHello)
	case h.kind == recordCipher:
		h.cipherChanged, h.done = true, h.keyExchanged
	case h.kind == recordApplication && !h.earlyData:
		h.done = true
	}
	return nil
}

// handshake takes bytes of messages, which may begin and end anywhere in records.
func (h *helloFilter) handshake(b []byte) error {
	for len(b) > 0 && !h.done {
		if h.skip > 0 {
			n := min(h.skip, len(b))
			h.skip, b = h.skip-n, b[n:]
			continue
		}
		n := min(h.wanted(), len(b))
		h.message, b = append(h.message, b[:n]...), b[n:]
		if err := h.checkMessage(); err != nil {
			return err
		}
	}
	return nil
}

// size is that of the message whose header is whole, with the header.
func (h *helloFilter) size() int {
	return messageHeader + int(h.message[1])<<16 + int(h.message[2])<<8 + int(h.message[3])
}

// wanted is how many bytes tell more of the message.
func (h *helloFilter) wanted() int {
	if len(h.message) < messageHeader {
		return messageHeader - len(h.message)
	}
	return h.size() - len(h.message)
}

// checkMessage looks at a message as far as it has come.
func (h *helloFilter) checkMessage() error {
	if h.cipherChanged && !h.maybeClientHello() {
		h.done = true
		return nil
	}
	switch {
	case len(h.message) < messageHeader:
		return nil
	case h.message[0] != typeHello && !h.begun:
		return fmt.Errorf("%w: it begins with another message", errHello)
	case h.message[0] != typeHello:
		h.keyExchanged = h.keyExchanged || h.message[0] == typeKeyExchange
		h.skip, h.message = h.size()-len(h.message), nil
		return nil
	case h.size() > maxClientHello && (!h.cipherChanged || len(h.message) == h.size()): // else it may be encrypted: it is held until a record of application data says so, or feed's bound
		return fmt.Errorf("%w: it is too long", errHello)
	case len(h.message) < h.size():
		return nil
	}
	hello, err := parseClientHello(h.message)
	if err != nil {
		return fmt.Errorf("%w: %v", errHello, err)
	}
	h.message, h.begun = nil, true
	h.earlyData = h.earlyData || slices.Contains(hello.Extensions, earlyData)
	return h.judge(hello)
}

// maybeClientHello reports whether a message behind a ChangeCipherSpec may be a ClientHello in clear
// text. OpenSSL takes one of 131396 bytes (CLIENT_HELLO_MAX_LENGTH), and any version from 3.1. What is encrypted, in a
// handshake of TLS 1.2 that resumes a session, begins so once in twenty thousand times, and is held until data follows.
func (h *helloFilter) maybeClientHello() bool {
	m := h.message
	return m[0] == typeHello && (len(m) < 2 || m[1] <= 2) && (len(m) < messageHeader || h.size() >= leastHello) && (len(m) <= messageHeader || m[messageHeader] >= versionMajor)
}

// parseClientHello has crypto/tls read a ClientHello, whichever records it came in.
func parseClientHello(message []byte) (hello *tls.ClientHelloInfo, err error) {
	var b []byte
	for part := range slices.Chunk(message, 1<<14) {
		b = append(b, recordHandshake, versionMajor, 1, byte(len(part)>>8), byte(len(part)))
		b = append(b, part...)
	}
	err = tls.Server(&helloConn{in: bytes.NewReader(b)}, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errors.New("it was read")
	}}).Handshake()
	if hello != nil {
		return hello, nil
	}
	return nil, err
}

// A helloConn is a connection on which a ClientHello has come, and nothing else does. What is written to it goes nowhere.
type helloConn struct {
	net.Conn // nil
	in       *bytes.Reader
}

func (c *helloConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }
