package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/sandbox"
)

const crowdWorker = "crowd-worker"

// crowds are what the section starts at once: so many commands of one harness, which ends them or is killed.
var crowds = []struct {
	n      int
	kind   string
	killed bool
}{{1, sandboxed, false}, {200, sandboxed, false}, {1000, sandboxed, false}, {1000, sandboxed, true}, {1000, plain, false}}

// A running command, in a sandbox or without one.
type running struct {
	cmd interface {
		Start() error
		Wait() error
	}
	process func() *os.Process
}

// A crowdOf are commands that run at once.
type crowdOf struct {
	all  []*running
	ends sync.WaitGroup
}

// crowdState is what a harness says of its commands.
type crowdState struct {
	holding                                   // of each
	Took                        time.Duration // until all run, or until all have ended
	Failed                      string        // why some did not start
	Stage                       int           // the part of PSS that is the stage's
	PIDs                        []int         // of all processes
	Threads                     int           // of the harness
	LeftHandles, LeftGoroutines int
}

// crowd measures many commands at once. A new harness runs each row.
func crowd(rounds int) ([]table, error) {
	t := table{title: fmt.Sprintf("Commands of `sleep` that one harness starts at once, each from a goroutine, %d rounds: medians", rounds),
		head: []string{"", "s until all run", "s until all have ended", "stage + init of each, KiB (PSS)", "kernel, KiB", "harness, KiB", "its descriptors", "its threads", "left over"}}
	for _, c := range crowds {
		var starts, ends []crowdState
		left := ""
		for range rounds {
			started, ended, residue, err := oneCrowd(c.n, c.kind, c.killed)
			if err != nil {
				return nil, fmt.Errorf("%d by %s: %w", c.n, c.kind, err)
			}
			starts, ends, left = append(starts, started), append(ends, ended), residue
		}
		s, name := starts[len(starts)/2], fmt.Sprintf("%d, %s", c.n, c.kind)
		if c.killed {
			name += "; the harness is killed"
		}
		if s.Failed != "" {
			name += "; " + s.Failed
		}
		took := func(list []crowdState) string {
			var all []float64
			for _, s := range list {
				all = append(all, s.Took.Seconds())
			}
			return spreadOf(all).String()
		}
		t.add(name, took(starts), took(ends), fmt.Sprintf("%d + %d", s.Stage, s.PSS-s.Stage), fmt.Sprint(s.Kernel), fmt.Sprint(s.Heap), fmt.Sprint(s.Handles), fmt.Sprint(s.Threads), left)
	}
	t.remark = "Memory and what is left are those of one round."
	return []table{t}, nil
}

// oneCrowd has a harness start n commands, and end them, or kills it.
func oneCrowd(n int, kind string, killed bool) (started, ended crowdState, left string, err error) {
	temp, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return started, ended, "", err
	}
	defer os.RemoveAll(temp)
	self, err := os.Executable()
	if err != nil {
		return started, ended, "", err
	}
	mounts := countMounts()
	w, err := newWorker(self, crowdWorker, temp, strconv.Itoa(n), kind)
	if err != nil {
		return started, ended, "", err
	}
	defer w.close()
	if err := w.askFor("start", &started); err != nil {
		return started, ended, "", err
	}
	if !killed {
		err = w.askFor("end", &ended)
	} else {
		ended.Took, err = killHarness(w, started.PIDs)
	}
	files, _ := filepath.Glob(temp + "/*/*")
	left = fmt.Sprintf("%d processes, %d mounts, %d files", leftOver(started.PIDs), countMounts()-mounts, len(files))
	if !killed {
		left += fmt.Sprintf(", %d descriptors, %d goroutines", ended.LeftHandles, ended.LeftGoroutines)
	}
	return started, ended, left, err
}

// killHarness takes the time until all processes of a harness that is killed are dead. They become this process's children, so that their processors' time
// counts as its own.
func killHarness(w *worker, pids []int) (time.Duration, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	began := time.Now()
	w.cmd.Process.Kill()
	for leftOver(pids) > 0 && time.Since(began) < time.Minute {
		time.Sleep(time.Millisecond)
	}
	took := time.Since(began)
	for _, pid := range pids {
		unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
	return took, nil
}

// beCrowd is a harness that starts commands at once when it reads a line, and ends them at the next. Its arguments are a directory for its
// workspace and its temporary files, how many, and by what.
func beCrowd(args []string) error {
	work, temp := filepath.Join(args[0], "work"), filepath.Join(args[0], "temp")
	n, err := strconv.Atoi(args[1])
	if err := errors.Join(err, os.Mkdir(work, 0o755), os.Mkdir(temp, 0o755), os.Setenv("TMPDIR", temp)); err != nil {
		return err
	}
	raiseFiles(n)
	s, err := sandbox.New(sandbox.Workspace(work))
	if err != nil {
		return err
	}
	sleeper := func() *running {
		c := s.Command("sleep", "1000")
		c.Dir = work
		return &running{cmd: c, process: func() *os.Process { return c.Process }}
	}
	if args[2] == plain {
		sleeper = func() *running {
			c := exec.Command("sleep", "1000")
			return &running{cmd: c, process: func() *os.Process { return c.Process }}
		}
	}
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	lines.Scan()
	before, err := usageNow(nil)
	if err != nil {
		return err
	}
	all, started := startCrowd(n, sleeper)
	defer all.end()
	if err := errors.Join(started.measure(before, args[2] == plain), out.Encode(&started)); err != nil {
		return err
	}
	lines.Scan()
	began := time.Now()
	all.end()
	ended := crowdState{Took: time.Since(began)}
	after, err := usageNow(nil)
	ended.LeftHandles, ended.LeftGoroutines = after.Handles-before.Handles, after.Goroutines-before.Goroutines
	return errors.Join(err, out.Encode(ended))
}

// startCrowd starts n commands, and waits for each in a goroutine, as a harness does.
func startCrowd(n int, sleeper func() *running) (c *crowdOf, s crowdState) {
	c = &crowdOf{all: make([]*running, n)}
	for i := range c.all {
		c.all[i] = sleeper()
	}
	failures := make([]error, n)
	var group sync.WaitGroup
	began := time.Now()
	for i, r := range c.all {
		group.Go(func() { failures[i] = r.cmd.Start() })
	}
	group.Wait()
	s.Took = time.Since(began)
	for i, r := range c.all {
		if failures[i] == nil {
			c.ends.Go(func() { r.cmd.Wait() })
			s.PIDs = append(s.PIDs, r.process().Pid)
		}
	}
	if missing := n - len(s.PIDs); missing > 0 {
		s.Failed = fmt.Sprintf("%d did not start: %v", missing, failures[slices.IndexFunc(failures, func(err error) bool { return err != nil })])
	}
	return c, s
}

// end kills all, and returns when all have ended.
func (c *crowdOf) end() {
	for _, r := range c.all {
		if p := r.process(); p != nil {
			p.Kill()
		}
	}
	c.ends.Wait()
}

// measure adds what all take, and who their inits and tools are.
func (s *crowdState) measure(before holding, bare bool) error {
	n, stages := max(1, len(s.PIDs)), s.PIDs
	inits, tools, err := below(stages, bare)
	if err != nil {
		return err
	}
	first, err := usageNow(stages)
	if err != nil {
		return err
	}
	after, err := usageNow(slices.Concat(stages, inits))
	s.holding = holding{after.PSS / n, (after.Kernel - before.Kernel) / n, (after.Heap - before.Heap) / n, (after.Goroutines - before.Goroutines) / n, (after.Handles - before.Handles) / n}
	s.Stage, s.Threads, s.PIDs = first.PSS/n, field("/proc/self/status", "Threads:"), slices.Concat(stages, inits, tools)
	return err
}
