package egress

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

const (
	presetConnections = 1024
	presetNames       = 512
)

// errBytes ends what is under way when Limits.Bytes have passed.
var errBytes = errors.New("the policy's limit on bytes is reached")

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

// full reports whether nothing more may pass.
func (m *meter) full() bool { return m.most != 0 && m.taken.Load() >= m.most }

// passed waits until n bytes that have passed fit into the rate.
func (m *meter) passed(ctx context.Context, n int64) error {
	if m.pace == nil {
		return nil
	}
	d := m.pace.after(time.Now(), n)
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A pace spreads bytes over time, with a tenth of a second's worth at once.
type pace struct {
	mu   sync.Mutex
	rate int64     // bytes per second
	free time.Time // when all that has passed is paid for
}

// after returns how long to wait after n bytes that have passed at a moment.
func (p *pace) after(now time.Time, n int64) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) / float64(p.rate) * float64(time.Second)))
	return p.free.Sub(now) - time.Second/10
}

// chunk is how many bytes may pass between two looks at the limits.
func (m *meter) chunk(most int64) int64 {
	if m.pace != nil {
		most = min(most, max(m.pace.rate/10, 512))
	}
	return most
}

// names are the distinct names that were asked for below each wildcard.
type names struct {
	mu   sync.Mutex
	most int
	seen map[string]map[string]struct{} // by entry
}

// admit counts a name below an entry, and reports whether there is room for it.
func (s *names) admit(entry, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := s.seen[entry]
	if _, known := below[name]; known {
		return true
	}
	if len(below) >= s.most {
		return false
	}
	if below == nil {
		below = map[string]struct{}{}
		s.seen[entry] = below
	}
	below[name] = struct{}{}
	return true
}
