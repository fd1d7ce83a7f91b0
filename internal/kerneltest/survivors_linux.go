package kerneltest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// grace is how long what a child started may take to be gone after it. What
// was told to end is not gone at that instant.
var grace = time.Minute

// survivors waits for the processes that a child left to be gone, kills those
// that stay, and names them. A process is a child's if it is in its session or
// has its mark in the environment, and has not ended.
func survivors(session int, id string) string {
	deadline := time.Now().Add(grace)
	left := find(session, id)
	for len(left) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		left = find(session, id)
	}
	var names []string
	for _, p := range left {
		names = append(names, fmt.Sprintf("%s (%d)", p.name, p.pid))
		// A process that ended in this instant needs no signal.
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
	// A killed process is listed until it has left its address space.
	for end := time.Now().Add(killTime); len(left) > 0 && time.Now().Before(end); left = find(session, id) {
		time.Sleep(time.Millisecond)
	}
	return strings.Join(names, ", ")
}

// killTime is how long a killed process may take to end.
const killTime = time.Minute

type process struct {
	pid  int
	name string
}

func find(session int, id string) []process {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var found []process
	mark := []byte(idEnv + "=" + id)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		name, state, sid := parseStat(string(stat))
		if state == "Z" || state == "X" {
			continue
		}
		dir := filepath.Dir(path)
		if sid != session {
			// Another user's environment is closed to one who is not root.
			environ, err := os.ReadFile(dir + "/environ")
			if err != nil || !bytes.Contains(environ, mark) {
				continue
			}
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err == nil {
			found = append(found, process{pid: pid, name: name})
		}
	}
	return found
}

// parseStat takes a line of /proc/PID/stat (proc_pid_stat(5)) apart; the name
// is in parentheses and can itself hold any byte.
func parseStat(line string) (name, state string, session int) {
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return "", "X", 0
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 4 {
		return "", "X", 0
	}
	session, err := strconv.Atoi(fields[3])
	if err != nil {
		return "", "X", 0
	}
	return line[open+1 : end], fields[0], session
}
