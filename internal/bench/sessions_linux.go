package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox"
)

const sessionsWorker = "sessions-worker"

// sessionCounts are how many idle sessions one harness has open at once, and by what the rounds are divided.
var sessionCounts = []struct{ n, share int }{{1, 1}, {10, 1}, {100, 4}, {1000, 7}, {10000, 20}}

// openedSessions is what a harness says of its open sessions, in medians of its rounds, and of what is left of them.
type openedSessions struct {
	holding       // of each
	Opened        int
	Failed        string        // why no more were opened
	Each, Last    time.Duration // of Open: of all, of the last tenth
	Command       time.Duration // of one in one of them
	Close         time.Duration // of all at once
	Threads       int           // of the harness, once all are closed
	Left          int           // processes
	LeftHandles   int
	LeftMounts    int
	LeftGoroutine int
}

// sessions measures what many idle sessions of one harness take. A new harness runs each count.
func sessions(rounds int) ([]table, error) {
	t := table{title: fmt.Sprintf("Idle sessions of one harness, %d rounds for one, 1 for the most: medians", rounds),
		head: []string{"sessions", "Open, ms; the last tenth of them", "a command in one, ms", "processes of each, KiB (PSS)", "kernel, KiB", "harness, KiB", "its goroutines", "its descriptors",
			"Close of all at once, s", "threads of the harness then", "left over"},
		remark: "A harness raises its limit of descriptors (RLIMIT_NOFILE), where it may."}
	for _, c := range sessionCounts {
		name, ready := strconv.Itoa(c.n), "ready"
		why := noRoom(c.n, readyDepth)
		if why != "" && noRoom(c.n, initDepth) == "" {
			name, ready = name+" (none with a process that stands ready, by Limits.Rlimits.NProc: "+why+")", "bare"
		} else if why != "" {
			t.add(name, "not opened: "+why, "", "", "", "", "", "", "", "", "")
			continue
		}
		o, err := askSessions(c.n, max(1, rounds/c.share), ready)
		if err != nil {
			return nil, fmt.Errorf("%d sessions: %w", c.n, err)
		}
		if o.Failed != "" {
			name = fmt.Sprintf("%d of %s: %s", o.Opened, name, o.Failed)
		}
		t.add(name, millis(o.Each)+"; "+millis(o.Last), millis(o.Command), fmt.Sprint(o.PSS), fmt.Sprint(o.Kernel), fmt.Sprint(o.Heap), fmt.Sprint(o.Goroutines), fmt.Sprint(o.Handles),
			fmt.Sprintf("%.2f", o.Close.Seconds()), fmt.Sprint(o.Threads), fmt.Sprintf("%d processes, %d descriptors, %d mounts, %d goroutines", o.Left, o.LeftHandles, o.LeftMounts, o.LeftGoroutine))
	}
	return []table{t}, nil
}

// The room that one sandbox needs: KiB, and processes of the machine that stay free.
const roomKiB, freeProcesses = 1280, 2000

// noRoom says why this machine has no room for n sandboxes of so many processes; "": it has.
func noRoom(n, processes int) string {
	most, _ := os.ReadFile("/proc/sys/kernel/pid_max")
	load, _ := os.ReadFile("/proc/loadavg") // proc_loadavg(5): 0.20 0.18 0.12 1/80 11206
	var ids, running, threads int
	var mean float64
	if _, err := fmt.Sscan(string(most), &ids); err == nil {
		fmt.Sscanf(string(load), "%f %f %f %d/%d", &mean, &mean, &mean, &running, &threads)
		if need := n * processes; need > ids-threads-freeProcesses {
			return fmt.Sprintf("%d processes are more than kernel.pid_max (%d) has room for", need, ids)
		}
	}
	if free := field("/proc/meminfo", "MemAvailable:"); n*roomKiB > free {
		return fmt.Sprintf("%d MiB of memory are more than are free (%d)", n*roomKiB>>10, free>>10)
	}
	return ""
}

// askSessions has a harness open n sessions, and close them.
func askSessions(n, rounds int, ready string) (o openedSessions, err error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return o, err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	c := exec.Command(self, sessionsWorker, dir, strconv.Itoa(n), strconv.Itoa(rounds), ready)
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(text, &o)
}

// beSessions is a harness that opens sessions and measures itself. Its arguments are a workspace, how many, how often, and "bare" where no process shall stand ready.
func beSessions(args []string) error {
	n, err := strconv.Atoi(args[1])
	rounds, err2 := strconv.Atoi(args[2])
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	raiseFiles(n)
	p, depth := sandbox.Workspace(args[0]), readyDepth
	if args[3] == "bare" {
		p.Limits.Rlimits.NProc, depth = rlimit.At(4096), initDepth
	}
	s, err := sandbox.New(p)
	if err != nil {
		return err
	}
	var all []openedSessions
	for round := range rounds + 1 {
		m := n
		if round == 0 {
			m = 1 // what the first takes is not counted
		}
		o, err := openAndClose(s, args[0], m, depth)
		if err != nil {
			return err
		}
		if round > 0 {
			all = append(all, o)
		}
	}
	return json.NewEncoder(os.Stdout).Encode(medianSessions(all))
}

// raiseFiles lets this process open as many files as n sandboxes take.
func raiseFiles(n int) {
	var now unix.Rlimit
	want := uint64(n)*10 + 1000
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &now) == nil && now.Cur < want {
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: want, Max: max(want, now.Max)}) // where it may not, the library says so
	}
}

// openAndClose opens n sessions, measures, and closes them.
func openAndClose(s *sandbox.Sandbox, dir string, n, depth int) (o openedSessions, err error) {
	before, err := usageNow(nil)
	if err != nil {
		return o, err
	}
	mounts := countMounts()
	all, took, err := openSessions(s, n)
	if o.Opened = len(all); err != nil {
		o.Failed = err.Error()
	}
	if o.Opened == 0 {
		return o, nil
	}
	defer closeSessions(all)
	stand, err := awaitReady(o.Opened, depth)
	if err != nil {
		return o, err
	}
	after, err := usageNow(stand)
	if err != nil {
		return o, err
	}
	o.holding = holding{after.PSS / o.Opened, (after.Kernel - before.Kernel) / o.Opened, (after.Heap - before.Heap) / o.Opened,
		(after.Goroutines - before.Goroutines) / o.Opened, (after.Handles - before.Handles) / o.Opened}
	o.Each, o.Last = quantile(took, 0.5), quantile(took[len(took)-max(1, len(took)/10):], 0.5)
	if o.Failed == "" { // else there is nothing left for a command
		if o.Command, err = commandIn(all, dir); err != nil {
			return o, err
		}
	}
	began := time.Now()
	closeSessions(all)
	o.Close = time.Since(began)
	after, err = usageNow(nil)
	o.Left, o.LeftHandles, o.LeftMounts, o.LeftGoroutine = leftOver(stand), after.Handles-before.Handles, countMounts()-mounts, after.Goroutines-before.Goroutines
	o.Threads = field("/proc/self/status", "Threads:")
	time.Sleep(100 * time.Millisecond) // the kernel frees namespaces in the background
	return o, err
}

// commandIn is the median time of twenty commands, one after another, each in another of the sessions.
func commandIn(all []*sandbox.Session, dir string) (time.Duration, error) {
	var took []time.Duration
	for i := range 20 {
		began := time.Now()
		if err := in(all[i*len(all)/20], dir, trivial).Run(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.5), nil
}

// medianSessions are the medians of what several rounds say, and the most that any has left.
func medianSessions(all []openedSessions) openedSessions {
	m := all[0]
	for _, o := range all {
		if o.Failed != "" {
			m.Opened, m.Failed = o.Opened, o.Failed
		}
		m.Threads, m.Left, m.LeftHandles = max(m.Threads, o.Threads), max(m.Left, o.Left), max(m.LeftHandles, o.LeftHandles)
		m.LeftMounts, m.LeftGoroutine = max(m.LeftMounts, o.LeftMounts), max(m.LeftGoroutine, o.LeftGoroutine)
	}
	for _, of := range []func(o *openedSessions) *time.Duration{
		func(o *openedSessions) *time.Duration { return &o.Each }, func(o *openedSessions) *time.Duration { return &o.Last },
		func(o *openedSessions) *time.Duration { return &o.Command }, func(o *openedSessions) *time.Duration { return &o.Close },
	} {
		var values []time.Duration
		for i := range all {
			values = append(values, *of(&all[i]))
		}
		*of(&m) = quantile(values, 0.5)
	}
	var held []holding
	for _, o := range all {
		held = append(held, o.holding)
	}
	m.holding = medianHolding(held)
	return m
}

// countMounts counts the mounts of this process's namespace.
func countMounts() int {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return bytes.Count(text, []byte("\n"))
}
