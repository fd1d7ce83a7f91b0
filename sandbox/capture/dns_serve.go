package capture

import (
	"encoding/binary"
	"io"
	"net"
	"time"
)

const (
	idle    = 10 * time.Second // how long a stream may be silent between questions
	longest = 4096             // bytes of a question; what is longer is none
)

// serveDatagrams answers what arrives at a socket until it is closed.
func (r *resolver) serveDatagrams(c net.PacketConn) {
	buf := make([]byte, longest)
	for {
		n, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		if a := r.answer(buf[:n]); a != nil {
			_, _ = c.WriteTo(a, from) // an answer that is lost is asked for again
		}
	}
}

// serveStream answers the questions of one stream, each of which has its length
// before it (RFC 1035, 4.2.2), until it ends or is silent.
func (r *resolver) serveStream(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 2+longest)
	for {
		if c.SetDeadline(time.Now().Add(idle)) != nil {
			return
		}
		if _, err := io.ReadFull(c, buf[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(buf))
		if n > longest {
			return
		}
		if _, err := io.ReadFull(c, buf[2:2+n]); err != nil {
			return
		}
		a := r.answer(buf[2 : 2+n])
		if a == nil {
			return
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
			return
		}
	}
}
