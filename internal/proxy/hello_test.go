package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// sized puts a length of some bytes before what parts are in one.
func sized(bytesOfLength int, parts ...[]byte) []byte {
	b := bytes.Join(parts, nil)
	n := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	return append(n[4-bytesOfLength:], b...)
}

// serverName is an entry of the extension of RFC 6066, 3.
func serverName(kind byte, name string) []byte {
	return append([]byte{kind}, sized(2, []byte(name))...)
}

// extension is one with the number of the server name's.
func extension(entries ...[]byte) []byte {
	return append([]byte{0, 0}, sized(2, sized(2, entries...))...)
}

// helloOf is a ClientHello with these extensions, as a handshake's message.
func helloOf(extensions ...[]byte) []byte {
	body := [][]byte{{3, 3}, make([]byte, 32), sized(1), sized(2, []byte{0xc0, 0x2f}), sized(1, []byte{0})}
	if len(extensions) > 0 {
		body = append(body, sized(2, extensions...))
	}
	return append([]byte{1}, sized(3, body...)...)
}

// records puts a message into records of some bytes each.
func records(message []byte, each int) []byte {
	var b []byte
	for len(message) > 0 {
		n := min(each, len(message))
		b = append(append(b, recordHandshake, 3, 1), sized(2, message[:n])...)
		message = message[n:]
	}
	return b
}

// TestAServerNameIsReadFromAnyRecords: in one, in many, in records and segments of
// one byte, and whatever is odd about it is refused rather than passed unread.
func TestAServerNameIsReadFromAnyRecords(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 443)
	good := serverName(0, "good.com")
	for name, c := range map[string]struct {
		message []byte
		passes  bool
	}{
		"its own name":                   {helloOf(extension(good)), true},
		"in capitals":                    {helloOf(extension(serverName(0, "GOOD.com"))), true},
		"no extension at all":            {helloOf(), true},
		"another extension":              {helloOf([]byte{0, 23, 0, 0}), true},
		"another name":                   {helloOf(extension(serverName(0, "evil.example"))), false},
		"a name below":                   {helloOf(extension(serverName(0, "a.good.com"))), false},
		"a dot at its end":               {helloOf(extension(serverName(0, "good.com."))), false},
		"an address":                     {helloOf(extension(serverName(0, "93.184.216.34"))), false},
		"a NUL":                          {helloOf(extension(serverName(0, "good.com\x00.evil.example"))), false},
		"a space":                        {helloOf(extension(serverName(0, "good.com "))), false},
		"full-width letters of its name": {helloOf(extension(serverName(0, "ｇｏｏｄ.com"))), true}, // the same name, to whoever takes it for one
		"nothing":                        {helloOf(extension(serverName(0, ""))), false},
		"an empty list":                  {helloOf(extension()), false},
		"two names":                      {helloOf(extension(good, serverName(0, "evil.example"))), false},
		"two names, the other way":       {helloOf(extension(serverName(0, "evil.example"), good)), false},
		"two extensions":                 {helloOf(extension(good), extension(serverName(0, "evil.example"))), false},
		"a length beyond the list":       {helloOf([]byte{0, 0, 0, 6, 0, 9, 0, 0, 1, 'a'}), false},
		"bytes behind the list":          {helloOf(append([]byte{0, 0}, sized(2, sized(2, good), []byte("x"))...)), false},
	} {
		for _, each := range []int{1, 7, 16 << 10} {
			for _, inPieces := range []bool{false, true} {
				sent := records(c.message, each)
				conn, r := w.connect("good.com:443")
				for i := range sent {
					if inPieces {
						conn.Write(sent[i : i+1])
					}
				}
				if !inPieces {
					conn.Write(sent)
				}
				conn.(*net.TCPConn).CloseWrite()
				got, _ := io.ReadAll(r)
				if c.passes != bytes.Equal(got, sent) || !c.passes && len(got) > 0 {
					t.Errorf("%s, in records of %d, byte by byte %v: %d bytes of %d passed", name, each, inPieces, len(got), len(sent))
				}
				conn.Close()
			}
		}
	}
}
