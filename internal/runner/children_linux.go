package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// addChildren adds the processes below one, of the command of parent.
func addChildren(list []policy.Process, outside int, parent policy.Process) []policy.Process {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", outside))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(word)
			p, ok := look(child)
			if !ok {
				continue
			}
			p.Parent, p.Command, p.ID = parent.PID, parent.Command, parent.ID
			list = addChildren(append(list, p), child, p)
		}
	}
	return list
}

// look reads what /proc says of a process.
func look(outside int) (p policy.Process, ok bool) {
	p.Outside = outside
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", outside))
	if err != nil {
		return p, false
	}
	_, rest, _ := bytes.Cut(status, []byte("\nNSpid:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	numbers := bytes.Fields(line)
	if len(numbers) == 0 {
		return p, false
	}
	p.PID, _ = strconv.Atoi(string(numbers[len(numbers)-1]))
	p.Args = commandLine(outside)
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", outside)); len(text) > 0 {
		if f := strings.Fields(string(text)); len(f) > 1 {
			pages, _ := strconv.ParseUint(f[1], 10, 64)
			p.Memory = pages * uint64(os.Getpagesize())
		}
	}
	if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", outside)); len(text) > 0 {
		const tick = 10 * time.Millisecond // USER_HZ is 100 (proc_pid_stat(5))
		if f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]); len(f) > 12 {
			user, _ := strconv.Atoi(string(f[11]))
			system, _ := strconv.Atoi(string(f[12]))
			p.CPU = time.Duration(user+system) * tick
		}
	}
	return p, true
}

// commandLine is what a process shows as its arguments, as much as is kept. The process decides how much there is, also without memory for it
// (PR_SET_MM of prctl(2)).
func commandLine(outside int) []string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", outside))
	if err != nil {
		return nil
	}
	defer f.Close()
	text := make([]byte, maxArgsBytes)
	n, _ := f.Read(text)
	if n <= 0 {
		return nil
	}
	args := strings.SplitN(strings.TrimSuffix(string(text[:n]), "\x00"), "\x00", maxArgs+1)
	return args[:min(len(args), maxArgs)]
}

const maxArgsBytes, maxArgs = 4 << 10, 256
