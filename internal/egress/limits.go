package egress

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	presetConnections = 1024
	presetNames       = 512
)

// The fields of Limits, by which a refusal says which of them was reached.
const (
	limitConnections = "Connections"
	limitBytes       = "Bytes"
	limitNames       = "Names"
)

// errBytes ends what is under way when Limits.Bytes have passed.
var errBytes = &Refusal{Why: "the policy's limit on bytes is reached", Limit: limitBytes}

// crowded is the refusal of a connection, or of a request that counts as one, beyond
// Limits.Connections.
func (g *Gateway) crowded(t Target) error {
	r := t.refuse(Decision{Why: fmt.Sprintf("the policy's limit on connections is reached: %d are open", g.cfg.Limits.Connections)}).(*Refusal)
	r.Limit = limitConnections
	return r
}

// spent is the refusal of a target when Limits.Bytes have passed.
func (t Target) spent(rule string) error {
	r := t.refuse(Decision{Rule: rule, Why: errBytes.Why}).(*Refusal)
	r.Limit = limitBytes
	return r
}

// known counts a name that is about to be looked up below the entry that allows it:
// a wildcard, or [byDecide]. The error is a *Refusal.
func (g *Gateway) known(t Target, entry string) error {
	if t.Host.addr.IsValid() || entry != byDecide && !wide(entry) || g.names.admit(entry, t.Host.name) {
		return nil
	}
	why := fmt.Sprintf("%d names were asked for below %q, which is the policy's limit", g.names.most, entry)
	if entry == byDecide {
		why = fmt.Sprintf("%d names were asked for that Decide alone allowed, which is the policy's limit", g.names.most)
	}
	r := t.refuse(Decision{Rule: entry, Why: why}).(*Refusal)
	r.Limit = limitNames
	return r
}

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
// connections gains nothing. It ends with ctx, and when over is closed.
func (m *meter) turn(ctx context.Context, over <-chan struct{}, n int64) error {
	if m.pace == nil || n <= 0 {
		return nil
	}
	d := m.pace.after(m.pace.now(), n)
	if d <= 0 {
		return nil
	}
	return m.pace.wait(ctx, over, d)
}

// unturn gives back what turn has waited for and what did not pass then.
func (m *meter) unturn(n int64) {
	if m.pace != nil && n > 0 {
		m.pace.back(n)
	}
}

// over is what a connection closes so that its turn is not waited for; nil, which
// nobody waits for, without a rate.
func (m *meter) over() chan struct{} {
	if m.pace == nil {
		return nil
	}
	return make(chan struct{})
}

// A pace spreads bytes over time, with a tenth of a second's worth at once.
type pace struct {
	mu   sync.Mutex
	rate int64     // bytes per second
	free time.Time // when all that has passed is paid for

	now  func() time.Time // time.Now and sleep, but for a test's own clock
	wait func(ctx context.Context, over <-chan struct{}, d time.Duration) error
}

func newPace(rate int64) *pace { return &pace{rate: rate, now: time.Now, wait: sleep} }

// sleep waits for d, unless something ends before.
func sleep(ctx context.Context, over <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-over:
		return net.ErrClosed
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

// names are the distinct names that were asked for below each wildcard, and those
// that Decide allowed. Each is asked of a name server, which the tool tells something by
// it.
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
