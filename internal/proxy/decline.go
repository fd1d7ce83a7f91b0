package proxy

import (
	"bytes"
	"io"
	"net"
	"time"
)

const (
	mostDeclined = 32              // clients that are told at one time; further ones are told without being heard
	declineTime  = 2 * time.Second // for a client to say what it is told about
	mostHeard    = 16 << 10        // bytes of that
)

// turnAway refuses a connection that there is no room for, and tells its client why.
func (g *Gateway) turnAway(conn net.Conn, p Protocol, err error) {
	r := refusalOf(err)
	if r == nil { // the gateway has ended
		conn.Close()
		return
	}
	g.finish(Event{Time: time.Now(), Protocol: string(p)}, err)
	says := g.declines(p, r)
	if says == nil {
		conn.Close()
		return
	}
	if g.declining.begin(mostDeclined) {
		if g.spawn(func() { defer g.declining.end(); g.decline(conn, says) }) {
			return
		}
		g.declining.end()
	}
	conn.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	conn.Write(says)
	conn.Close()
}

// declines is what the clients of a protocol understand without being asked anything;
// nil: there is nothing.
func (g *Gateway) declines(p Protocol, err *Refusal) []byte {
	switch p {
	case HTTP:
		return answerTo(err, "").raw("too many connections: " + err.Why)
	case SOCKS:
		greeting := []byte{socksVersion, socksNoPassword}
		if g.cfg.Key != "" {
			greeting = []byte{socksVersion, socksPassword, 1, 0} // whoever it is: nothing follows but a refusal
		}
		return append(greeting, socksReply(replyTo(err))...)
	}
	return nil
}

// decline says it to a client that has spoken, as most take nothing for an answer that
// comes before. What the client says further is read until it goes, for a time:
// a connection that is closed with bytes unread takes back what was written.
func (g *Gateway) decline(conn net.Conn, says []byte) {
	c, err := g.keep(conn)
	if err != nil {
		return
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(declineTime))
	hearOut(c, says[0] != socksVersion)
	c.SetDeadline(time.Now().Add(declineTime))
	if _, err := c.Write(says); err != nil || closeWrite(c) != nil {
		return
	}
	io.CopyN(io.Discard, c, mostHeard)
}

// hearOut reads what a client says first: in HTTP, a header.
func hearOut(c net.Conn, header bool) {
	var heard []byte
	for len(heard) < mostHeard && !bytes.HasSuffix(heard, []byte("\r\n\r\n")) {
		b := make([]byte, 1024)
		n, err := c.Read(b)
		heard = append(heard, b[:n]...)
		if err != nil || !header {
			return
		}
	}
}
