package proxy

import "sync"

// nameCounter are the distinct names that were asked for below each wildcard, and those
// that Decide allowed. Each is asked of a name server, which the tool tells something by
// it.
type nameCounter struct {
	mu   sync.Mutex
	most int
	seen map[string]map[string]bool // by entry
}

// admit counts a name below an entry, and reports whether there is room for it.
func (s *nameCounter) admit(entry, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := s.seen[entry]
	if below == nil {
		below = map[string]bool{}
		s.seen[entry] = below
	}
	if len(below) >= s.most && !below[name] {
		return false
	}
	below[name] = true
	return true
}
