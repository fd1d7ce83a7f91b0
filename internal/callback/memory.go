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

// A remembered verdict has the Memory's time at which it was asked for.
type remembered struct {
	policy.Verdict
	asked uint64
}

// verdicts are those that last, the first mostRemembered of them.
type verdicts map[key]remembered

// keep remembers a verdict, if there is room.
func (v *verdicts) keep(k key, verdict policy.Verdict, asked uint64) {
	if _, again := (*v)[k]; !again && len(*v) >= mostRemembered {
		return
	}
	if *v == nil {
		*v = verdicts{}
	}
	(*v)[k] = remembered{verdict, asked}
}

// find returns what is remembered of a question that was asked at a time or later.
func (v verdicts) find(k key, since uint64) (policy.Verdict, bool) {
	r, found := v[k]
	return r.Verdict, found && r.asked >= since
}

// find is that of the verdicts for the sandbox. It returns the time as well.
func (m *Memory) find(k key, since uint64) (v policy.Verdict, found bool, now uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, found = m.verdicts.find(k, since)
	return v, found, m.time
}

// goOn returns a time after that of every question so far.
func (m *Memory) goOn() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.time++
	return m.time
}

// turn takes a thing to ask about, unless the question has been answered since a time. While another question about it is
// open it returns what is closed afterwards.
func (m *Memory) turn(about string, k key, since uint64) (v policy.Verdict, known bool, wait <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, known = m.verdicts.find(k, since); known {
		return v, known, nil
	}
	if other := m.busy[about]; other != nil {
		return v, false, other
	}
	if m.busy == nil {
		m.busy = map[string]chan struct{}{}
	}
	m.busy[about] = make(chan struct{})
	return v, false, nil
}

// end gives up a turn. It keeps a verdict that is for the sandbox.
func (m *Memory) end(about string, k key, v policy.Verdict, asked uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.For == policy.Sandbox {
		m.verdicts.keep(k, v, asked)
	}
	close(m.busy[about])
	delete(m.busy, about)
}
