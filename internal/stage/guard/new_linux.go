package guard

// Begin makes s ready to serve under encoded rules that Check has accepted. They are read in place. It runs
// before the fork, in a process that may have no Go runtime.
//
//go:norace
func Begin(s *State, rules []byte) {
	s.m.rules = rules
	for i := range s.text {
		s.text[i].rules = &s.m
	}
	s.listener, s.fdDir, s.procRoot, s.rootDir, s.task, s.taskStatus = -1, -1, -1, -1, -1, -1
	s.umask = ^uint(0)
}
