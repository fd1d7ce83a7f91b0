package capture

import (
	"github.com/holdfast-dev/holdfast/internal/kerneltest"

	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// This file is the tool of the tests: a program in the namespace that does what
// it is told on its descriptor 3, one message each way at a time.

// An order is what the tool is to do, and a result what it saw.
type order struct {
	Do      string // a key of deeds
	Network string
	Address string
	Count   int
	Text    string
}

type result struct {
	Err   string
	Errno unix.Errno
	Text  string
	Count int
}

var deeds = map[string]func(order) (result, error){
	"lookup": lookup, "fetch": fetch, "datagram": datagram, "ping": ping, "syns": syns, "stall": stall, "pour": pour, "spoof": spoof, "keep": keep, "await IPv6": awaitIPv6,
}

func init() { kerneltest.Programs[insideArg] = insideMain }

func insideMain() {
	const wire = 3
	tun, err := makeDevice()
	if err != nil {
		reply3(wire, result{Err: err.Error()})
		return
	}
	raw, err := tun.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			err = unix.Sendmsg(wire, []byte("{}"), unix.UnixRights(int(fd)), nil, 0)
		})
	}
	tun.Close()
	buf := make([]byte, 1<<16)
	for err == nil {
		var n int
		if n, err = unix.Read(wire, buf); err != nil || n == 0 {
			return
		}
		var o order
		if err = json.Unmarshal(buf[:n], &o); err == nil {
			r, failed := deeds[o.Do](o)
			if failed != nil {
				r.Err = failed.Error()
				errors.As(failed, &r.Errno)
			}
			err = reply3(wire, r)
		}
	}
}

func reply3(wire int, r result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = unix.Write(wire, text)
	return err
}

// outside asks a server that is nowhere: whatever the device routes will do.
func outside(network string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, "9.9.9.9:53")
	}}
}

func lookup(o order) (result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	addrs, err := outside(o.Network).LookupNetIP(ctx, "ip", o.Address)
	return result{Text: fmt.Sprint(addrs)}, err
}

// fetch connects, sends Count bytes or Text, ends its half and reads to the end.
func fetch(o order) (result, error) {
	d := net.Dialer{Resolver: outside("udp"), Timeout: time.Minute}
	c, err := d.Dial(o.Network, o.Address)
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(c, io.MultiReader(strings.NewReader(o.Text), io.LimitReader(zeros{}, int64(o.Count))))
		sent <- errors.Join(err, c.(*net.TCPConn).CloseWrite())
	}()
	h, text := sha256.New(), &prefix{}
	n, err := io.Copy(io.MultiWriter(h, text), c)
	if err == nil {
		err = <-sent
	}
	if n > int64(len(text.b)) {
		return result{Count: int(n), Text: hex.EncodeToString(h.Sum(nil))}, err
	}
	return result{Count: int(n), Text: string(text.b)}, err
}

// datagram sends one of Text, or "hello", and Count bytes more to an address and
// waits for what comes back.
func datagram(o order) (result, error) {
	d := net.Dialer{Resolver: outside("udp"), Timeout: time.Minute}
	c, err := d.Dial("udp", o.Address)
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	if o.Text == "" {
		o.Text = "hello"
	}
	data := []byte(o.Text + strings.Repeat("x", o.Count))
	n, b, err := ask(c, func() error { _, err := c.Write(data); return err }, c.Read)
	return result{Text: string(b[:min(n, 256)]), Count: n}, err
}

// pour sends a datagram to each of Count ports of an address, from a port of its own
// each, and one of Text to each of as many more from one.
func pour(o order) (result, error) {
	one, err := net.ListenUDP("udp4", nil)
	if err != nil {
		return result{}, err
	}
	defer one.Close()
	to := netip.MustParseAddr(o.Address)
	for i := range o.Count {
		at := netip.AddrPortFrom(to, uint16(1024+i))
		if _, err := one.WriteToUDPAddrPort([]byte(o.Text), at); err != nil && !errors.Is(err, unix.ECONNREFUSED) {
			return result{}, err
		}
		c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 1024)))
		if err != nil {
			return result{}, err
		}
		c.Write([]byte(o.Text))
		c.Close()
	}
	return result{Count: o.Count}, nil
}

// spoof sends Text from a socket, and "spoofed" from its port with another source's
// address, and returns what the socket hears until Text has come back twice.
func spoof(o order) (result, error) {
	to := netip.MustParseAddrPort(o.Address)
	c, err := net.DialUDP("udp4", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return result{}, err
	}
	defer unix.Close(s)
	from := netip.AddrPortFrom(netip.MustParseAddr("198.18.77.77"), c.LocalAddr().(*net.UDPAddr).AddrPort().Port())
	p := wrapUDP(from, to, []byte("spoofed"))
	heard := ""
	for range 2 {
		if err := unix.Sendto(s, p, 0, &unix.SockaddrInet4{Addr: to.Addr().As4()}); err != nil {
			return result{}, err
		}
		n, b, err := ask(c, func() error { _, err := c.Write([]byte(o.Text)); return err }, c.Read)
		if err != nil {
			return result{}, err
		}
		heard += string(b[:n]) + " "
	}
	return result{Text: heard}, nil
}

var kept []net.Conn

// keep has a flow that stays open.
func keep(o order) (result, error) {
	c, err := net.Dial("udp", o.Address)
	if err == nil {
		kept = append(kept, c)
		_, _, err = ask(c, func() error { _, err := c.Write([]byte("hello")); return err }, c.Read)
	}
	return result{}, err
}

// ask sends, as clients of datagrams do, until something comes back.
func ask(c interface{ SetReadDeadline(time.Time) error }, send func() error, read func([]byte) (int, error)) (int, []byte, error) {
	b := make([]byte, 1<<16)
	var n int
	var err error
	for range 300 {
		if err = send(); err != nil {
			break
		}
		if err = c.SetReadDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
			break
		}
		if n, err = read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	return n, b, err
}

// ping sends an echo and returns the type and code of the first ICMP message that
// comes.
func ping(o order) (result, error) {
	kind, echo := "ip4:icmp", []byte{8, 0, 0xf7, 0xfe, 0, 1, 0, 0}
	if o.Network == "ip6" {
		kind, echo = "ip6:ipv6-icmp", []byte{128, 0, 0, 0, 0, 1, 0, 0}
	}
	to, err := net.ResolveIPAddr("ip", o.Address)
	if err != nil {
		return result{}, err
	}
	c, err := net.ListenPacket(kind, "")
	if err != nil {
		return result{}, err
	}
	defer c.Close()
	send := func() error { _, err := c.WriteTo(echo, to); return err }
	_, b, err := ask(c, send, func(b []byte) (int, error) { n, _, err := c.ReadFrom(b); return n, err })
	return result{Count: int(b[0])<<8 | int(b[1])}, err
}

// syns sends SYNs from Count made-up ports and answers nothing that comes back:
// what comes is for no socket, and the kernel's own resets are not let out.
func syns(o order) (result, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return result{}, err
	}
	defer unix.Close(s)
	to := net.ParseIP(o.Address).To4()
	for i := range o.Count {
		p := wrapSYN([4]byte(to), [4]byte{198, 18, byte(1 + i>>14), 7}, uint16(1024+i&0x3fff))
		if err := unix.Sendto(s, p, 0, &unix.SockaddrInet4{Addr: [4]byte(to)}); err != nil {
			return result{}, err
		}
	}
	return result{Count: o.Count}, nil
}

var stalled []net.Conn

// stall opens Count connections and reads nothing.
func stall(o order) (result, error) {
	d := net.Dialer{Resolver: outside("udp"), Timeout: time.Minute}
	opened := 0
	var last error
	for range o.Count {
		c, err := d.Dial("tcp", o.Address)
		if err != nil {
			last = err
			continue
		}
		opened++
		stalled = append(stalled, c)
	}
	r := result{Count: opened}
	if last != nil {
		r.Text = last.Error()
	}
	return r, nil
}

// wrapSYN returns a packet that asks for a connection to port 80.
func wrapSYN(to, from [4]byte, port uint16) []byte {
	t := []byte{byte(port >> 8), byte(port), 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 5 << 4, 2, 0xff, 0xff, 0, 0, 0, 0}
	src, dst := netip.AddrFrom4(from), netip.AddrFrom4(to)
	sum := checksum(pseudo(src, dst, protoTCP, len(t)), t)
	t[16], t[17] = byte(sum>>8), byte(sum)
	return wrap(src, dst, protoTCP, t)
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// prefix keeps what is written first.
type prefix struct{ b []byte }

func (p *prefix) Write(b []byte) (int, error) {
	p.b = append(p.b, b[:min(len(b), 256-len(p.b))]...)
	return len(b), nil
}
