package capture

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// held is the memory that the harness has from its system, after what nobody
// needs any more has been given back.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}

func TestKernelLargeTransfersAreWholeAndTakeBoundedMemory(t *testing.T) {
	kerneltest.Long(t)
	inWorld(t, func(t *testing.T) {
		const size, most = 256 << 20, 48 << 20
		w := newWorld(t)
		w.gate.to["echo.test:80"] = serve(t, echo)
		before := held()
		r := w.tell(order{Do: "fetch", Network: "tcp", Address: "echo.test:80", Count: size})
		h := sha256.New()
		io.Copy(h, io.LimitReader(zeros{}, size))
		if r.Err != "" || r.Count != size || r.Text != hex.EncodeToString(h.Sum(nil)) {
			t.Errorf("%+v", r)
		}
		if after := held(); after > before+most {
			t.Errorf("%d MiB before and %d after", before>>20, after>>20)
		}
	})
}

func TestKernelHalfOfAConnectionCanEndFirst(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		w.gate.to["count.test:80"] = serve(t, func(c *net.TCPConn) {
			n, _ := io.Copy(io.Discard, c)
			io.WriteString(c, strings.Repeat("x", int(n)))
		})
		r := w.tell(order{Do: "fetch", Network: "tcp", Address: "count.test:80", Text: "hello"})
		if r.Err != "" || r.Text != "xxxxx" {
			t.Errorf("%+v", r)
		}
	})
}

func TestKernelTenThousandSYNsTakeBoundedMemory(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		const most = 48 << 20
		w := newWorld(t)
		w.gate.to["198.51.100.1:80"] = "" // allowed, and never answers
		w.gate.to["198.51.100.2:80"] = serve(t, echo)
		w.gate.to["allowed.test:80"] = w.gate.to["198.51.100.2:80"]
		before, goroutines := held(), runtime.NumGoroutine()
		// Those that are dialled for ever, those whose SYN is answered and who never
		// answer that, those that are refused.
		for _, a := range []string{"198.51.100.2", "198.51.100.1", "198.51.100.3"} {
			if r := w.tell(order{Do: "syns", Address: a, Count: 10000}); r.Err != "" {
				t.Errorf("%+v", r)
			}
		}
		if after := held(); after > before+most {
			t.Errorf("%d MiB before and %d after", before>>20, after>>20)
		}
		if n := runtime.NumGoroutine(); n > goroutines+4*mostAsking {
			t.Errorf("%d goroutines, %d before", n, goroutines)
		}
		if n := len(w.gate.denied); n > mostDenials {
			t.Errorf("%d denials were told of", n)
		}
		w.stop()
	})
}

func TestKernelConnectionsBeyondTheBoundAreRefused(t *testing.T) {
	kerneltest.Long(t)
	inWorld(t, func(t *testing.T) {
		w := newWorld(t)
		flood := make([]byte, 1<<20)
		w.gate.to["flood.test:80"] = serve(t, func(c *net.TCPConn) {
			context.AfterFunc(t.Context(), func() { c.Close() })
			for {
				if _, err := c.Write(flood); err != nil {
					return
				}
			}
		})
		before := held()
		r := w.tell(order{Do: "stall", Address: "flood.test:80", Count: mostConns + 100})
		if r.Count != mostConns || !strings.Contains(r.Text, "refused") {
			t.Errorf("%+v", r)
		}
		after := held()
		t.Logf("%d MiB with %d connections that are not read", (after-before)>>20, r.Count)
		if after > before+mostBuffers*4 {
			t.Errorf("%d MiB before and %d after", before>>20, after>>20)
		}
		w.stop()
	})
}

func TestKernelStopLeavesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		address := serve(t, echo)
		w := newWorld(t) // what is made once and for all, such as a poller
		w.end()
		gone := residue(t)
		for range 3 {
			w := newWorld(t)
			w.gate.to["allowed.test:80"] = address
			w.gate.to["198.51.100.1:80"] = ""
			w.gate.to["198.51.100.2:80"] = address
			w.tell(order{Do: "fetch", Network: "tcp", Address: "allowed.test:80", Text: "hello"})
			w.tell(order{Do: "stall", Address: "allowed.test:80", Count: 5})
			w.tell(order{Do: "syns", Address: "198.51.100.1", Count: 5})
			w.tell(order{Do: "syns", Address: "198.51.100.2", Count: 5})
			w.end()
		}
		gone()
	})
}
