package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
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

// serveSOCKS serves one client.
func (g *Gateway) serveSOCKS(c *tracked) {
	c.SetDeadline(time.Now().Add(headerTime))
	t, shown, err := g.handshake(c)
	if err != nil {
		g.socksFailed(c, shown, err)
		return
	}
	c.SetDeadline(time.Time{})
	ctx, gone := context.WithCancel(g.ctx)
	defer gone()
	stop := func() []byte { return nil }
	if g.cfg.Decide != nil && g.Allowed(t.Host, t.Port).Outcome == Unknown {
		stop = watch(c, gone)
	}
	u, err := g.Open(ctx, t)
	head := stop()
	c.SetWriteDeadline(time.Now().Add(headerTime))
	if err != nil {
		c.Write(socksReply(replyTo(err)))
		c.Close()
		return
	}
	if _, err := c.Write(socksReply(replyDone)); err != nil {
		c.Close()
		u.Close()
		return
	}
	c.SetWriteDeadline(time.Time{})
	u.carry(c, head)
}

// watch calls gone when a client leaves while it waits for Decide, as net/http
// does for requests. What stop returns was sent by a client that did not wait.
func watch(c net.Conn, gone func()) (stop func() []byte) {
	read := make(chan []byte, 1)
	go func() {
		b := make([]byte, 1)
		n, err := c.Read(b)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			gone()
		}
		read <- b[:n]
	}()
	return func() []byte {
		c.SetReadDeadline(time.Unix(1, 0))
		head := <-read
		c.SetReadDeadline(time.Time{})
		return head
	}
}

// socksFailed ends a handshake. A client that just went away is no violation.
func (g *Gateway) socksFailed(c *tracked, shown string, err error) {
	defer c.Close()
	var e *socksError
	if !errors.As(err, &e) {
		return
	}
	g.journal.add(Event{Time: time.Now(), Protocol: string(SOCKS), Host: shown, Reason: e.why})
	if e.reply != 0 {
		c.Write(socksReply(e.reply))
	}
}

// handshake reads what a client wants, up to and with its request.
func (g *Gateway) handshake(c io.ReadWriter) (t Target, shown string, err error) {
	if err := g.greet(c); err != nil {
		return t, "", err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return t, "", err
	}
	if head[0] != socksVersion || head[2] != 0 {
		return t, "", &socksError{replyFailed, "it is no request of SOCKS5"}
	}
	host, shown, err := readSOCKSHost(c, head[3])
	if err != nil {
		return t, shown, err
	}
	var port [2]byte
	if _, err := io.ReadFull(c, port[:]); err != nil {
		return t, shown, err
	}
	t = Target{Host: host, Port: binary.BigEndian.Uint16(port[:]), Protocol: string(SOCKS)}
	switch {
	case head[1] != socksConnect:
		return t, host.String(), &socksError{replyNoCommand, "of SOCKS only CONNECT is carried, neither BIND nor UDP"}
	case t.Port == 0:
		return t, host.String(), &socksError{replyRefused, "port 0"}
	}
	return t, host.String(), nil
}

// greet agrees on a method, and hears the password if there has to be one.
func (g *Gateway) greet(c io.ReadWriter) error {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	if head[0] != socksVersion {
		return &socksError{0, "it is not SOCKS5"}
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(c, methods); err != nil {
		return err
	}
	want := byte(socksNoPassword)
	if g.cfg.Key != "" {
		want = socksPassword
	}
	for _, m := range methods {
		if m == want {
			_, err := c.Write([]byte{socksVersion, want})
			if err == nil && want == socksPassword {
				err = g.hearPassword(c)
			}
			return err
		}
	}
	c.Write([]byte{socksVersion, socksNoMethod})
	return &socksError{0, "the client offers no way to log in that is taken here"}
}

func (g *Gateway) hearPassword(c io.ReadWriter) error {
	var version [1]byte
	if _, err := io.ReadFull(c, version[:]); err != nil {
		return err
	}
	if version[0] != 1 {
		return &socksError{0, "it is no SOCKS password"}
	}
	if _, err := readShort(c); err != nil { // the user's name does not matter
		return err
	}
	password, err := readShort(c)
	if err != nil {
		return err
	}
	if !g.isKey(string(password)) {
		c.Write([]byte{1, 1})
		return &socksError{0, errKey.Why}
	}
	_, err = c.Write([]byte{1, 0})
	return err
}

// readShort reads a string with its length before it.
func readShort(c io.Reader) ([]byte, error) {
	var n [1]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return nil, err
	}
	b := make([]byte, n[0])
	_, err := io.ReadFull(c, b)
	return b, err
}

// readSOCKSHost reads an address of a kind. A name that is an address in
// letters is one, for the rules as for the dial.
func readSOCKSHost(c io.Reader, kind byte) (h Host, shown string, err error) {
	switch kind {
	case socksIPv4:
		var a [4]byte
		_, err = io.ReadFull(c, a[:])
		return Host{addr: netip.AddrFrom4(a)}, "", err
	case socksIPv6:
		var a [16]byte
		_, err = io.ReadFull(c, a[:])
		return Host{addr: netip.AddrFrom16(a).Unmap()}, "", err
	case socksName:
		name, err := readShort(c)
		if err != nil {
			return Host{}, "", err
		}
		shown = shownAs(string(name))
		if h, err = ParseHost(string(name)); err != nil {
			err = &socksError{replyRefused, err.Error()}
		}
		return h, shown, err
	}
	return Host{}, "", &socksError{replyNoAddress, "it is no kind of address of SOCKS5"}
}

// replyTo is the code for an error of Open.
func replyTo(err error) byte {
	var dns *net.DNSError
	switch {
	case refusalOf(err) != nil:
		return replyRefused
	case errors.As(err, &dns):
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

// socksReply is a reply. The address that it was bound to is nobody's business.
func socksReply(code byte) []byte {
	return []byte{socksVersion, code, 0, socksIPv4, 0, 0, 0, 0, 0, 0}
}
