package redact

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// sinceUnit is how many bytes there are since the last unit's end, of n more in which one
// ends at end; 0: none does.
func sinceUnit(before, n, end int) int {
	if end > 0 {
		return n - end
	}
	return before + n
}

// minDigitRun is how many digits of base64 or hexadecimal before a line's end may go on
// in the next line; encoders write lines of 60 and more.
const minDigitRun = 16

// lineUnits follows a text's lines. Digits, and quoted-printable behind a "=", go on over the
// end of one, and nothing else of a secret does.
type lineUnits struct{ last []byte } // the end of what came before

// feed takes the next bytes, and says where in them the last line ends that does not go
// on; 0: none does.
func (l *lineUnits) feed(b []byte) (end int) {
	for end = len(b); end > 0; end-- {
		if end = bytes.LastIndexByte(b[:end], '\n') + 1; end == 0 || !l.goesOn(b[:end-1]) {
			break
		}
	}
	l.last = append(l.last, b[max(0, len(b)-minDigitRun-1):]...)
	l.last = append(l.last[:0], l.last[max(0, len(l.last)-minDigitRun-1):]...)
	return end
}

// goesOn reports whether a line ends in digits, as many as a line of them has.
func (l *lineUnits) goesOn(line []byte) bool {
	if len(line) <= minDigitRun {
		line = append(bytes.Clone(l.last), line...)
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if bytes.HasSuffix(line, []byte("=")) { // of quoted-printable, or of digits
		return true
	}
	for run := range minDigitRun {
		if run == len(line) || !digit(line[len(line)-1-run]) {
			return false
		}
	}
	return true
}

// digit reports whether a byte is one of base64, base32 or hexadecimal.
func digit(c byte) bool {
	return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/' || c == '-' || c == '_'
}

// messageUnits follows a stream of messages that begin with their length.
type messageUnits struct {
	size func(head []byte) (whole uint64, ok bool) // of a message that begins so; not ok: there has to be more
	head []byte
	left uint64
}

// feed takes the next bytes, and says where in them the last message ends; 0: none
// does.
func (m *messageUnits) feed(b []byte) (end int) {
	for i := 0; i < len(b); {
		if m.left == 0 {
			m.head = append(m.head, b[i])
			i++
			whole, ok := m.size(m.head)
			if !ok {
				continue
			}
			m.left = whole - uint64(len(m.head))
			m.head = m.head[:0]
		} else {
			n := min(m.left, uint64(len(b)-i))
			m.left -= n
			i += int(n)
		}
		if m.left == 0 {
			end = i
		}
	}
	return end
}

// wholeFrame is a WebSocket's (RFC 6455, 5.2).
func wholeFrame(head []byte) (whole uint64, ok bool) {
	if len(head) < 2 {
		return 0, false
	}
	n, payload := 2, uint64(head[1]&0x7f)
	switch payload {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if len(head) < n {
		return 0, false
	}
	switch payload {
	case 126:
		payload = uint64(binary.BigEndian.Uint16(head[2:]))
	case 127:
		payload = binary.BigEndian.Uint64(head[2:]) &^ (1 << 63)
	}
	if head[1]&0x80 != 0 {
		n += 4 // the mask
	}
	return uint64(n) + payload, true
}

// ofGRPC reports whether a body of this type is gRPC's messages; in those of gRPC for the
// web in text they are in base64, which says no lengths.
func ofGRPC(contentType string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	kind, _, _ = strings.Cut(strings.TrimSpace(kind), "+")
	return kind == "application/grpc" || kind == "application/grpc-web"
}

// grpcMessage is one of gRPC, over HTTP/2 or for the web.
func grpcMessage(head []byte) (whole uint64, ok bool) {
	if len(head) < 5 {
		return 0, false
	}
	return 5 + uint64(binary.BigEndian.Uint32(head[1:])), true
}
