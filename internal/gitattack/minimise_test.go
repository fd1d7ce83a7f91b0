package gitattack

// minimise leaves out what the finding does not need. still says whether a sequence is one.
func minimise(s *sequence, still func(*sequence) bool) *sequence {
	for again := true; again; {
		again = false
		for n := range s.Rounds {
			for size := len(s.Rounds[n].Ops) / 2; size > 0; size /= 2 {
				for i := 0; i+size <= len(s.Rounds[n].Ops); {
					c := s.clone()
					ops := c.Rounds[n].Ops
					c.Rounds[n].Ops = append(ops[:i:i], ops[i+size:]...)
					if still(c) {
						s, again = c, true
					} else {
						i += size
					}
				}
			}
			for i := 0; i < len(s.Rounds[n].User); {
				c := s.clone()
				user := c.Rounds[n].User
				c.Rounds[n].User = append(user[:i:i], user[i+1:]...)
				if still(c) {
					s, again = c, true
				} else {
					i++
				}
			}
		}
	}
	return s
}
