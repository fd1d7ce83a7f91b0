package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// ruleCounts are how many rules are put on top of Workspace's own. Above mostOften rules a count has a tenth of the rounds.
var ruleCounts = []int{20, 100, 500, 1000, 2000, 5000, 10000}

const mostOften = 1000

// rules measures New and the start under policies of many path rules, each for a file that nothing else shows.
func rules(rounds int) ([]table, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := table{title: fmt.Sprintf("New, and start to end of %s, with path rules besides those of Workspace, %d rounds (above %d rules %d): medians and quartiles", trivial, rounds, mostOften, fewer(rounds)),
		head: []string{"rules", "New, ms", "start, ms", fmt.Sprintf("x %d rules", ruleCounts[0]), "us for each further rule"}}
	few, err := newRuled(dir, ruleCounts[0])
	if err != nil {
		return nil, err
	}
	for _, n := range ruleCounts {
		if err := few.addRow(&t, dir, n, rounds); err != nil {
			return nil, fmt.Errorf("%d rules: %w", n, err)
		}
	}
	return []table{t}, nil
}

// fewer is how many rounds a large count has of those that a small one has.
func fewer(rounds int) int { return max(3, rounds/10) }

// ruled is a policy of many rules, and its sandbox.
type ruled struct {
	policy  sandbox.Policy
	sandbox *sandbox.Sandbox
}

// newRuled makes a sandbox that shows n files by a rule each.
func newRuled(dir string, n int) (r ruled, err error) {
	work, shown := filepath.Join(dir, fmt.Sprint("work", n)), filepath.Join(dir, fmt.Sprint("shown", n))
	for _, d := range []string{work, shown} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return r, err
		}
	}
	r.policy = sandbox.Workspace(work)
	for i := range n {
		name := filepath.Join(shown, fmt.Sprint("file", i))
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			return r, err
		}
		r.policy.Files.Read = append(r.policy.Files.Read, name)
	}
	r.sandbox, err = sandbox.New(r.policy)
	return r, err
}

// run runs the trivial tool.
func (r ruled) run() error {
	c := r.sandbox.Command(trivial)
	c.Dir = "/"
	return c.Run()
}

// addRow measures n rules beside few. An error of the sandbox is the row.
func (few ruled) addRow(t *table, dir string, n, rounds int) error {
	r, err := newRuled(dir, n)
	if err == nil {
		err = r.run()
	}
	if err != nil {
		t.add(fmt.Sprint(n), err.Error(), "", "", "")
		return nil
	}
	if n > mostOften {
		rounds = fewer(rounds)
	}
	times, err := interleave(rounds, []contender{
		timed("few", few.run),
		timed(fmt.Sprint(n), r.run),
		timed("New", func() error { _, err := sandbox.New(r.policy); return err }),
	})
	if err != nil {
		return err
	}
	each := ""
	if further := float64(n - ruleCounts[0]); further > 0 {
		each = times.per(1, 0, func(a, b float64) float64 { return (a - b) / 1e3 / further }).digits(1)
	}
	t.add(fmt.Sprint(n), times.time(2, time.Millisecond).String(), times.time(1, time.Millisecond).String(), times.ratio(1, 0).String(), each)
	return nil
}
