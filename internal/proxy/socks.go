package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// The codes of SOCKS5 (RFC 1928, RFC 1929).
const (
	socksVersion      = 5
	socksNoPassword   = 0
	socksPassword     = 2
	socksNoMethod     = 0xff
	socksConnect      = 1
	socksIPv4         = 1
	socksName         = 3
	socksIPv6         = 4
	replyDone         = 0
	replyFailed       = 1
	replyRefused      = 2 // by the rules
	replyNoNetwork    = 3
	replyNoHost       = 4
	replyNoConnection = 5
	replyTooLate      = 6
	replyNoCommand    = 7
	replyNoAddress    = 8
)

// A socksError is what a handshake ends with, and the reply to it. 0: there is no
// reply that says it.
type socksError struct {
	reply byte
	why   string
}

func (e *socksError) Error() string { return e.why }

// handshake reads what a client wants, up to and with its request.
func (g *Proxy) handshake(rw io.ReadWriter) (t Target, shown string, err error) {
	c := &socksConn{ReadWriter: rw}
	if err := g.greet(c); err != nil {
		return t, "", err
	}
	head := c.read(4)
	if c.err == nil && (head[0] != socksVersion || head[2] != 0) {
		return t, "", &socksError{replyFailed, "it is no request of SOCKS5"}
	}
	host, shown, err := c.host(head[3])
	if err != nil {
		return t, shown, err
	}
	port := c.read(2)
	t = Target{Host: host, Port: binary.BigEndian.Uint16(port), Protocol: string(SOCKS)}
	switch shown = host.String(); {
	case c.err != nil:
		return t, shown, c.err
	case head[1] != socksConnect:
		return t, shown, &socksError{replyNoCommand, "of SOCKS only CONNECT is carried, neither BIND nor UDP"}
	case t.Port == 0:
		return t, shown, &socksError{replyRefused, "port 0"}
	}
	return t, shown, nil
}

// greet agrees on a method, and checks the password if there has to be one.
func (g *Proxy) greet(c *socksConn) error {
	head := c.read(2)
	if c.err == nil && head[0] != socksVersion {
		return &socksError{0, "it is not SOCKS5"}
	}
	methods := c.read(int(head[1]))
	want := byte(socksNoPassword)
	if g.cfg.Key != "" {
		want = socksPassword
	}
	if c.err == nil && !bytes.Contains(methods, []byte{want}) {
		c.Write([]byte{socksVersion, socksNoMethod})
		return &socksError{0, "the client offers no way to log in that is taken here"}
	}
	c.write(socksVersion, want)
	if want == socksNoPassword {
		return c.err
	}
	if version := c.read(1); c.err == nil && version[0] != 1 {
		return &socksError{0, "it is no SOCKS password"}
	}
	c.text() // the user's name does not matter
	if password := c.text(); c.err == nil && !g.isKey(string(password)) {
		c.Write([]byte{1, 1})
		return &socksError{0, errKey.Why}
	}
	c.write(1, 0)
	return c.err
}

// A socksConn keeps its first error; what is read after it is zeros, and nothing is written.
type socksConn struct {
	io.ReadWriter
	err error
}

func (c *socksConn) read(n int) []byte {
	b := make([]byte, n)
	if c.err == nil {
		if _, c.err = io.ReadFull(c, b); c.err != nil {
			clear(b)
		}
	}
	return b
}

func (c *socksConn) write(b ...byte) {
	if c.err == nil {
		_, c.err = c.Write(b)
	}
}

// text reads a string with its length before it.
func (c *socksConn) text() []byte { return c.read(int(c.read(1)[0])) }

// host reads an address of a kind. A name that is an address in letters is one, for the
// rules as for the dial.
func (c *socksConn) host(kind byte) (h hostrules.Host, shown string, err error) {
	switch kind {
	case socksIPv4:
		h = hostrules.HostOf(netip.AddrFrom4([4]byte(c.read(4))))
	case socksIPv6:
		h = hostrules.HostOf(netip.AddrFrom16([16]byte(c.read(16))).Unmap())
	case socksName:
		name := string(c.text())
		if c.err != nil {
			return h, "", c.err
		}
		shown = quoteShort(name)
		if h, err = hostrules.ParseHost(name); err != nil {
			err = &socksError{replyRefused, err.Error()}
		}
		return h, shown, err
	default:
		if c.err == nil {
			return h, "", &socksError{replyNoAddress, "it is no kind of address of SOCKS5"}
		}
	}
	return h, "", c.err
}

// replyTo is the code for an error of Open.
func replyTo(err error) byte {
	switch {
	case refusalOf(err) != nil:
		return replyRefused
	case errors.As(err, new(*net.DNSError)):
		return replyNoHost
	case errors.Is(err, syscall.ECONNREFUSED):
		return replyNoConnection
	case errors.Is(err, syscall.ENETUNREACH):
		return replyNoNetwork
	case errors.Is(err, syscall.EHOSTUNREACH):
		return replyNoHost
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return replyTooLate
	}
	return replyFailed
}

// socksReply is a reply. It does not tell the local address of the connection.
func socksReply(code byte) []byte {
	return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}
