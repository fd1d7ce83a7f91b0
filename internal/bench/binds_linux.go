package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// bindCounts are how many read-only binds each start has.
var bindCounts = []int{100, 500, 1000, 2000}

// binds measures examples/bwrap and bubblewrap with the same command lines.
func binds(rounds int) ([]table, error) {
	dir, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ours := filepath.Join(dir, "bwrap")
	build := exec.Command("go", "build", "-o", ours, "github.com/holdfast-dev/holdfast/examples/bwrap")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build examples/bwrap: %w: %s", err, out)
	}
	theirs, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	var list []contender
	for _, n := range bindCounts {
		args := []string{"--ro-bind", "/", "/", "--tmpfs", "/mnt"}
		for i := range n {
			args = append(args, "--ro-bind", "/usr/share", fmt.Sprint("/mnt/d", i))
		}
		args = append(args, trivial)
		for _, program := range []string{ours, theirs} {
			list = append(list, timed(program, func() error { return exec.Command(program, args...).Run() }))
		}
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	version, _ := exec.Command(theirs, "--version").Output()
	t := table{title: fmt.Sprintf("Start to end of %s with read-only binds, %d rounds: medians and quartiles", trivial, rounds),
		head: []string{"binds", "examples/bwrap, ms", "bubblewrap, ms", "bubblewrap / examples/bwrap"}, remark: strings.TrimSpace(string(version)) + ", run in turn with ours."}
	for i, n := range bindCounts {
		t.add(fmt.Sprint(n), r.time(2*i, time.Millisecond).digits(1), r.time(2*i+1, time.Millisecond).digits(1), r.ratio(2*i+1, 2*i).digits(1))
	}
	return []table{t}, nil
}
