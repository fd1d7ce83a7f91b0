package supervisor

import "unsafe"

// Begin makes s ready to serve under encoded rules that Check has accepted. They are read in place. The path of the run's
// own directory ends with a NUL byte; nil for a process without one. It runs in a process that may
// have no Go runtime.
//
//go:norace
//go:nocheckptr
func Begin(s *State, rules []byte, own unsafe.Pointer) {
	s.m.rules = rules
	for i := range s.up {
		s.up[i] = "../"[i%3]
	}
	s.listener, s.fdDir, s.procRoot, s.rootDir, s.task, s.taskStatus = -1, -1, -1, -1, -1, -1
	s.tracer, s.asks, s.memory, s.recordFD = -1, -1, -1, -1
	s.forgetSockets()
	s.umask = ^uint(0)
	for n := uint(0); own != nil && n < ownRoom-1; n++ {
		c := *(*byte)(unsafe.Add(own, n))
		if c == 0 {
			s.m.ownSize = n
			break
		}
		s.m.own[n&(ownRoom-1)] = c
	}
}
