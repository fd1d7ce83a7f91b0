package capture

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// What a run's connections may take of the harness. A SYN beyond mostAsking is
// lost, and sent again by the tool's kernel; a connection beyond mostConns is
// refused.
const (
	mostAsking  = 256  // SYNs that are not answered yet
	mostConns   = 1024 // connections, those included that are being closed
	mostBuffers = 64 << 20
	mostBuffer  = 1 << 20 // bytes each way of one connection
	leastBuffer = 64 << 10

	lingering = 20 * time.Second // for what a tool has not read of a closed connection
)

const nic = 1

// A netstack is one run's.
type netstack struct {
	gate     policy.CaptureGate
	names    *names
	denials  *denials
	resolver *resolver
	device   *device
	flows    flows
	stack    *stack.Stack
	forward  *tcp.Forwarder

	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	ending  bool
	conns   int // connections that have begun and have not ended
	serving sync.WaitGroup
}

// Netstack is a [policy.Capture] by way of gVisor's network stack.
func Netstack(tun *os.File, g policy.CaptureGate) (stop func(), err error) {
	n, err := begin(tun, g)
	if err != nil {
		tun.Close()
		closeSockets(g)
		return nil, err
	}
	return sync.OnceFunc(n.stop), nil
}

// begin makes everything and then lets the first packet in.
func begin(tun *os.File, g policy.CaptureGate) (*netstack, error) {
	if err := validate(g); err != nil {
		return nil, err
	}
	n := &netstack{gate: g, names: newNames(g.Address, mostNames), denials: newDenials(g.Denied, mostDenials)}
	n.resolver = &resolver{allowed: g.Allowed, why: g.Why, names: n.names, note: n.denials.note}
	var err error
	if n.device, err = newDevice(tun, g.MTU, n.judge); err != nil {
		return nil, err
	}
	n.flows.send = func(p []byte) { n.device.send([][]byte{p}) }
	n.flows.mtu = g.MTU
	if err := n.build(); err != nil {
		n.device.close()
		if n.stack != nil {
			n.stack.Destroy()
		}
		return nil, err
	}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for _, c := range g.DNS {
		n.serving.Go(func() { n.resolver.serveDatagrams(c) })
	}
	for _, l := range g.DNSStreams {
		n.serving.Go(func() { n.listen(l) })
	}
	n.device.start()
	return n, nil
}

// validate holds a gate against what is needed of one.
func validate(g policy.CaptureGate) error {
	switch {
	case g.Allowed == nil || g.Tunnel == nil || g.Denied == nil:
		return errors.New("capture: a gate without all of its functions")
	case !g.Address.Addr().Is4() || g.Address.Bits() > 30:
		return fmt.Errorf("capture: %v is no IPv4 network with addresses for names", g.Address)
	case g.MTU < header.IPv6MinimumMTU || g.MTU >= largest:
		return fmt.Errorf("capture: a device whose packets have %d bytes", g.MTU)
	}
	return nil
}

func closeSockets(g policy.CaptureGate) {
	for _, c := range g.DNS {
		c.Close()
	}
	for _, l := range g.DNSStreams {
		l.Close()
	}
}

// build makes a stack that takes every packet as one for itself.
func (n *netstack) build() error {
	n.stack = stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, ipv6.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	for _, o := range tuning() {
		if err := n.stack.SetTransportProtocolOption(tcp.ProtocolNumber, o); err != nil {
			return fmt.Errorf("capture: the stack's %T: %s", o, err)
		}
	}
	n.forward = tcp.NewForwarder(n.stack, leastBuffer, mostAsking, n.serve)
	n.stack.SetTransportProtocolHandler(tcp.ProtocolNumber, n.forward.HandlePacket)
	if err := n.stack.CreateNIC(nic, n.device); err != nil {
		return fmt.Errorf("capture: the stack's device: %s", err)
	}
	if err := n.stack.SetPromiscuousMode(nic, true); err != nil {
		return fmt.Errorf("capture: taking every address: %s", err)
	}
	if err := n.stack.SetSpoofing(nic, true); err != nil {
		return fmt.Errorf("capture: answering from every address: %s", err)
	}
	n.stack.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}, {Destination: header.IPv6EmptySubnet, NIC: nic}})
	return nil
}

// tuning bounds what a connection takes while it is asked for, and how long what
// is closed is kept. On a link that loses nothing and has no distance, a
// connection's own history is worth nothing.
func tuning() []tcpip.SettableTransportProtocolOption {
	sack, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPModerateReceiveBufferOption(false)
	retries := tcpip.TCPSynRetriesOption(3)
	wait, idle := tcpip.TCPTimeWaitTimeoutOption(time.Second), tcpip.TCPLingerTimeoutOption(lingering)
	return []tcpip.SettableTransportProtocolOption{
		&sack, &moderate, &retries, &wait, &idle,
		&tcpip.TCPReceiveBufferSizeRangeOption{Min: 4 << 10, Default: leastBuffer, Max: mostBuffer},
		&tcpip.TCPSendBufferSizeRangeOption{Min: 4 << 10, Default: leastBuffer, Max: mostBuffer},
	}
}

// judge is the device's: it answers what is not TCP, and refuses it unless it is
// a question to a DNS server, whichever one, or the policy grants the datagram.
func (n *netstack) judge(b []byte) (answer []byte, pass bool) {
	p, ok := parse(b)
	switch {
	case !ok:
		return nil, false
	case p.protocol == protoTCP:
		return nil, true
	case p.protocol != protoUDP:
		if !p.asks() {
			return nil, false
		}
		n.refused(p, protocolName(p.protocol), 0)
		return refuse(p, prohibited), false
	}
	return n.datagram(p), false
}

// refused records a packet that no rule allows, by the name that it is for.
func (n *netstack) refused(p packet, protocol string, port uint16) {
	host, known := n.names.host(p.dst)
	if !known {
		host = p.dst.String()
	}
	n.denials.note(denial{protocol: protocol, host: host, port: port, why: "only TCP, questions to DNS and the datagrams that the policy grants leave the sandbox"})
}

// serve has a connection made, or refused.
func (n *netstack) serve(r *tcp.ForwarderRequest) {
	id := r.ID()
	to := netip.AddrPortFrom(address(id.LocalAddress), id.LocalPort)
	c := &conn{from: netip.AddrPortFrom(address(id.RemoteAddress), id.RemotePort), to: to, request: r}
	room, ended := n.enter(c)
	if ended {
		c.Close()
		return
	}
	defer n.leave()
	defer c.linger(lingering, n.ctx.Done())
	defer c.Close()
	host, known := n.names.host(to.Addr())
	switch {
	case !room:
		n.denials.note(denial{protocol: "tcp", host: to.Addr().String(), port: to.Port(), why: fmt.Sprintf("%d connections are open", mostConns)})
	case to.Port() == 53:
		n.resolver.serveStream(c)
	case !known:
		n.denials.note(denial{protocol: "tcp", host: to.Addr().String(), port: to.Port(), why: "no name was answered with this address"})
	default:
		_ = n.gate.Tunnel(n.ctx, c, host, to.Port(), "tcp") // the gate has noted it
	}
}

// enter gives a connection a place, and memory by how many there are.
func (n *netstack) enter(c *conn) (room, ended bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ending {
		return false, true
	}
	n.serving.Add(1)
	n.conns++
	c.buffers = buffers(n.conns)
	return n.conns <= mostConns, false
}

func (n *netstack) leave() {
	n.mu.Lock()
	n.conns--
	n.mu.Unlock()
	n.serving.Done()
}

// buffers is how many bytes each way the next of so many connections may hold: as
// many as make it fast while there are few, and few while there are many.
func buffers(conns int) int {
	if conns*2*mostBuffer <= mostBuffers {
		return mostBuffer
	}
	return leastBuffer
}

// listen answers the streams of a socket on the tool's loopback.
func (n *netstack) listen(l net.Listener) {
	for {
		c, err := l.Accept()
		if n.ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if err == nil {
				c.Close()
			}
			return
		}
		if err != nil { // descriptors or epoll watches (epoll(7)) are short, for which a tool of another run may be the cause
			time.Sleep(50 * time.Millisecond)
			continue
		}
		n.mu.Lock()
		full := n.ending || n.conns >= mostConns
		if !full {
			n.serving.Add(1)
			n.conns++
		}
		n.mu.Unlock()
		if full {
			c.Close()
			continue
		}
		go func() {
			defer n.leave()
			defer context.AfterFunc(n.ctx, func() { c.Close() })()
			n.resolver.serveStream(c)
		}()
	}
}

// stop ends everything and returns when it is over.
func (n *netstack) stop() {
	n.mu.Lock()
	n.ending = true
	n.mu.Unlock()
	n.cancel()
	n.flows.end()
	n.device.close()
	closeSockets(n.gate)
	over := make(chan struct{})
	go func() { defer close(over); n.serving.Wait() }()
	// An endpoint that begins now is in no list yet, so the list is read until
	// no goroutine is left that could make one.
	for again := time.NewTicker(time.Millisecond); ; {
		for _, ep := range n.stack.RegisteredEndpoints() {
			ep.Abort()
		}
		select {
		case <-over:
			again.Stop()
			n.stack.Destroy()
			return
		case <-again.C:
		}
	}
}

func address(a tcpip.Address) netip.Addr {
	addr, _ := netip.AddrFromSlice(a.AsSlice())
	return addr.Unmap()
}

func protocolName(p byte) string {
	switch p {
	case protoICMP, protoICMPv6:
		return "icmp"
	}
	return fmt.Sprintf("ip protocol %d", p)
}
