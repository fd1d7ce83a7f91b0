package guard

// New returns a State for the encoded rules, or the error of Check. It is ordinary Go, for before the fork.
func New(rules []byte) (*State, error) {
	if err := Check(rules); err != nil {
		return nil, err
	}
	s := new(State)
	s.m.rules = rules
	for i := range s.text {
		s.text[i].rules = &s.m
	}
	s.listener, s.fdDir, s.procRoot, s.rootDir, s.task, s.taskStatus = -1, -1, -1, -1, -1, -1
	s.umask = ^uint(0)
	return s, nil
}
