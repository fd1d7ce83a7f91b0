package proxy

import "sync"

// nameCounter are the distinct names that were asked for below each wildcard, and those
// that Decide allowed. Each is asked of a name server, which the tool tells something by
// it.
type nameCounter struct {
	mu   sync.Mutex
	most int
	seen map[string]map[string]struct{} // by entry
}

// admit counts a name below an entry, and reports whether there is room for it.
func (s *nameCounter) admit(entry, name string) bool {
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
