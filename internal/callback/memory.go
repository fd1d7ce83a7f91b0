package callback

import (
	"crypto/sha256"
	"sync"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// mostRemembered is how many verdicts a Memory keeps: the names are the tool's.
const mostRemembered = 1000

// A Memory is what the runs of one sandbox have in common: the verdicts that last for all of them, and the things that
// they ask about now. The zero value is an empty one.
type Memory struct {
	mu       sync.Mutex
	verdicts verdicts
	time     uint64                   // goes on with each Asker.Forget
	busy     map[string]chan struct{} // by About; closed when its Decide has returned
}

// A key stands for a question: its hash, whatever its length.
type key [sha256.Size]byte

// keys are a question's own, and the one of the thing that a no to it is about.
type keys struct{ own, thing key }

// A remembered verdict has the Memory's time at which it was asked for.
type remembered struct {
	policy.Verdict
	asked uint64
}

// verdicts are those that last, the first mostRemembered of them.
type verdicts map[key]remembered

// keep remembers a verdict, if there is room.
func (v *verdicts) keep(k keys, verdict policy.Verdict, asked uint64) {
	if *v == nil {
		*v = verdicts{}
	}
	for _, k := range [...]key{k.own, k.thing} {
		if _, again := (*v)[k]; again || len(*v) < mostRemembered {
			(*v)[k] = remembered{verdict, asked}
		}
		if verdict.Allow {
			break
		}
	}
}

// find returns what is remembered of a question that was asked at a time or later.
func (v verdicts) find(k keys, since uint64) (policy.Verdict, bool) {
	r, found := v[k.own]
	if !found || r.asked < since {
		r, found = v[k.thing]
	}
	return r.Verdict, found && r.asked >= since
}

// find is that of the verdicts for the sandbox. It returns the time as well.
func (m *Memory) find(k keys, since uint64) (v policy.Verdict, found bool, now uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, found = m.verdicts.find(k, since)
	return v, found, m.time
}

// keep is that of the verdicts.
func (m *Memory) keep(k keys, v policy.Verdict, asked uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verdicts.keep(k, v, asked)
}

// goOn returns a time after that of every question so far.
func (m *Memory) goOn() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time++
	return m.time
}

// turn takes a thing to ask about. While another question about it is open it returns what is closed afterwards.
func (m *Memory) turn(about string) (wait <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if other := m.busy[about]; other != nil {
		return other
	}
	if m.busy == nil {
		m.busy = map[string]chan struct{}{}
	}
	m.busy[about] = make(chan struct{})
	return nil
}

// end gives up a turn.
func (m *Memory) end(about string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.busy[about])
	delete(m.busy, about)
}
