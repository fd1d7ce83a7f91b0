package proxy

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A meter counts the bytes of a gateway, and holds them to its limits.
type meter struct {
	most           int64 // 0: no limit
	taken          atomic.Int64
	sent, received atomic.Int64
	pace           *pace // nil: no limit
}

// take reserves room for up to n bytes. None left is 0.
func (m *meter) take(n int64) int64 {
	if m.most == 0 {
		return n
	}
	for {
		taken := m.taken.Load()
		n = min(n, m.most-taken)
		if n <= 0 || m.taken.CompareAndSwap(taken, taken+n) {
			return max(n, 0)
		}
	}
}

// back returns what was reserved and not used.
func (m *meter) back(n int64) {
	if m.most != 0 && n > 0 {
		m.taken.Add(-n)
	}
}

// full reports whether there is room for nothing more.
func (m *meter) full() bool { return m.most != 0 && m.taken.Load() >= m.most }

// reached reports whether as much has passed as may. What others have taken and not used
// yet has not.
func (m *meter) reached() bool { return m.most != 0 && m.sent.Load()+m.received.Load() >= m.most }

// share is what may be taken for some time: it leaves as much again for others.
func (m *meter) share(most int64) int64 {
	if m.most != 0 {
		most = min(most, (m.most-m.taken.Load())/2)
	}
	return most
}

// turn waits until n bytes may pass under the rate, all connections of the gateway
// in one row: whoever comes later waits for those before it, so that opening more
// connections gains nothing. It ends with ctx.
func (m *meter) turn(ctx context.Context, n int64) error {
	if m.pace == nil || n <= 0 {
		return nil
	}
	if d := m.pace.after(m.pace.now(), n); d > 0 {
		return m.pace.wait(ctx, d)
	}
	return nil
}

// unturn gives back what turn has waited for and what did not pass then.
func (m *meter) unturn(n int64) {
	if m.pace != nil && n > 0 {
		m.pace.back(n)
	}
}

// reserve waits until bytes, most of them at most, may pass, and returns how many.
func (m *meter) reserve(ctx context.Context, most int64) (int64, error) {
	n := m.take(m.chunk(most))
	if n == 0 {
		return 0, errBytes
	}
	if err := m.turn(ctx, n); err != nil {
		m.back(n)
		return 0, err
	}
	return n, nil
}

// settle counts in total the bytes that have passed of those that were reserved.
func (m *meter) settle(reserved, n int64, total *atomic.Int64) {
	m.back(reserved - n)
	m.unturn(reserved - n)
	total.Add(n)
}

// A pace spreads bytes over time, with a tenth of a second's worth at once.
type pace struct {
	mu   sync.Mutex
	rate int64     // bytes per second
	free time.Time // when all that has passed is paid for

	now  func() time.Time // time.Now and sleep, but for a test's own clock
	wait func(ctx context.Context, d time.Duration) error
}

func newPace(rate int64) *pace { return &pace{rate: rate, now: time.Now, wait: sleep} }

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

// after takes n bytes on at a moment and returns how long they have to wait.
func (p *pace) after(now time.Time, n int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(p.worth(n))
	return p.free.Sub(now) - time.Second/10
}

func (p *pace) back(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = p.free.Add(-p.worth(n))
}

// worth is how long n bytes take.
func (p *pace) worth(n int64) time.Duration {
	return time.Duration(float64(n) / float64(p.rate) * float64(time.Second))
}

// chunk is how many bytes may pass between two looks at the limits.
func (m *meter) chunk(most int64) int64 {
	if m.pace != nil {
		most = min(most, max(m.pace.rate/10, 512))
	}
	return most
}
