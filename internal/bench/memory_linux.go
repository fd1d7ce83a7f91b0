package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// crowd is how many sandboxes run at once.
const crowd = 200

// A running sandbox and its processes: stage, init, tool.
type running struct {
	cmd  *sandbox.Cmd
	pids [3]int
}

// memory measures what one running sandbox holds, and what many do.
func memory(int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := table{title: "Memory of running sandboxes, proportional set size in KiB (shared pages counted in shares)",
		head: []string{"", "stage", "init", "both", "each", "ms to start all", "ms to end all", "left over"}}
	for _, n := range []int{1, crowd} {
		if err := measureCrowd(&t, s, dir, n); err != nil {
			return nil, err
		}
	}
	waits, err := idle()
	return []table{t, waits}, err
}

func measureCrowd(t *table, s *sandbox.Sandbox, dir string, n int) error {
	before, err := openFiles()
	if err != nil {
		return err
	}
	var all []*running
	began := time.Now()
	defer func() {
		for _, r := range all {
			r.cmd.Process.Kill()
		}
	}()
	for range n {
		r := &running{cmd: s.Command("sleep", "1000")}
		r.cmd.Dir = dir
		if err := r.cmd.Start(); err != nil {
			return fmt.Errorf("sandbox %d: %w", len(all)+1, err)
		}
		all = append(all, r)
	}
	started := time.Since(began)
	pss, err := sizes(all)
	if err != nil {
		return err
	}
	began = time.Now()
	for _, r := range all {
		r.cmd.Process.Kill()
	}
	for _, r := range all {
		r.cmd.Wait()
	}
	ended := time.Since(began)
	left := leftOver(all)
	after, err := openFiles()
	if err != nil {
		return err
	}
	label := fmt.Sprintf("%d sandboxes of `sleep`", n)
	if n == 1 {
		label = "1 sandbox of `sleep`"
	}
	both := pss[0] + pss[1]
	t.add(label, fmt.Sprint(pss[0]), fmt.Sprint(pss[1]), fmt.Sprint(both), fmt.Sprint(both/n), fmt.Sprint(started.Milliseconds()), fmt.Sprint(ended.Milliseconds()),
		fmt.Sprintf("%d processes, %d descriptors", left, after-before))
	all = nil
	return nil
}

// sizes finds every sandbox's processes and adds up the PSS of the stages and of
// the inits, in KiB.
func sizes(all []*running) (pss [2]int, err error) {
	for _, r := range all {
		r.pids[0] = r.cmd.Process.Pid
		for i := range r.pids {
			if i > 0 {
				if r.pids[i], err = child(r.pids[i-1]); err != nil {
					return pss, err
				}
			}
			if i < len(pss) {
				kib, err := pssOf(r.pids[i])
				if err != nil {
					return pss, err
				}
				pss[i] += kib
			}
		}
	}
	return pss, nil
}

// child returns the one child of a process (proc_pid_task(5), children), once it has one: init's first takes the harness's root off.
func child(pid int) (int, error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if list := childrenOf(pid); len(list) == 1 {
			return list[0], nil
		}
	}
	return 0, fmt.Errorf("process %d has %d children", pid, len(childrenOf(pid)))
}

var errNoPSS = errors.New("smaps_rollup has no Pss")

// pssOf reads a process's proportional set size (proc_pid_smaps(5)), in KiB.
func pssOf(pid int) (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		if words := bytes.Fields(line); len(words) > 1 && string(words[0]) == "Pss:" {
			return strconv.Atoi(string(words[1]))
		}
	}
	return 0, errNoPSS
}

// leftOver counts the processes that still run. One that is dead and waits for
// its parent to ask is none: when the stage is killed, init's new parent is the
// machine's own.
func leftOver(all []*running) int {
	left := 0
	for _, r := range all {
		for _, pid := range r.pids {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, state, _ := bytes.Cut(text, []byte(") "))
			if err == nil && !bytes.HasPrefix(state, []byte("Z")) {
				left++
			}
		}
	}
	return left
}

func openFiles() (int, error) {
	names, err := os.ReadDir("/proc/self/fd")
	return len(names), err
}
