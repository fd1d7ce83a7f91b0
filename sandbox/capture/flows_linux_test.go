package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A pond is a pipe whose every datagram is granted, and what became of them.
type pond struct {
	*netstack
	t    *testing.T
	tool *os.File
	end  func()

	mu     sync.Mutex
	begun  []string
	denied []denial
}

// nameServer is the one whose port 53 a pond grants.
const nameServer = "93.184.216.53"

// newPond serves each flow by a function.
func newPond(t *testing.T, with func(c net.Conn) error) *pond {
	t.Helper()
	p := &pond{t: t}
	p.netstack, p.tool = newPipeOf(t, policy.CaptureGate{
		Datagrams: func(host string, port uint16) bool {
			return host != "denied.test" && (port != 53 || host == nameServer)
		},
		Tunnel: func(ctx context.Context, c net.Conn, host string, port uint16, protocol string) error {
			defer c.Close()
			defer context.AfterFunc(ctx, func() { c.Close() })()
			p.mu.Lock()
			p.begun = append(p.begun, fmt.Sprintf("%s %s:%d", protocol, host, port))
			p.mu.Unlock()
			return with(c)
		},
		Denied: func(protocol, host string, port uint16, why string) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.denied = append(p.denied, denial{protocol, host, port, why})
		},
	})
	p.end = sync.OnceFunc(p.stop)
	t.Cleanup(p.end)
	return p
}

func (p *pond) send(packet []byte) {
	p.t.Helper()
	if _, err := p.tool.Write(packet); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns the next packet.
func (p *pond) hear() packet {
	p.t.Helper()
	b := make([]byte, largest)
	n, err := p.tool.Read(b)
	if err != nil {
		p.t.Fatal(err)
	}
	k, ok := parse(b[:n])
	if !ok || sumOf(k) != 0 {
		p.t.Fatalf("%x: %t, sum %x", b[:n], ok, sumOf(k))
	}
	return k
}

func at(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// repeat says what it hears, with a word before it.
func repeat(word string) func(c net.Conn) error {
	return func(c net.Conn) error {
		b := make([]byte, 1<<16)
		for {
			n, err := c.Read(b)
			if err != nil {
				return nil
			}
			c.Write(append([]byte(word), b[:n]...))
		}
	}
}

func TestAnswersComeFromWhereTheToolHasSentAndGoToWhoHas(t *testing.T) {
	flows := 0
	var mu sync.Mutex
	p := newPond(t, func(c net.Conn) error {
		mu.Lock()
		flows++
		word := fmt.Sprint(flows, " ")
		mu.Unlock()
		return repeat(word)(c)
	})
	for _, c := range []struct{ from, to, says, want string }{
		{"198.18.0.1:1000", "93.184.216.34:500", "a", "1 a"},
		{"198.18.0.1:1000", "93.184.216.34:500", "b", "1 b"},
		{"198.18.0.1:1001", "93.184.216.34:500", "c", "2 c"},
		{"198.18.77.77:1000", "93.184.216.34:500", "d", "3 d"}, // whoever that is
		{"198.18.0.1:1000", "93.184.216.34:501", "e", "4 e"},
		{"198.18.0.1:1000", "93.184.216.35:500", "f", "5 f"},
		{"[fd00:5::1]:1000", "[2606:2800:220:1::1]:500", "g", "6 g"},
		{"198.18.0.1:1000", "93.184.216.34:500", "", "1 "},
	} {
		p.send(wrapUDP(at(c.from), at(c.to), []byte(c.says)))
		k := p.hear()
		from, to, data, ok := k.datagram()
		if !ok || netip.AddrPortFrom(k.src, from) != at(c.to) || netip.AddrPortFrom(k.dst, to) != at(c.from) || string(data) != c.want {
			t.Errorf("%+v: %q from %v:%d to %v:%d", c, data, k.src, from, k.dst, to)
		}
	}
}

func TestWhatIsForManyOrForNobodyIsNoFlow(t *testing.T) {
	p := newPond(t, repeat(""))
	p.names.address("denied.test") // 198.18.0.2
	fragment := wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:500"), []byte("hello"))
	fragment[6] = 0x20
	for _, b := range [][]byte{
		wrapUDP(at("198.18.0.1:1000"), at("224.0.0.251:5353"), nil), wrapUDP(at("198.18.0.1:1000"), at("255.255.255.255:67"), nil),
		wrapUDP(at("198.18.0.1:1000"), at("0.0.0.0:67"), nil), wrapUDP(at("198.18.0.1:1000"), at("127.0.0.1:500"), nil),
		wrapUDP(at("[fd00:5::1]:1000"), at("[ff02::fb]:5353"), nil), wrapUDP(at("127.0.0.1:1000"), at("93.184.216.34:500"), nil),
		wrapUDP(at("224.0.0.1:1000"), at("93.184.216.34:500"), nil), wrapUDP(at("198.18.0.1:0"), at("93.184.216.34:500"), nil),
		wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:0"), nil), fragment,
	} {
		p.send(b)
	}
	// These are refused, and so all before have been seen.
	for _, to := range []string{"198.18.0.2:443", "198.19.3.4:443"} {
		p.send(wrapUDP(at("198.18.0.1:1000"), at(to), nil))
		if k := p.hear(); k.protocol != protoICMP || k.payload()[0] != 3 || k.payload()[1] != 3 {
			t.Errorf("%s: %x", to, k.whole)
		}
	}
	if answered(t, p.tool) != 0 {
		t.Error("something was answered")
	}
	p.end()
	if len(p.begun) > 0 || p.flows.open != nil {
		t.Errorf("begun: %q", p.begun)
	}
	if want := []denial{{"udp", "denied.test", 443, p.denied[0].why}, {"udp", "198.19.3.4", 443, p.denied[1].why}}; !slices.Equal(p.denied[:2], want) {
		t.Errorf("noted: %+v", p.denied)
	}
}

func TestFlowsAreBounded(t *testing.T) {
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	defer release()
	p := newPond(t, func(c net.Conn) error { <-blocked; return nil })
	for i := range 4 * mostFlows {
		p.send(wrapUDP(netip.AddrPortFrom(tool4, uint16(1000+i)), at("93.184.216.34:500"), []byte("hello")))
		if i < mostFlows {
			continue
		}
		if k := p.hear(); k.protocol != protoICMP || k.payload()[1] != 3 {
			t.Fatalf("%x", k.whole)
		}
	}
	p.flows.mu.Lock()
	if len(p.flows.open) != mostFlows {
		t.Errorf("%d flows are open", len(p.flows.open))
	}
	p.flows.mu.Unlock()
	p.mu.Lock()
	if len(p.denied) != 1 || p.denied[0].protocol != "udp" {
		t.Errorf("noted: %+v", p.denied)
	}
	p.mu.Unlock()
	release()
	p.end()
	if len(p.flows.open) != 0 || p.flows.queued != 0 {
		t.Errorf("%d flows and %d bytes are left", len(p.flows.open), p.flows.queued)
	}
}

// TestADatagramThatComesAsTheRunEndsIsNotDenied: there is room for it, and nobody
// left to carry it, which is nothing that a policy's owner could see to.
func TestADatagramThatComesAsTheRunEndsIsNotDenied(t *testing.T) {
	p := newPond(t, repeat(""))
	p.netstack.mu.Lock()
	p.ending = true
	p.netstack.mu.Unlock()
	k, ok := parse(wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:500"), []byte("hello")))
	if answer := p.datagram(k); !ok || answer != nil {
		t.Errorf("%t, %x", ok, answer)
	}
	p.end()
	if len(p.begun)+len(p.denied) > 0 {
		t.Errorf("begun %q, denied %+v", p.begun, p.denied)
	}
}

func TestWhatNobodyTakesIsBoundedAndThenLost(t *testing.T) {
	blocked := make(chan struct{})
	release := sync.OnceFunc(func() { close(blocked) })
	defer release()
	p := newPond(t, func(c net.Conn) error { <-blocked; return repeat("")(c) })
	large := make([]byte, 60000)
	for i := range 5 {
		for range 2 * mostWaiting {
			p.send(wrapUDP(netip.AddrPortFrom(tool4, uint16(1000+i)), at("93.184.216.34:500"), large))
		}
	}
	for range 2 * mostWaiting {
		p.send(wrapUDP(netip.AddrPortFrom(tool4, 999), at("93.184.216.34:500"), nil))
	}
	if answered(t, p.tool) != 0 {
		t.Error("something was answered")
	}
	p.flows.mu.Lock()
	if q := p.flows.queued; q > mostQueued || q < mostQueued-2*len(large) {
		t.Errorf("%d bytes wait", q)
	}
	first := p.flows.open[ends{netip.AddrPortFrom(tool4, 1000), at("93.184.216.34:500")}]
	last := p.flows.open[ends{netip.AddrPortFrom(tool4, 999), at("93.184.216.34:500")}]
	if len(first.queue) != mostWaiting || len(last.queue) != mostWaiting {
		t.Errorf("%d and %d datagrams wait", len(first.queue), len(last.queue))
	}
	p.flows.mu.Unlock()
	release()
	p.end()
	if p.flows.queued != 0 {
		t.Errorf("%d bytes are left", p.flows.queued)
	}
}

func TestAFlowThatIsRefusedTellsTheToolAndTheNextIsAnother(t *testing.T) {
	p := newPond(t, func(c net.Conn) error { return errors.New("denied") })
	for range 3 {
		p.send(wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:500"), []byte("hello")))
		k := p.hear()
		quoted, ok := parse(append(k.payload()[8:], make([]byte, 0)...))
		if k.protocol != protoICMP || k.payload()[0] != 3 || k.payload()[1] != 3 || k.src != far4 || k.dst != tool4 || !ok || quoted.src != tool4 || quoted.dst != far4 {
			t.Fatalf("%x", k.whole)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.begun) != 3 || p.begun[0] != "udp 93.184.216.34:500" {
		t.Errorf("begun: %q", p.begun)
	}
}

func TestAFlowIsANetConn(t *testing.T) {
	done := make(chan error, 1)
	p := newPond(t, func(c net.Conn) error {
		err := flowIsAConn(c)
		c.Write([]byte("over"))
		done <- err
		return nil
	})
	p.send(wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:500"), []byte("hello")))
	if k := p.hear(); k.protocol != protoUDP {
		t.Errorf("%x", k.whole)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func flowIsAConn(c net.Conn) error {
	b := make([]byte, 3)
	if n, err := c.Read(b); n != 3 || err != nil || string(b) != "hel" {
		return fmt.Errorf("%d of a datagram, %v: %q", n, err, b)
	}
	c.SetDeadline(time.Now().Add(time.Millisecond))
	if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("after the deadline: %v", err)
	}
	if n, err := c.Write(make([]byte, largest)); n != largest || err != nil {
		return fmt.Errorf("what no packet has room for: %d, %v", n, err)
	}
	if n, err := c.Write(make([]byte, testMTU-27)); n != testMTU-27 || err != nil {
		return fmt.Errorf("what the device has no room for: %d, %v", n, err)
	}
	if c.LocalAddr().String() != "93.184.216.34:500" || c.RemoteAddr().String() != "198.18.0.1:1000" || c.SetWriteDeadline(time.Time{}) != nil {
		return fmt.Errorf("%v %v", c.LocalAddr(), c.RemoteAddr())
	}
	return nil
}

func TestAFlowThatIsClosedIsSilent(t *testing.T) {
	over := make(chan error, 3)
	p := newPond(t, func(c net.Conn) error {
		c.Close()
		_, err := c.Write([]byte("late"))
		over <- err
		_, err = c.Read(make([]byte, 9))
		over <- err
		_, err = c.(io.WriterTo).WriteTo(io.Discard)
		over <- err
		return nil
	})
	p.send(wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:500"), []byte("hello")))
	for range 3 {
		if err := <-over; !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	if answered(t, p.tool) != 0 {
		t.Error("something was sent")
	}
}

func TestQuestionsAreTheCapturesUnlessTheirServerIsGranted(t *testing.T) {
	p := newPond(t, repeat("server "))
	q := question(t, "denied.test.", 1, false)
	p.send(wrapUDP(at("198.18.0.1:1000"), at("93.184.216.34:53"), q))
	if _, _, data, ok := p.hear().datagram(); !ok || len(data) < 4 || data[2]&0x80 == 0 {
		t.Errorf("no answer: %x", data)
	}
	p.send(wrapUDP(at("198.18.0.1:1000"), at(nameServer+":53"), q))
	if _, _, data, ok := p.hear().datagram(); !ok || string(data) != "server "+string(q) {
		t.Errorf("not the server's: %x", data)
	}
}
