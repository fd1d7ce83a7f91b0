package host

import (
	"bytes"
	"math"
	"os"
	"strconv"
)

// Threads counts the threads of a user, by /proc; the highest number, which is no limit to setrlimit(2): it could not.
func Threads(uid int) uint64 {
	dir, err := os.Open("/proc")
	if err != nil {
		return math.MaxUint64
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return math.MaxUint64
	}
	total := uint64(0)
	for _, name := range names {
		if _, err := strconv.Atoi(name); err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + name + "/status")
		if err != nil {
			continue // gone meanwhile
		}
		if field(text, "Uid:") == uint64(uid) {
			total += field(text, "Threads:")
		}
	}
	return total
}

// field reads the first number of a line of /proc/PID/status.
func field(status []byte, name string) uint64 {
	_, rest, _ := bytes.Cut(status, []byte("\n"+name))
	words := bytes.Fields(rest[:min(len(rest), 64)])
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.ParseUint(string(words[0]), 10, 64)
	return n
}
