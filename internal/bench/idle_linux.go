package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// idlers is how many sessions wait at once while their memory is measured, or prepared sandboxes; idleRounds how often they are opened.
const idlers, idleRounds = 48, 5

// A holding is what something that waits takes: of memory in KiB, and of the harness's goroutines and descriptors.
type holding struct {
	PSS, Kernel, Heap   int
	Goroutines, Handles int
}

// idle measures what a session takes that waits for its next command, and a prepared sandbox, each with the process that stands ready.
func idle() (table, error) {
	t := table{title: fmt.Sprintf("What waits, KiB each: %d at once, medians of %d rounds", idlers, idleRounds),
		head:   []string{"", "processes (PSS)", "kernel", "heap and stacks of the harness", "together", "goroutines", "descriptors"},
		remark: "Processes: the stage, init, and the warden and tool that stand ready, which share their memory. Kernel: by the memory cgroup of this program, or by Slab, KernelStack, PageTables and Percpu of /proc/meminfo."}
	dir, s, err := workspace()
	if err != nil {
		return t, err
	}
	defer os.RemoveAll(dir)
	defer s.Close()
	for _, row := range []struct {
		name string
		open func() (func(), error)
	}{
		{"idle session", func() (func(), error) {
			all, _, err := openSessions(s, idlers)
			return func() { closeSessions(all) }, err
		}},
		{"prepared sandbox", func() (func(), error) { return func() { s.Prepare(0) }, s.Prepare(idlers) }},
	} {
		u, err := measureIdle(row.open)
		if err != nil {
			return t, fmt.Errorf("%s: %w", row.name, err)
		}
		t.add(row.name, fmt.Sprint(u.PSS), fmt.Sprint(u.Kernel), fmt.Sprint(u.Heap), fmt.Sprint(u.PSS+u.Kernel+u.Heap), fmt.Sprint(u.Goroutines), fmt.Sprint(u.Handles))
	}
	return t, nil
}

// openSessions opens n sessions, one after another, and notes how long each took. An error comes with those that were opened before.
func openSessions(s *sandbox.Sandbox, n int) (all []*sandbox.Session, took []time.Duration, err error) {
	for range n {
		began := time.Now()
		sess, err := s.Open(context.Background())
		if err != nil {
			return all, took, err
		}
		all, took = append(all, sess), append(took, time.Since(began))
	}
	return all, took, nil
}

// closeSessions closes all at once, and returns when all are closed.
func closeSessions(all []*sandbox.Session) {
	var group sync.WaitGroup
	for _, sess := range all {
		group.Go(func() { sess.Close() })
	}
	group.Wait()
}

// measureIdle returns the medians of what one takes of those that open opens. What the first takes once is not counted.
func measureIdle(open func() (end func(), err error)) (holding, error) {
	var all []holding
	for range 1 + idleRounds {
		before, err := usageNow(nil)
		if err != nil {
			return holding{}, err
		}
		end, err := open()
		if err != nil {
			end()
			return holding{}, err
		}
		stand, err := awaitReady(idlers, readyDepth)
		if err != nil {
			end()
			return holding{}, err
		}
		after, err := usageNow(stand)
		end()
		if err != nil {
			return holding{}, err
		}
		all = append(all, holding{after.PSS / idlers, (after.Kernel - before.Kernel) / idlers, (after.Heap - before.Heap) / idlers,
			(after.Goroutines - before.Goroutines) / idlers, (after.Handles - before.Handles) / idlers})
		time.Sleep(100 * time.Millisecond) // the kernel frees namespaces in the background
	}
	return medianHolding(all[1:]), nil
}

// medianHolding is the median of each figure.
func medianHolding(all []holding) holding {
	median := func(of func(u holding) int) int {
		var values []int
		for _, u := range all {
			values = append(values, of(u))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return holding{
		median(func(u holding) int { return u.PSS }), median(func(u holding) int { return u.Kernel }), median(func(u holding) int { return u.Heap }),
		median(func(u holding) int { return u.Goroutines }), median(func(u holding) int { return u.Handles }),
	}
}

// usageNow is what all takes now, with the memory of these processes.
func usageNow(pids []int) (u holding, err error) {
	runtime.GC()
	runtime.GC() // what the first has found, finalizers let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.Heap, u.Goroutines = int(m.HeapAlloc+m.StackInuse)>>10, runtime.NumGoroutine()
	if u.Handles, err = openFiles(); err != nil {
		return u, err
	}
	if u.Kernel, err = kernelMemory(); err != nil {
		return u, err
	}
	for _, pid := range pids {
		kib, err := pssOf(pid)
		if err != nil {
			return u, err
		}
		u.PSS += kib
	}
	return u, nil
}

// kernelMemory is what the kernel takes for itself, in KiB: for this program's memory cgroup, or, where there is none to read, for the machine.
func kernelMemory() (sum int, err error) {
	groups, _ := os.ReadFile("/proc/self/cgroup") // cgroups(7)
	for line := range strings.Lines(string(groups)) {
		words := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(words) == 3 && words[1] == "memory" {
			if text, err := os.ReadFile("/sys/fs/cgroup/memory" + words[2] + "/memory.kmem.usage_in_bytes"); err == nil {
				n, err := strconv.Atoi(strings.TrimSpace(string(text)))
				return n >> 10, err
			}
		}
		if len(words) == 3 && words[0] == "0" {
			if n := field("/sys/fs/cgroup"+words[2]+"/memory.stat", "kernel"); n > 0 {
				return n >> 10, nil
			}
		}
	}
	for _, name := range []string{"Slab:", "KernelStack:", "PageTables:", "Percpu:"} {
		sum += field("/proc/meminfo", name)
	}
	return sum, nil
}

// field returns the number behind a name in a file of lines; 0: there is none.
func field(file, name string) int {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name {
			n, _ := strconv.Atoi(words[1])
			return n
		}
	}
	return 0
}

// How deep below the harness what waits stands: stages, inits, wardens, tools. Below an init nothing does where none stands ready.
const initDepth, readyDepth = 2, 4

// awaitReady waits until n processes stand at a depth below this one, and returns all processes above that; but where inits are waited for, these too. The tools
// that stand ready share the memory of their wardens.
func awaitReady(n, depth int) (list []int, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		list = nil
		level := []int{os.Getpid()}
		for range depth {
			var below []int
			for _, pid := range level {
				below = append(below, childrenOf(pid)...)
			}
			list, level = append(list, below...), below
		}
		if len(level) == n && depth == readyDepth {
			list = list[:len(list)-n]
		}
		if len(level) == n {
			return list, nil
		}
	}
	return nil, errors.New("no tool stands ready")
}

// childrenOf lists the children of all threads of a process.
func childrenOf(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		for _, word := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}
