package proxy

import (
	"bufio"
	"io"
	"net"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

const (
	maxRejections = 32              // clients that are told at one time; further ones are told without being heard
	rejectTimeout = 2 * time.Second // for a client to say what it is told about
	maxRejectRead = 16 << 10        // bytes of that
)

// reject refuses a connection that there is no room for, and tells its client why.
func (g *Proxy) reject(conn net.Conn, p Protocol, err error) {
	r := refusalOf(err)
	if r == nil { // the proxy has ended
		conn.Close()
		return
	}
	g.finish(policy.Connection{Time: time.Now(), Protocol: string(p)}, err)
	says := g.rejectMessage(p, r)
	if says == nil {
		conn.Close()
		return
	}
	if g.rejections.Acquire(maxRejections) {
		if g.spawn(func() { defer g.rejections.Release(); g.rejectConn(conn, says) }) {
			return
		}
		g.rejections.Release()
	}
	conn.SetWriteDeadline(time.Now().Add(time.Second)) // the kernel's buffer takes it at once
	conn.Write(says)
	conn.Close()
}

// rejectMessage is what the clients of a protocol understand without being asked anything;
// nil: there is nothing.
func (g *Proxy) rejectMessage(p Protocol, err *Refusal) []byte {
	switch p {
	case HTTP:
		return replyFor(err, "").raw("too many connections: " + err.Why)
	case SOCKS:
		greeting := []byte{socksVersion, socksNoPassword}
		if g.cfg.Key != "" {
			greeting = []byte{socksVersion, socksPassword, 1, 0} // any password will do: a refusal follows
		}
		return append(greeting, socksReply(replyTo(err))...)
	}
	return nil
}

// rejectConn says it to a client that has spoken, as most take nothing for an answer that
// comes before. What the client says further is read until it goes, for a time:
// a connection that is closed with bytes unread takes back what was written.
func (g *Proxy) rejectConn(conn net.Conn, says []byte) {
	c, err := g.trackConn(conn, Target{})
	if err != nil {
		return
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(rejectTimeout))
	if says[0] == socksVersion {
		c.Read(make([]byte, 1024))
	} else {
		head := bufio.NewScanner(io.LimitReader(c, maxRejectRead))
		for head.Scan() && len(head.Bytes()) > 0 {
		}
	}
	c.SetDeadline(time.Now().Add(rejectTimeout))
	if _, err := c.Write(says); err != nil || closeWrite(c) != nil {
		return
	}
	io.CopyN(io.Discard, c, maxRejectRead)
}
