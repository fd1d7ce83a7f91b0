package capture

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestKernelToolThatKnowsNoProxyReachesAnAllowedName(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.to["allowed.test:80"] = serve(t, echo)
		r := w.tell(order{Do: "fetch", Network: "tcp", Address: "allowed.test:80", Text: "hello"})
		if r.Err != "" || r.Text != "hello" {
			t.Errorf("%+v", r)
		}
		if got := w.gate.dialled(); len(got) != 1 || got[0] != "tcp allowed.test:80" {
			t.Errorf("the gate was asked for %q", got)
		}
		if len(w.gate.denied) != 0 {
			t.Errorf("noted: %+v", w.gate.denied)
		}
	})
}

func TestKernelDeniedTargetsAreRefusedAtOnce(t *testing.T) {
	kerneltest.Long(t)
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.tell(order{Do: "await IPv6"})
		w.gate.to["allowed.test:80"] = serve(t, echo)
		w.gate.to["closed.test:80"] = "127.0.0.1:1"
		for _, c := range []struct {
			name, network, address string
			errno                  unix.Errno
			says                   string
		}{
			{"a name that no rule allows does not exist", "tcp", "denied.test:80", 0, "no such host"},
			{"an allowed name's other port refuses", "tcp", "allowed.test:81", unix.ECONNREFUSED, ""},
			{"an address refuses", "tcp", "93.184.216.34:80", unix.ECONNREFUSED, ""},
			{"an address that stands for no name refuses", "tcp", "198.19.3.4:80", unix.ECONNREFUSED, ""},
			{"an IPv6 address refuses", "tcp", "[2606:2800:220:1::1]:443", unix.ECONNREFUSED, ""},
			{"an allowed name at which nobody listens refuses", "tcp", "closed.test:80", unix.ECONNREFUSED, ""},
		} {
			r := w.tell(order{Do: "fetch", Network: c.network, Address: c.address})
			if r.Err == "" || r.Errno != c.errno || !strings.Contains(r.Err, c.says) {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		w.gate.wantDenied("dns", "denied.test", 0)
		w.gate.wantDenied("tcp", "93.184.216.34", 80)
		w.gate.wantDenied("tcp", "198.19.3.4", 80)
		w.gate.wantDenied("tcp", "2606:2800:220:1::1", 443)
	})
}

func TestKernelAddressThatIsAllowedIsReached(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.tell(order{Do: "await IPv6"})
		w.gate.to["10.1.2.3:22"] = serve(t, echo)
		w.gate.to["[2001:db8::1]:22"] = w.gate.to["10.1.2.3:22"]
		for _, a := range []string{"10.1.2.3:22", "[2001:db8::1]:22"} {
			if r := w.tell(order{Do: "fetch", Network: "tcp", Address: a, Text: "hello"}); r.Err != "" || r.Text != "hello" {
				t.Errorf("%s: %+v", a, r)
			}
		}
	})
}

func TestKernelNamesResolveByAnyServerAndTransport(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.to["allowed.test:80"] = "127.0.0.1:1"
		for _, network := range []string{"udp", "tcp"} {
			r := w.tell(order{Do: "lookup", Network: network, Address: "Allowed.TEST"})
			if r.Err != "" || r.Text != "[198.18.0.2]" {
				t.Errorf("%s: %+v", network, r)
			}
			if r := w.tell(order{Do: "lookup", Network: network, Address: "secret.in.a.name.test"}); !strings.Contains(r.Err, "no such host") {
				t.Errorf("%s: %+v", network, r)
			}
		}
		w.gate.wantDenied("dns", "secret.in.a.name.test", 0)
		if got := w.gate.dialled(); len(got) != 0 {
			t.Errorf("a question went out: %q", got)
		}
	})
}

func TestKernelOnlyTCPAndQuestionsLeave(t *testing.T) {
	kerneltest.Long(t)
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.tell(order{Do: "await IPv6"})
		w.gate.to["allowed.test:443"] = serve(t, echo)
		w.tell(order{Do: "lookup", Network: "udp", Address: "allowed.test"})
		for _, a := range []string{"198.18.0.2:443", "93.184.216.34:443", "[2606:2800:220:1::1]:443"} {
			if r := w.tell(order{Do: "datagram", Address: a}); r.Errno != unix.ECONNREFUSED {
				t.Errorf("a datagram to %s: %+v", a, r)
			}
		}
		w.gate.wantDenied("udp", "allowed.test", 443)
		w.gate.wantDenied("udp", "93.184.216.34", 443)
		w.gate.wantDenied("udp", "2606:2800:220:1::1", 443)
		for _, c := range []struct {
			network, address string
			want             int // ICMP's type and code: destination unreachable, prohibited
		}{{"ip4", "93.184.216.34", 3<<8 | 13}, {"ip6", "2606:2800:220:1::1", 1<<8 | 1}} {
			if r := w.tell(order{Do: "ping", Network: c.network, Address: c.address}); r.Err != "" || r.Count != c.want {
				t.Errorf("an echo to %s: %+v", c.address, r)
			}
			w.gate.wantDenied("icmp", c.address, 0)
		}
	})
}
