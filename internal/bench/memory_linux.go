package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// memory measures what waits: idle sessions and prepared sandboxes.
func memory(int) ([]table, error) {
	waits, err := idle()
	return []table{waits}, err
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

// below returns the inits of stages, and their tools; of bare commands there are none.
func below(stages []int, bare bool) (inits, tools []int, err error) {
	for _, stage := range stages {
		if bare {
			break
		}
		init, err := child(stage)
		if err != nil {
			return nil, nil, err
		}
		tool, err := child(init)
		if err != nil {
			return nil, nil, err
		}
		inits, tools = append(inits, init), append(tools, tool)
	}
	return inits, tools, nil
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
func leftOver(pids []int) (left int) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := bytes.Cut(text, []byte(") "))
		if err == nil && !bytes.HasPrefix(state, []byte("Z")) {
			left++
		}
	}
	return left
}

func openFiles() (int, error) {
	names, err := os.ReadDir("/proc/self/fd")
	return len(names), err
}
