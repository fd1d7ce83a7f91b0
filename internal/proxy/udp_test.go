package proxy

import (
	"net"
	"strings"
	"testing"
	"time"
)

func TestDatagramsPassBothWaysAndAreOneEvent(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"*.example.com:123"}}, nil)
	f.put("time.example.com", "93.184.216.34")
	server := f.serve("93.184.216.34:123")
	m, over := f.flow("time.example.com", 123)
	large := strings.Repeat("x", 60000)
	for _, text := range []string{"hello", "", large} {
		m.say(t, text)
		got, from := hear(t, server)
		if got != text {
			t.Fatalf("%d bytes arrived of %d", len(got), len(text))
		}
		server.WriteToUDPAddrPort([]byte("re:"+text), from)
		if got := m.hear(t); got != "re:"+text {
			t.Fatalf("%d bytes came back of %d", len(got), len(text))
		}
		server.WriteToUDPAddrPort(nil, from)
		if got := m.hear(t); got != "" {
			t.Fatalf("%d bytes came back of none", len(got))
		}
	}
	m.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
	events := f.ended()
	if len(events) != 1 {
		t.Fatalf("%+v", events)
	}
	e := events[0]
	if e.Protocol != "udp" || e.Host != "time.example.com" || e.Port != 123 || e.Address != "93.184.216.34:123" || !e.Allowed || e.Rule != "*.example.com:123" || e.Err != "" ||
		e.Sent != 60005 || e.Received != 60014 || e.Duration <= 0 || e.Time.IsZero() {
		t.Errorf("%+v", e)
	}
	if s := f.g.Summary(); s.Sent != 60005 || s.Received != 60014 || s.Allowed != 1 {
		t.Errorf("%+v", s)
	}
	if f.asked != 0 {
		t.Error("Decide was asked")
	}
}

func TestDatagramsThatNoEntryGrantsGoNowhere(t *testing.T) {
	f := newMeadow(t, grants{
		udp:     []string{"time.example.com:123", "*.games.example:27000-27100", "half.example:1-440", "10.0.0.0/8:123", "api.vault.example:8443", "0.0.0.0/0:9"},
		hosts:   []string{"tcp.example", "time.example.com"},
		deny:    []string{"bad.games.example", "half.example:400"},
		guarded: []string{"api.vault.example:443", "*.judged.example:443", "192.0.2.0/24:443"},
	}, nil)
	f.put("a.games.example", "192.168.1.1")
	f.put("b.games.example", "169.254.169.254")
	f.put("c.games.example", "198.41.0.4")
	f.put("d.games.example", "224.0.0.251")
	f.put("e.games.example", "10.1.2.3")
	f.put("f.games.example", "::1", "127.0.0.1", "::ffff:10.9.9.9")
	for _, tt := range []struct {
		says, host string
		port       uint16
		why        string
		looked     bool
	}{
		{"a host that connections may be made to", "tcp.example", 123, "no entry for datagrams", false},
		{"another port", "time.example.com", 443, "no entry for datagrams", false},
		{"port 0", "time.example.com", 0, "no port 0", false},
		{"a host that is denied", "bad.games.example", 27000, "deny-list", false},
		{"a port that is denied", "half.example", 400, "deny-list", false},
		{"an address that nothing names", "192.168.1.1", 123, "is private", false},
		{"the metadata service", "169.254.169.254", 9, "metadata", false},
		{"a guarded host", "api.vault.example", 443, "no entry for datagrams", false},
		{"a name with a private address", "a.games.example", 27000, "is private", true},
		{"a name with the metadata service's address", "b.games.example", 27000, "metadata", true},
		{"a name with the host's own address", "c.games.example", 27000, "of the host itself", true},
		{"a name with a group's address", "d.games.example", 27000, "not one host's", true},
		{"a name with an address that is granted at another port", "e.games.example", 27000, "is private", true},
		{"a name with every form of a private address", "f.games.example", 27000, "only an entry", true},
		{"a group", "224.0.0.251", 9, "multicast", false},
	} {
		f.mu.Lock()
		f.looked = nil
		f.mu.Unlock()
		_, over := f.flow(tt.host, tt.port)
		err := <-over
		if r := refusalOf(err); r == nil || !strings.Contains(r.Why, tt.why) {
			t.Errorf("%s: %v", tt.says, err)
		}
		f.mu.Lock()
		if looked := len(f.looked) > 0; looked != tt.looked {
			t.Errorf("%s: looked up %q", tt.says, f.looked)
		}
		f.mu.Unlock()
	}
	f.mu.Lock()
	if len(f.sent) > 0 || f.asked > 0 {
		t.Errorf("sockets for %v; Decide was asked %d times", f.sent, f.asked)
	}
	f.mu.Unlock()
	for _, e := range f.ended() {
		if e.Allowed || e.Reason == "" || e.Sent+e.Received > 0 || e.Protocol != "udp" {
			t.Errorf("%+v", e)
		}
	}
}

func TestEveryFlowIsJudgedByWhatItsNameIsThen(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"time.example.com:123"}}, nil)
	f.put("time.example.com", "93.184.216.34")
	server := f.serve("93.184.216.34:123")
	f.serve("10.0.0.1:123")
	m, over := f.flow("time.example.com", 123)
	m.say(t, "one")
	_, from := hear(t, server)
	f.put("time.example.com", "10.0.0.1")
	m.say(t, "two") // goes where the first has gone
	if got, again := hear(t, server); got != "two" || again != from {
		t.Error(got, again, from)
	}
	m.Close()
	<-over
	_, over = f.flow("time.example.com", 123)
	if r := refusalOf(<-over); r == nil || !strings.Contains(r.Why, "is private") {
		t.Error(r)
	}
	if len(f.looked) != 2 || len(f.sent) != 1 {
		t.Errorf("looked up %q, sent to %v", f.looked, f.sent)
	}
}

func TestOnlyThePeerIsHeard(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server, stranger := f.serve("93.184.216.34:123"), socket(t)
	m, _ := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	_, from := hear(t, server)
	stranger.WriteToUDPAddrPort([]byte("evil"), from)
	server.WriteToUDPAddrPort([]byte("good"), from)
	if got := m.hear(t); got != "good" {
		t.Errorf("heard %q", got)
	}
}

func TestAClientIsToldThatNobodyIsAtThePortAndGoesOn(t *testing.T) {
	f := newMeadow(t, grants{udp: []string{"93.184.216.34:123"}}, nil)
	server := f.serve("93.184.216.34:123")
	at := server.LocalAddr().(*net.UDPAddr)
	server.Close()
	m, over := f.flow("93.184.216.34", 123)
	m.say(t, "hello")
	select {
	case <-m.told:
	case err := <-over:
		t.Fatalf("the flow is over: %v", err)
	}
	server, err := net.ListenUDP("udp4", at)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.SetDeadline(time.Now().Add(time.Minute))
	m.say(t, "again")
	if got, _ := hear(t, server); got != "again" {
		t.Error(got)
	}
	m.Close()
	if err := <-over; err != nil {
		t.Error(err)
	}
}
