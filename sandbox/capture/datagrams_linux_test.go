package capture

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKernelGrantedDatagramsPassAndOthersAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.tell(order{Do: "await IPv6"})
		server, _ := serveUDP(t)
		w.gate.to["both.test:443"] = serve(t, echo)
		granted := []string{"time.test:123", "both.test:500", "10.1.2.3:500", "[2001:db8::1]:500", "9.9.9.10:53"}
		for _, at := range granted {
			w.gate.udp[at] = server
		}
		for _, at := range granted {
			if r := w.tell(order{Do: "datagram", Address: at}); r.Err != "" || r.Text != "hello" {
				t.Errorf("%s: %+v", at, r)
			}
		}
		for _, c := range []struct{ at, host string }{
			{"time.test:124", "time.test"}, {"both.test:443", "both.test"}, {"10.1.2.3:501", "10.1.2.3"}, {"10.1.2.4:500", "10.1.2.4"}, {"[2001:db8::1]:443", "2001:db8::1"},
			{"169.254.169.254:80", "169.254.169.254"},
		} {
			r := w.tell(order{Do: "datagram", Address: c.at})
			if r.Errno != unix.ECONNREFUSED {
				t.Errorf("%s: %+v", c.at, r)
			}
			port := map[string]uint16{"124": 124, "443": 443, "501": 501, "500": 500, "80": 80}[c.at[strings.LastIndex(c.at, ":")+1:]]
			w.gate.wantDenied("udp", c.host, port)
		}
		if r := w.tell(order{Do: "fetch", Network: "tcp", Address: "time.test:123"}); r.Errno != unix.ECONNREFUSED {
			t.Errorf("a connection where datagrams are granted: %+v", r)
		}
	})
}

func TestKernelDatagramsOfEverySizeThatTheDeviceHas(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.udp["198.51.100.1:500"], _ = serveUDP(t)
		for _, size := range []int{1, 1472, 9000, testMTU - 28} {
			if r := w.tell(order{Do: "datagram", Address: "198.51.100.1:500", Text: "x", Count: size - 1}); r.Err != "" || r.Count != size {
				t.Errorf("%d bytes: %d came back, %s", size, r.Count, r.Err)
			}
		}
	})
}

func TestKernelNobodyAtAGrantedPortIsToldToTheTool(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.udp["closed.test:500"] = "127.0.0.1:1"
		if r := w.tell(order{Do: "datagram", Address: "closed.test:500"}); r.Errno != unix.ECONNREFUSED {
			t.Errorf("%+v", r)
		}
	})
}

func TestKernelASpoofedSourceHasAFlowOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		server, senders := serveUDP(t)
		w.gate.udp["198.51.100.1:500"] = server
		r := w.tell(order{Do: "spoof", Address: "198.51.100.1:500", Text: "mine"})
		if r.Err != "" || r.Text != "mine mine " {
			t.Errorf("%+v", r)
		}
		// What was spoofed has been sent before, and may arrive a little later.
		for deadline := time.Now().Add(time.Minute); senders() != 2; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatalf("the server has seen %d senders", senders())
			}
		}
		if n := len(w.gate.dialled()); n != 2 {
			t.Errorf("%d flows", n)
		}
	})
}

func TestKernelThousandsOfFlowsTakeBoundedMemoryAndEndWithTheRun(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		const most = 48 << 20
		w := newWorld(t)
		w.gate.udp["*"] = "" // which leads nowhere, and stays open
		w.gate.to["198.51.100.2:80"] = serve(t, echo)
		before, goroutines := held(), runtime.NumGoroutine()
		if r := w.tell(order{Do: "pour", Address: "198.51.100.1", Count: 5000, Text: strings.Repeat("x", 1000)}); r.Err != "" {
			t.Errorf("%+v", r)
		}
		if after := held(); after > before+most {
			t.Errorf("%d MiB before and %d after", before>>20, after>>20)
		}
		if n := runtime.NumGoroutine(); n > goroutines+mostFlows+64 {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		if n := len(w.gate.dialled()); n != mostFlows {
			t.Errorf("%d flows were begun", n)
		}
		if r := w.tell(order{Do: "fetch", Network: "tcp", Address: "198.51.100.2:80", Text: "hello"}); r.Text != "hello" {
			t.Errorf("a connection beside them: %+v", r)
		}
		w.stop()
	})
}

func TestKernelFlowsLeaveNothingWhenTheRunEnds(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		server, _ := serveUDP(t)
		w := newWorld(t)
		w.end()
		gone := residue(t)
		for range 3 {
			w := newWorld(t)
			w.gate.udp["198.51.100.1:500"], w.gate.udp["198.51.100.2:500"] = server, ""
			for range 5 {
				if r := w.tell(order{Do: "keep", Address: "198.51.100.1:500"}); r.Err != "" {
					t.Errorf("%+v", r)
				}
			}
			w.end()
		}
		gone()
	})
}
