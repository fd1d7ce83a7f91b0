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
	busy     map[string]chan struct{} // by About; closed when its Decide has returned
}

// A key stands for a question: its hash, whatever its length.
type key [sha256.Size]byte

// verdicts are those that last, the first mostRemembered of them.
type verdicts map[key]policy.Verdict

// keep remembers a verdict, if there is room.
func (v *verdicts) keep(k key, verdict policy.Verdict) {
	if len(*v) >= mostRemembered {
		return
	}
	if *v == nil {
		*v = verdicts{}
	}
	(*v)[k] = verdict
}

// find returns what is remembered of a question.
func (m *Memory) find(k key) (policy.Verdict, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, found := m.verdicts[k]
	return v, found
}

// turn takes a thing to ask about, unless the question has been answered meanwhile. While another question about it is
// open it returns what is closed afterwards.
func (m *Memory) turn(about string, k key) (v policy.Verdict, known bool, wait <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, known = m.verdicts[k]; known {
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
func (m *Memory) end(about string, k key, v policy.Verdict) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v.For == policy.Sandbox {
		m.verdicts.keep(k, v)
	}
	close(m.busy[about])
	delete(m.busy, about)
}
