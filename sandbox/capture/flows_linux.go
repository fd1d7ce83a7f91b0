package capture

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// What a run's flows of datagrams may take of the harness. What there is no room
// for is lost, as datagrams are, and a flow that there is no room for is refused.
const (
	mostFlows   = 512     // that are open
	mostWaiting = 64      // datagrams of one flow that are not read yet
	mostQueued  = 8 << 20 // bytes of all of them
)

// The ends of a flow tell it from all others: a datagram from another address or
// port, or to another, belongs to another flow, whose answers are its own.
type ends struct{ from, to netip.AddrPort }

// flows are those of one run.
type flows struct {
	send func(packet []byte)
	mtu  int

	mu     sync.Mutex
	open   map[ends]*flow
	queued int
	ended  bool
}

// A flow is the datagrams of one socket of the tool's to one peer: a net.Conn of
// which each Read and Write is a datagram.
type flow struct {
	ends
	in     *flows
	queue  chan []byte
	over   chan struct{}
	readBy deadline
}

// take gives a datagram to the flow that it is of, if there is one.
func (f *flows) take(e ends, data []byte) (known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.open[e]
	if x == nil {
		return false
	}
	if len(x.queue) == cap(x.queue) || f.queued+len(data) > mostQueued {
		return true
	}
	f.queued += len(data)
	x.queue <- append([]byte(nil), data...)
	return true
}

// begin makes a flow; nil: there is no room for one.
func (f *flows) begin(e ends) *flow {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended || len(f.open) >= mostFlows {
		return nil
	}
	if f.open == nil {
		f.open = map[ends]*flow{}
	}
	x := &flow{ends: e, in: f, queue: make(chan []byte, mostWaiting), over: make(chan struct{})}
	f.open[e] = x
	return x
}

// end closes every flow and makes no further one.
func (f *flows) end() {
	f.mu.Lock()
	f.ended = true
	var open []*flow
	for _, x := range f.open {
		open = append(open, x)
	}
	f.mu.Unlock()
	for _, x := range open {
		x.Close()
	}
}

// next is the next datagram of the tool's.
func (x *flow) next() ([]byte, error) {
	select {
	case b := <-x.queue:
		x.in.mu.Lock()
		x.in.queued -= len(b)
		x.in.mu.Unlock()
		return b, nil
	case <-x.over:
		return nil, net.ErrClosed
	case <-x.readBy.wait():
		return nil, os.ErrDeadlineExceeded
	}
}

// WriteTo writes each datagram of the tool's to w until the flow is closed.
func (x *flow) WriteTo(w io.Writer) (n int64, err error) {
	for {
		b, err := x.next()
		if err != nil {
			return n, err
		}
		wrote, err := w.Write(b)
		if n += int64(wrote); err != nil {
			return n, err
		}
	}
}

// Read returns one datagram, or as much of it as b has room for.
func (x *flow) Read(b []byte) (int, error) {
	data, err := x.next()
	return copy(b, data), err
}

// Write sends the tool one datagram from where the tool has sent its own. One that
// is longer than the device's packets is lost.
func (x *flow) Write(b []byte) (int, error) {
	select {
	case <-x.over:
		return 0, net.ErrClosed
	default:
	}
	if p := wrapUDP(x.to, x.from, b); p != nil && len(p) <= x.in.mtu {
		x.in.send(p)
	}
	return len(b), nil
}

// Unreachable sends the tool the ICMP message of a host without a socket at the port.
func (x *flow) Unreachable() {
	if p, ok := parse(wrapUDP(x.from, x.to, nil)); ok {
		x.in.send(refuse(p, noPort))
	}
}

// Close ends the flow. What comes after it is another.
func (x *flow) Close() error {
	f := x.in
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[x.ends] != x {
		return net.ErrClosed
	}
	delete(f.open, x.ends)
	close(x.over)
	for {
		select {
		case b := <-x.queue:
			f.queued -= len(b)
			continue
		default:
		}
		return nil
	}
}

// LocalAddr is what the tool sends to.
func (x *flow) LocalAddr() net.Addr { return net.UDPAddrFromAddrPort(x.to) }

// RemoteAddr is the tool's end.
func (x *flow) RemoteAddr() net.Addr { return net.UDPAddrFromAddrPort(x.from) }

// SetDeadline bounds what is read; nothing that is written waits.
func (x *flow) SetDeadline(t time.Time) error { return x.SetReadDeadline(t) }

// SetReadDeadline bounds what is read.
func (x *flow) SetReadDeadline(t time.Time) error {
	x.readBy.set(t)
	return nil
}

// SetWriteDeadline bounds nothing.
func (x *flow) SetWriteDeadline(time.Time) error { return nil }

// datagram serves a packet of UDP: it is of a flow, or begins one that the policy
// grants, or asks for a name, or is refused.
func (n *netstack) datagram(p packet) (answer []byte) {
	from, to, data, ok := p.datagram()
	if !ok || from == 0 || to == 0 {
		return nil
	}
	e := ends{netip.AddrPortFrom(p.src, from), netip.AddrPortFrom(p.dst, to)}
	if n.flows.take(e, data) {
		return nil
	}
	host, known := n.names.host(p.dst)
	switch {
	case known && n.gate.Datagrams != nil && n.gate.Datagrams(host, to):
		if room, ended := n.carry(e, host, data); room || ended {
			return nil
		}
		n.denials.note(denial{protocol: "udp", host: host, port: to, why: fmt.Sprintf("%d flows of datagrams are open", mostFlows)})
		return refuse(p, noPort)
	case to == 53:
		if a := n.resolver.answer(data); a != nil {
			return udp(p, from, to, a)
		}
		return nil
	}
	n.refused(p, "udp", to)
	return refuse(p, noPort)
}

// carry begins a flow with its first datagram, if there is room for one and the run
// has not ended. The gate judges it, and ends it.
func (n *netstack) carry(e ends, host string, first []byte) (room, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ending {
		return false, true
	}
	x := n.flows.begin(e)
	if x == nil {
		return false, false
	}
	n.flows.take(e, first)
	n.serving.Go(func() {
		defer x.Close()
		if err := n.gate.Tunnel(n.ctx, x, host, e.to.Port(), "udp"); err != nil {
			x.Unreachable()
		}
	})
	return true, false
}

var _ net.Conn = (*flow)(nil)
