package child

// commandOf returns the place of the command with this warden; -1: it is the warden of none.
//
//go:norace
//go:nocheckptr
func commandOf(pid uintptr) int {
	for i := range st.commands {
		if st.commands[i].control != 0 && st.commands[i].warden == pid {
			return i
		}
	}
	return -1
}

// sweepMS is how long init sleeps between two rounds, and sweepRounds how many rounds it takes at most to kill what
// does not end.
const sweepMS, sweepRounds = 2, 10_000

// bredNumber is how many children are left, and bredRounds how often they were killed, when they are taken to be made faster than that.
const bredNumber, bredRounds = 8, 16
