package capture

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// testNet is the device's address and network in tests.
var testNet = netip.MustParsePrefix("198.18.0.1/15")

func TestAddressStandsForOneNameAndNothingElse(t *testing.T) {
	n := newNames(testNet, 10)
	a, ok := n.address("a.test")
	b, ok2 := n.address("b.test")
	again, ok3 := n.address("a.test")
	if !ok || !ok2 || !ok3 || a == b || a != again || a == testNet.Addr() || !testNet.Contains(a) || !testNet.Contains(b) {
		t.Errorf("%v %v %v", a, b, again)
	}
	for address, want := range map[netip.Addr]string{
		a: "a.test", b: "b.test",
		netip.MustParseAddr("93.184.216.34"): "93.184.216.34",
		netip.MustParseAddr("2001:db8::1"):   "2001:db8::1",
		netip.MustParseAddr("198.20.0.0"):    "198.20.0.0",
	} {
		if host, ok := n.host(address); !ok || host != want {
			t.Errorf("%v stands for %q", address, host)
		}
	}
	for _, nobody := range []string{"198.18.0.0", "198.18.0.1", "198.18.0.4", "198.19.255.255"} {
		if host, ok := n.host(netip.MustParseAddr(nobody)); ok {
			t.Errorf("%s stands for %q", nobody, host)
		}
	}
}

func TestTableIsFullBeforeItsNetworkIs(t *testing.T) {
	for _, c := range []struct {
		device string
		most   int
		want   int
	}{
		{"198.18.0.1/15", 7, 7},
		{"198.18.0.1/30", 7, 1}, // without the network's, the device's and the broadcast address
		{"198.18.0.2/30", 7, 1},
		{"198.18.0.5/29", 7, 5},
	} {
		n := newNames(netip.MustParsePrefix(c.device), c.most)
		got := map[netip.Addr]bool{}
		for i := range 20 {
			if a, ok := n.address(fmt.Sprintf("n%d", i)); ok {
				got[a] = true
			}
		}
		device := netip.MustParsePrefix(c.device)
		if len(got) != c.want || got[device.Addr()] || got[device.Masked().Addr()] {
			t.Errorf("%s, at most %d: %v", c.device, c.most, got)
		}
	}
}

func TestDenialsAreToldOnceAndToAnEnd(t *testing.T) {
	var told []string
	d := newDenials(func(protocol, host string, port uint16, why string) {
		told = append(told, fmt.Sprint(protocol, " ", host, " ", port, " ", why))
	}, 3)
	for i := range 10 {
		for range 2 {
			d.note(denial{"tcp", fmt.Sprint("h", i), 1, "no"})
		}
	}
	want := "[tcp h0 1 no tcp h1 1 no tcp h2 1 no; more that was refused after this is not listed]"
	if got := fmt.Sprint(told); got != want || len(d.told) != 3 {
		t.Errorf("%s, %d kept", got, len(d.told))
	}
}

func TestDeadlineCanBeMoved(t *testing.T) {
	var d deadline
	if isClosed(d.wait()) {
		t.Error("no deadline has passed")
	}
	d.set(time.Now().Add(time.Hour))
	waiting := d.wait()
	d.set(time.Unix(1, 0))
	if !isClosed(waiting) || !isClosed(d.wait()) {
		t.Error("who waits is not told that a deadline was moved into the past")
	}
	d.set(time.Time{})
	if isClosed(d.wait()) {
		t.Error("a deadline that was taken away has passed")
	}
	d.set(time.Now().Add(time.Millisecond))
	<-d.wait()
	d.set(time.Now().Add(time.Hour))
	if isClosed(d.wait()) {
		t.Error("a deadline that was moved into the future has passed")
	}
}
