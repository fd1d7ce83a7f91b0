package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/sandbox"
)

const firstWorker = "first-worker"

// beFirst runs a first command and prints how many nanoseconds that took.
func beFirst([]string) error {
	began := time.Now()
	if err := sandbox.Command(trivial).Run(); err != nil {
		return err
	}
	fmt.Println(int64(time.Since(began)))
	return nil
}

// first measures the first command of a process, which finds out what the host can hold.
func first(rounds int) ([]table, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r, err := interleave(rounds, []contender{
		timed(plain, func() error { return exec.Command(trivial).Run() }),
		{"the first sandbox.Command of a process", func() (time.Duration, error) { return firstCommand(dir) }},
	})
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("The first command of a process, %d rounds: medians and quartiles", rounds), head: []string{"", "ms"}}
	for i, name := range r.names {
		t.add(name, r.time(i, time.Millisecond).String())
	}
	return []table{t}, nil
}

// firstCommand takes the time of the first command of a process that works in dir.
func firstCommand(dir string) (time.Duration, error) {
	c := exec.Command("/proc/self/exe", firstWorker)
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		return 0, err
	}
	took, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Duration(took), err
}

// The workers of throughput, and what each runs in a round.
const crew, each = 8, 50

// throughput measures how many commands end in a second, and what processors do for one.
func throughput(rounds int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var processors [3][]float64
	list := []contender{
		crewed(&processors[0], plain, func() error { return exec.Command(trivial).Run() }),
		crewed(&processors[1], sandboxed, func() error { c := s.Command(trivial); c.Dir = dir; return c.Run() }),
	}
	peer, version := bubblewrap(dir)
	if peer != nil {
		list = append(list, crewed(&processors[2], wrapped, func() error { return exec.Command(peer[0], append(peer[1:len(peer):len(peer)], trivial)...).Run() }))
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("%d workers, %d commands each, %d rounds: medians and quartiles", crew, each, rounds),
		head: []string{"", "commands a second", "x bubblewrap", "ms of processors for one, the kernel's own threads included"}, remark: version}
	for i, name := range r.names {
		against := ""
		if b := r.index(wrapped); b >= 0 {
			against = r.per(i, b, func(a, b float64) float64 { return b / a }).String()
		}
		rate := r.per(i, i, func(a, _ float64) float64 { return crew * each / (a / float64(time.Second)) })
		t.add(name, rate.digits(0), against, spreadOf(processors[i][1:]).String())
	}
	return []table{t}, nil
}

// crewed is a contender of workers that do the same at once. It notes the milliseconds of processors that one act took.
func crewed(processors *[]float64, name string, act func() error) contender {
	return contender{name, func() (time.Duration, error) {
		unix.Sync() // what others have left to be written is not this one's
		before, _ := ticks()
		began := time.Now()
		failures := make([]error, crew)
		var group sync.WaitGroup
		for i := range failures {
			group.Go(func() {
				for range each {
					if failures[i] = act(); failures[i] != nil {
						return
					}
				}
			})
		}
		group.Wait()
		took := time.Since(began)
		after, _ := ticks()
		*processors = append(*processors, (after-before)*1e3/(crew*each))
		return took, errors.Join(failures...)
	}}
}
