package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// newPipe captures what is written to a socket that keeps packets apart, as a
// device does. Every connection is the given function's.
func newPipe(t *testing.T, with func(ctx context.Context, c net.Conn)) (*netstack, *os.File) {
	t.Helper()
	return newPipeOf(t, policy.CaptureGate{
		Denied:    func(string, string, uint16, string) {},
		Datagrams: func(_ string, port uint16) bool { return port != 53 },
		Tunnel: func(ctx context.Context, c net.Conn, _ string, _ uint16, _ string) error {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			with(ctx, c)
			return nil
		},
	})
}

// newPipeOf is newPipe with a gate of the test's.
func newPipeOf(t *testing.T, g policy.CaptureGate) (*netstack, *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	tool := os.NewFile(uintptr(pair[0]), "tool")
	if err := tool.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	g.Address, g.MTU, g.Allowed = testNet, testMTU, func(string, uint16) bool { return false }
	n, err := begin(os.NewFile(uintptr(pair[1]), "device"), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tool.Close() })
	return n, tool
}

// A peer is the tool's end of a connection, segment by segment.
type peer struct {
	t        *testing.T
	tool     *os.File
	port     uint16
	seq, ack uint32
}

const (
	fin = 1 << iota
	syn
	rst
	_
	ack
)

// A segment is what the stack says to a peer.
type segment struct {
	flags byte
	seq   uint32
	data  []byte
}

// send sends a segment with no options.
func (p *peer) send(flags byte, window uint16, data string) {
	p.t.Helper()
	h := binary.BigEndian.AppendUint16(nil, p.port)
	h = binary.BigEndian.AppendUint16(h, 80)
	h = binary.BigEndian.AppendUint32(h, p.seq)
	h = binary.BigEndian.AppendUint32(h, p.ack)
	h = append(h, 5<<4, flags)
	h = binary.BigEndian.AppendUint16(h, window)
	h = append(append(h, 0, 0, 0, 0), data...)
	if _, err := p.tool.Write(wrap(tool4, far4, protoTCP, h)); err != nil {
		p.t.Fatal(err)
	}
	p.seq += uint32(len(data)) + uint32(flags&syn)/syn + uint32(flags&fin)
}

// next waits for the stack's next segment that is more than an acknowledgement.
func (p *peer) next() segment {
	p.t.Helper()
	b := make([]byte, largest)
	for {
		n, err := p.tool.Read(b)
		if err != nil {
			p.t.Fatal(err)
		}
		k, ok := parse(b[:n])
		if h := k.payload(); ok && k.protocol == protoTCP && binary.BigEndian.Uint16(h[2:]) == p.port {
			if sumOf(k) != 0 {
				p.t.Errorf("a segment whose sum is %x", sumOf(k))
			}
			if s := (segment{h[13], binary.BigEndian.Uint32(h[4:]), bytes.Clone(h[h[12]>>4*4:])}); s.flags != ack || len(s.data) > 0 {
				return s
			}
		}
	}
}

// open shakes hands.
func (p *peer) open(window uint16) {
	p.t.Helper()
	p.send(syn, window, "")
	s := p.next()
	if s.flags != syn|ack {
		p.t.Fatalf("a SYN is answered by %+v", s)
	}
	p.ack = s.seq + 1
	p.send(ack, window, "")
}

// answered asks for a name and waits for the answer. It returns how many segments
// have come before.
func answered(t *testing.T, tool *os.File) (segments int) {
	t.Helper()
	q := question(t, "denied.test.", 1, false)
	p := append(binary.BigEndian.AppendUint16([]byte{0x77, 0x77, 0, 53}, uint16(8+len(q))), 0, 0)
	if _, err := tool.Write(wrap(tool4, far4, protoUDP, append(p, q...))); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, largest)
	for {
		n, err := tool.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		k, ok := parse(b[:n])
		if ok && k.protocol == protoUDP && bytes.HasPrefix(k.payload(), []byte{0, 53, 0x77, 0x77}) {
			return segments
		}
		segments++
	}
}

func TestSYNIsAnsweredWhenTheGateIsReady(t *testing.T) {
	asked, ready := make(chan struct{}), make(chan struct{})
	n, tool := newPipe(t, func(_ context.Context, c net.Conn) {
		close(asked)
		<-ready
		io.WriteString(c, "hello")
	})
	defer n.stop()
	p := &peer{t: t, tool: tool, port: 1025}
	p.send(syn, 65535, "")
	<-asked
	if n := answered(t, tool); n != 0 {
		t.Errorf("%d segments have come before the gate was ready", n)
	}
	close(ready)
	if s := p.next(); s.flags != syn|ack {
		t.Errorf("%+v", s)
	} else {
		p.seq, p.ack = 1, s.seq+1
	}
	p.send(ack, 65535, "")
	if s := p.next(); string(s.data) != "hello" {
		t.Errorf("%+v", s)
	}
}

func TestConnectionThatIsClosedUnusedIsReset(t *testing.T) {
	n, tool := newPipe(t, func(_ context.Context, c net.Conn) {
		c.Close()
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	defer n.stop()
	p := &peer{t: t, tool: tool, port: 1025}
	p.send(syn, 65535, "")
	if s := p.next(); s.flags != rst|ack {
		t.Errorf("%+v", s)
	}
}

// TestAConnectionWhoseHandshakeIsNotCompletedIsClosedAtOnce: the tool's kernel answers no SYN-ACK that is for an address of no socket, such as one of
// IPv6 that a tool has bound by IPV6_FREEBIND.
func TestAConnectionWhoseHandshakeIsNotCompletedIsClosedAtOnce(t *testing.T) {
	taken, read := make(chan net.Conn), make(chan error, 1)
	n, tool := newPipe(t, func(_ context.Context, c net.Conn) {
		taken <- c
		_, err := c.Read(make([]byte, 1))
		read <- err
	})
	defer n.stop()
	p := &peer{t: t, tool: tool, port: 4000}
	p.send(syn, 1000, "")
	c := <-taken
	if s := p.next(); s.flags != syn|ack {
		t.Fatalf("%+v", s)
	}
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("Close waits")
	}
	n.stop() // which ends the handshake
	if err := <-read; err == nil {
		t.Error("something was read")
	}
}

// TestConnectionFailsAsTheKernelsDo: who carries bytes asks for these errors.
func TestConnectionFailsAsTheKernelsDo(t *testing.T) {
	for says, c := range map[string]struct {
		first func(c net.Conn)
		then  func(p *peer)
		use   func(c net.Conn) error
		want  error
	}{
		"the peer ends its half": {nil, func(p *peer) { p.send(fin|ack, 65535, "") },
			func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, io.EOF},
		"the peer resets it": {nil, func(p *peer) { p.send(rst|ack, 0, "") },
			func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, syscall.ECONNRESET},
		"nothing comes in time": {func(c net.Conn) { c.SetReadDeadline(time.Now().Add(time.Millisecond)) }, nil,
			func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, os.ErrDeadlineExceeded},
		"nothing comes in time, to who waits": {func(c net.Conn) { c.SetDeadline(time.Now().Add(time.Millisecond)) }, nil,
			func(c net.Conn) error { return c.(*conn).WaitRead() }, os.ErrDeadlineExceeded},
		"nothing is taken in time": {func(c net.Conn) { c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) }, nil,
			func(c net.Conn) error { _, err := c.Write(make([]byte, 4<<20)); return err }, os.ErrDeadlineExceeded},
		"it is closed meanwhile": {func(c net.Conn) { time.AfterFunc(time.Millisecond, func() { c.Close() }) }, nil,
			func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err }, net.ErrClosed},
		"its half has ended": {func(c net.Conn) { c.(*conn).CloseWrite() }, nil,
			func(c net.Conn) error { _, err := c.Write([]byte("x")); return err }, syscall.EPIPE},
	} {
		failed := make(chan error, 1)
		n, tool := newPipe(t, func(_ context.Context, k net.Conn) {
			io.WriteString(k, "hello")
			if c.first != nil {
				c.first(k)
			}
			failed <- c.use(k)
		})
		p := &peer{t: t, tool: tool, port: 1025}
		p.open(1000)
		p.next()
		if c.then != nil {
			c.then(p)
		}
		if err := <-failed; !errors.Is(err, c.want) {
			t.Errorf("%s: %v", says, err)
		}
		n.stop()
	}
}

// TestPlaceIsHeldUntilTheLastByteIsTaken: a tool that reads nothing cannot have the
// harness keep more than a connection's share for each place.
func TestPlaceIsHeldUntilTheLastByteIsTaken(t *testing.T) {
	closed := make(chan struct{})
	n, tool := newPipe(t, func(_ context.Context, c net.Conn) {
		io.WriteString(c, "hello, who reads nothing")
		c.Close()
		close(closed)
	})
	places := func() int {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.conns
	}
	p := &peer{t: t, tool: tool, port: 1025}
	p.open(5)
	if s := p.next(); string(s.data) != "hello" {
		t.Errorf("%+v", s)
	}
	<-closed
	answered(t, tool)
	if places() != 1 {
		t.Errorf("%d places are held for what is not read", places())
	}
	p.ack += 5
	p.send(ack, 1000, "")
	for s := p.next(); s.flags&fin == 0; s = p.next() {
	}
	p.ack += uint32(len(", who reads nothing") + 1)
	p.send(fin|ack, 1000, "")
	for places() != 0 {
		time.Sleep(time.Millisecond)
	}
	n.stop()
}
