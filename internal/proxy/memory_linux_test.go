package proxy

import (
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// idle opens n tunnels through which a byte has gone each way, and returns what
// one costs in bytes and in goroutines.
func (w *world) idle(n int) (bytes, routines float64, close func()) {
	w.echo("good.com", 9)
	conns := make([]net.Conn, 0, n)
	memory, goroutines := heap(), runtime.NumGoroutine()
	buf := make([]byte, 256)
	for range n {
		c, err := net.Dial("tcp", w.http)
		if err != nil {
			w.t.Fatal(err)
		}
		conns = append(conns, c)
		io.WriteString(c, "CONNECT good.com:9 HTTP/1.1\r\n\r\n")
		if n, err := c.Read(buf); err != nil || !strings.HasSuffix(string(buf[:n]), "\r\n\r\n") {
			w.t.Fatal(string(buf[:n]), err)
		}
		c.Write([]byte{0})
		if _, err := c.Read(buf); err != nil {
			w.t.Fatal(err)
		}
	}
	bytes, routines = float64(heap()-memory)/float64(n), float64(runtime.NumGoroutine()-goroutines)/float64(n)
	return bytes, routines, func() {
		for _, c := range conns {
			c.Close()
		}
	}
}

// descriptors is n, or as many tunnels as the limit on descriptors has room for:
// one takes six in a process that has both its ends too.
func descriptors(t testing.TB, n int) int {
	t.Helper()
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	return int(min(uint64(n), l.Cur/8))
}

// TestIdleConnectionsCostLittle counts the memory of the test's own ends too.
func TestIdleConnectionsCostLittle(t *testing.T) {
	kerneltest.Long(t)
	n := descriptors(t, 2000)
	w := newWorld(t, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: n}}}, "good.com")
	bytes, routines, done := w.idle(n)
	defer done()
	t.Logf("%.0f bytes, %.2f goroutines for an idle tunnel", bytes, routines)
	if bytes > 40<<10 {
		t.Errorf("an idle tunnel costs %.0f bytes", bytes)
	}
	if routines > 3.1 { // two here, one in the echo
		t.Errorf("an idle tunnel costs %.2f goroutines", routines)
	}
	if code, _ := w.ask("GET http://good.com/ HTTP/1.1\r\nHost: good.com\r\n\r\n"); code != 503 {
		t.Errorf("one more: %d", code)
	}
}

// BenchmarkIdle is ten thousand idle tunnels.
func BenchmarkIdle(b *testing.B) {
	n := descriptors(b, 10000)
	for b.Loop() {
		w := newWorld(b, Config{Network: policy.Network{Limits: policy.NetworkLimits{Connections: n}, Observe: func(policy.Connection) {}}}, "good.com")
		bytes, routines, done := w.idle(n)
		b.ReportMetric(bytes, "B/tunnel")
		b.ReportMetric(routines, "goroutines/tunnel")
		b.ReportMetric(float64(n), "tunnels")
		done()
		w.g.Close()
	}
}
