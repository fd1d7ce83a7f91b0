package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy/hostrules"
)

// dialSOCKS sends a client's side of a handshake and returns what came back.
func (w *world) dialSOCKS(sent string) (net.Conn, []byte) {
	w.t.Helper()
	c, err := net.Dial("tcp", w.socks)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(c, sent)
	got := make([]byte, 0, 32)
	for len(got) < 12 {
		b := make([]byte, 12-len(got))
		n, err := c.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			break
		}
	}
	return c, got
}

func named(host string, port uint16) string {
	return "\x05\x01\x00\x05\x01\x00\x03" + string(byte(len(host))) + host + string([]byte{byte(port >> 8), byte(port)})
}

// TestAClientThatLeavesIsDialledForNoLonger: its place is another's then.
func TestAClientThatLeavesIsDialledForNoLonger(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.put("example.com", 7, "")
	begun, ended := make(chan bool, 1), make(chan error, 1)
	w.g.cfg.Dial = func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		begun <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	for way, sent := range map[string]string{w.socks: named("example.com", 7), w.http: "CONNECT example.com:7 HTTP/1.1\r\nHost: example.com:7\r\n\r\n"} {
		c, err := net.Dial("tcp", way)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, sent)
		<-begun
		c.Close()
		if err := <-ended; err != context.Canceled {
			t.Errorf("%q: %v", sent, err)
		}
	}
}

func TestANameHasSomeAddressesThatAreDialled(t *testing.T) {
	w := newWorld(t, Config{}, "example.com")
	w.names["example.com"] = append(slices.Repeat([]netip.Addr{netip.MustParseAddr("10.0.0.1")}, 1000), slices.Repeat([]netip.Addr{public}, 1000)...)
	if status, text := w.ask("GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n"); status != 502 || w.dials() != maxDials {
		t.Errorf("%d %q, %d dials", status, text, w.dials())
	}
}

func TestSOCKSReplies(t *testing.T) {
	w := newWorld(t, Config{}, "good.com", "*.good.com", "93.184.216.34", "nowhere.example", "10.0.0.1", "[2606:2800::1]:7")
	w.echo("good.com", 7)
	w.mu.Lock()
	w.places[addrPort("[2606:2800::1]:7")] = w.places[addrPort("93.184.216.34:7")]
	w.mu.Unlock()
	hello := "\x05\x01\x00"
	for what, c := range map[string]struct {
		sent string
		want byte
	}{
		"a name":                    {named("good.com", 7), replyDone},
		"a name in capitals":        {named("GOOD.com.", 7), replyDone},
		"an IPv4 address":           {hello + "\x05\x01\x00\x01\x5d\xb8\xd8\x22\x00\x07", replyDone},
		"an address in letters":     {named("93.184.216.34", 7), replyDone},
		"a mapped address":          {hello + "\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x5d\xb8\xd8\x22\x00\x07", replyDone},
		"an IPv6 address":           {hello + "\x05\x01\x00\x04\x26\x06\x28\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x07", replyDone},
		"a denied name":             {named("evil.com", 7), replyRefused},
		"a NUL":                     {named("attacker.com\x00.good.com", 7), replyRefused},
		"a percent sign":            {named("attacker.com%00.good.com", 7), replyRefused},
		"a space":                   {named("attacker.com .good.com", 7), replyRefused},
		"a line":                    {named("attacker.com\n.good.com", 7), replyRefused},
		"a short address":           {named("127.1", 7), replyRefused},
		"a number":                  {named("2130706433", 7), replyRefused},
		"an empty name":             {named("", 7), replyRefused},
		"a port in the name":        {named("good.com:7", 7), replyRefused},
		"loopback":                  {hello + "\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x07", replyRefused},
		"mapped loopback":           {hello + "\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01\x00\x07", replyRefused},
		"metadata":                  {hello + "\x05\x01\x00\x01\xa9\xfe\xa9\xfe\x00\x50", replyRefused},
		"port 0":                    {named("good.com", 0), replyRefused},
		"a name without an address": {named("nowhere.example", 7), replyNoHost},
		"BIND":                      {hello + "\x05\x02\x00\x01\x5d\xb8\xd8\x22\x00\x07", replyNoCommand},
		"UDP":                       {hello + "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", replyNoCommand},
		"UDP ASSOCIATE":             {hello + "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", replyNoCommand},
		"no command":                {hello + "\x05\x09\x00\x01\x5d\xb8\xd8\x22\x00\x07", replyNoCommand},
		"no kind of address":        {hello + "\x05\x01\x00\x02\x5d\xb8\xd8\x22\x00\x07", replyNoAddress},
		"another version":           {hello + "\x04\x01\x00\x01\x5d\xb8\xd8\x22\x00\x07", replyFailed},
	} {
		conn, got := w.dialSOCKS(c.sent)
		if len(got) != 12 || got[1] != 0 || got[3] != c.want {
			t.Errorf("%s: %x, want %d", what, got, c.want)
		}
		if c.want == replyDone {
			io.WriteString(conn, "ping\n")
			if b := make([]byte, 5); true {
				if _, err := io.ReadFull(conn, b); err != nil || string(b) != "ping\n" {
					t.Errorf("%s: %q %v", what, b, err)
				}
			}
		}
		conn.Close()
	}
	for _, name := range w.looked {
		if name != "good.com" && name != "nowhere.example" {
			t.Errorf("%q was looked up", name)
		}
	}
}

func TestSOCKSWantsItsPassword(t *testing.T) {
	w := newWorld(t, Config{Key: "k3y"}, "good.com")
	w.echo("good.com", 7)
	request := named("good.com", 7)[3:]
	for what, c := range map[string]struct {
		sent string
		want []byte
	}{
		"no password":      {"\x05\x01\x00" + request, []byte{5, 0xff}},
		"no methods":       {"\x05\x00" + request, []byte{5, 0xff}},
		"a wrong password": {"\x05\x01\x02\x01\x01u\x03bad" + request, []byte{5, 2, 1, 1}},
		"an empty one":     {"\x05\x01\x02\x01\x01u\x00" + request, []byte{5, 2, 1, 1}},
		"the password":     {"\x05\x02\x00\x02\x01\x01u\x03k3y" + request, []byte{5, 2, 1, 0, 5, 0, 0, 1}},
	} {
		if _, got := w.dialSOCKS(c.sent); !bytes.HasPrefix(got, c.want) || len(c.want) <= 4 && len(got) != len(c.want) {
			t.Errorf("%s: %x, want %x", what, got, c.want)
		}
	}
}

func TestOtherServerNameThanSOCKSsIsRefused(t *testing.T) {
	w := newWorld(t, Config{}, "good.com")
	w.echo("good.com", 443)
	conn, _ := w.dialSOCKS(named("good.com", 443))
	conn.Write(clientHello(t, "evil.example"))
	if b, err := io.ReadAll(conn); len(b) > 0 {
		t.Errorf("%d bytes passed, %v", len(b), err)
	}
	conn, _ = w.dialSOCKS(named("good.com", 443))
	hello := clientHello(t, "good.com")
	conn.Write(hello)
	if _, err := io.ReadFull(conn, make([]byte, len(hello))); err != nil {
		t.Error(err)
	}
}

// FuzzSOCKS gives a handshake any bytes: it must not panic, nor allow what the
// canonical form of a host does not have.
func FuzzSOCKS(f *testing.F) {
	for _, s := range []string{named("good.com", 7), named("a\x00.good.com", 7), "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x07", "\x05\x02\x00\x02\x01\x01u\x03k3y\x05\x01\x00\x04"} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, b []byte, keyed bool) {
		g := &Proxy{}
		if keyed {
			g.cfg.Key = "k3y"
		}
		var out bytes.Buffer
		target, _, err := g.handshake(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), &out})
		if err != nil {
			var e *socksError
			if !errors.As(err, &e) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatal(err)
			}
			return
		}
		if again, err := hostrules.ParseHost(target.Host.String()); err != nil || again != target.Host || target.Port == 0 {
			t.Fatalf("%+v, %v", target, err)
		}
		if keyed && !bytes.Contains(b, []byte("k3y")) {
			t.Fatal("let in without the password")
		}
	})
}
