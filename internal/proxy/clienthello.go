package proxy

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// readClientHello has crypto/tls read the ClientHello with which a connection begins, in whatever records it comes, and judge decide about it. It
// returns what was read. A second one, for which a server asks by a HelloRetryRequest (RFC 8446, 4.1.4), is not judged: within TLS that is passed
// the client can name what it likes, by Host.
func readClientHello(c net.Conn, head []byte, judge func(*tls.ClientHelloInfo) error) ([]byte, error) {
	c.SetReadDeadline(time.Now().Add(headerTimeout))
	defer c.SetReadDeadline(time.Time{})
	var read bytes.Buffer
	judged := error(nil)
	begun := false
	err := tls.Server(&helloConn{in: io.TeeReader(io.LimitReader(io.MultiReader(bytes.NewReader(head), c), 2*maxClientHello), &read)}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		begun, judged = true, judge(hello)
		return nil, errors.New("it was read")
	}}).Handshake()
	if !begun {
		return nil, fmt.Errorf("%w: %v", errHello, err)
	}
	if rest := head[min(len(head), read.Len()):]; len(rest) > 0 { // what stands behind the first read
		read.Write(rest)
	}
	return read.Bytes(), judged
}

// A helloConn is a connection of which a ClientHello is read. What is written to it goes nowhere.
type helloConn struct {
	net.Conn // nil
	in       io.Reader
}

func (c *helloConn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *helloConn) Write(p []byte) (int, error) { return len(p), nil }
