package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// ruleCounts are how many rules are put on top of Workspace's own.
var ruleCounts = []int{20, 100, 500, 1000}

// rules measures the start under policies of many path rules, each for a file
// that nothing else shows.
func rules(rounds int) ([]table, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var list []contender
	for _, n := range ruleCounts {
		s, err := manyRules(dir, n)
		if err != nil {
			return nil, err
		}
		list = append(list, timed(fmt.Sprint(n), func() error { c := s.Command(trivial); c.Dir = "/"; return c.Run() }))
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("Start to end of %s with path rules besides those of Workspace, %d rounds: medians and quartiles", trivial, rounds),
		head: []string{"rules", "ms", fmt.Sprintf("x %d rules", ruleCounts[0]), "us for each further rule"}}
	for i, name := range r.names {
		each := ""
		if i > 0 {
			further := float64(ruleCounts[i] - ruleCounts[0])
			each = r.per(i, 0, func(a, b float64) float64 { return (a - b) / 1e3 / further }).digits(1)
		}
		t.add(name, r.time(i, time.Millisecond).String(), r.ratio(i, 0).String(), each)
	}
	return []table{t}, nil
}

// manyRules makes a sandbox that shows n files by a rule each.
func manyRules(dir string, n int) (*sandbox.Sandbox, error) {
	work, shown := filepath.Join(dir, fmt.Sprint("work", n)), filepath.Join(dir, fmt.Sprint("shown", n))
	for _, d := range []string{work, shown} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return nil, err
		}
	}
	p := sandbox.Workspace(work)
	for i := range n {
		name := filepath.Join(shown, fmt.Sprint("file", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			return nil, err
		}
		p.Files.Read = append(p.Files.Read, name)
	}
	return sandbox.New(p)
}
