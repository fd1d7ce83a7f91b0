package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A trafficMeter counts the bytes of a proxy, and holds them to its limits.
type trafficMeter struct {
	max            int64        // 0: no limit
	taken          atomic.Int64 // with a limit: those that have passed, and those that may
	sent, received atomic.Int64
	rate           *rateLimiter // nil: no limit
}

// take reserves room for up to n bytes. None left is 0.
func (m *trafficMeter) take(n int64) int64 {
	if m.max == 0 {
		return n
	}
	for {
		taken := m.taken.Load()
		n = min(n, m.max-taken)
		if n <= 0 || m.taken.CompareAndSwap(taken, taken+n) {
			return max(n, 0)
		}
	}
}

// exhausted reports whether there is room for nothing more.
func (m *trafficMeter) exhausted() bool { return m.max != 0 && m.taken.Load() >= m.max }

// reached reports whether as much has passed as may. What others have taken and not used yet has not.
func (m *trafficMeter) reached() bool { return m.max != 0 && m.sent.Load()+m.received.Load() >= m.max }

// share is the most that one connection may reserve at once: it leaves as much for others.
func (m *trafficMeter) share(most int64) int64 {
	if m.max != 0 {
		most = min(most, (m.max-m.taken.Load())/2)
	}
	return most
}

// waitRate waits until n bytes may pass under the rate, all connections of the proxy in one queue, so that opening more connections gains nothing. It
// ends with ctx.
func (m *trafficMeter) waitRate(ctx context.Context, n int64) error {
	if m.rate == nil || n <= 0 {
		return nil
	}
	if d := m.rate.reserve(m.rate.now(), n); d > 0 {
		return m.rate.wait(ctx, d)
	}
	return nil
}

// reserve waits until bytes, most of them at most, may pass, and returns how many.
func (m *trafficMeter) reserve(ctx context.Context, most int64) (int64, error) {
	n := m.take(m.chunk(most))
	if n == 0 {
		return 0, errBytes
	}
	if err := m.waitRate(ctx, n); err != nil {
		m.taken.Add(-n)
		return 0, err
	}
	return n, nil
}

// settle counts in total the bytes that have passed of those that were reserved.
func (m *trafficMeter) settle(reserved, n int64, total *atomic.Int64) {
	m.taken.Add(n - reserved)
	if m.rate != nil && n < reserved {
		m.rate.refund(reserved - n)
	}
	total.Add(n)
}

// A rateLimiter spreads bytes over time, with a tenth of a second's worth at once.
type rateLimiter struct {
	mu   sync.Mutex
	rate int64     // bytes per second
	free time.Time // when all that has passed is paid for

	now  func() time.Time // time.Now and sleep, but for a test's own clock
	wait func(ctx context.Context, d time.Duration) error
}

func newRateLimiter(rate int64) *rateLimiter {
	return &rateLimiter{rate: rate, now: time.Now, wait: sleep}
}

// sleep waits for d, unless something ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve takes n bytes on at a moment and returns how long they have to wait.
func (p *rateLimiter) reserve(now time.Time, n int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(p.duration(n))
	return p.free.Sub(now) - time.Second/10
}

func (p *rateLimiter) refund(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = p.free.Add(-p.duration(n))
}

// duration is how long n bytes take.
func (p *rateLimiter) duration(n int64) time.Duration {
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}

// chunk is how many bytes may pass between two looks at the limits.
func (m *trafficMeter) chunk(most int64) int64 {
	if m.rate != nil {
		most = min(most, max(m.rate.rate/10, 512))
	}
	return most
}
