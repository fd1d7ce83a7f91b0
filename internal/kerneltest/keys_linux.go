package kerneltest

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// awaitKeys waits until a user has at most half of the keys that it may have. Each sandbox takes one, and those of processes that
// have ended are freed some time later (keyrings(7)); all test programs that run at the time are one user's. A user who holds more for
// other reasons is not waited for any longer than ten seconds.
func awaitKeys(uid int) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end) && keysOf(uid) > 0.5; {
		time.Sleep(10 * time.Millisecond)
	}
}

// keysOf returns which part of its keys a user has, as /proc/key-users says (proc_key-users(5)); 0: none, or it is not known.
func keysOf(uid int) float64 {
	text, _ := os.ReadFile("/proc/key-users")
	for line := range strings.Lines(string(text)) {
		var user, usage, keys, instantiated, counted, most int
		if n, _ := fmt.Sscanf(strings.TrimSpace(line), "%d: %d %d/%d %d/%d", &user, &usage, &keys, &instantiated, &counted, &most); n == 6 && user == uid && most > 0 {
			return float64(counted) / float64(most)
		}
	}
	return 0
}
