package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const callsWorker = "calls-worker"

// calls are what the worker repeats in the directory it was started in.
var callLoops = []struct {
	name string
	n    int
	call func() error
}{
	{"getpid", 200000, func() error { unix.Getpid(); return nil }},
	{"open and close, to read", 20000, func() error { return openClose(unix.O_RDONLY) }},
	{"open and close, to write", 5000, func() error { return openClose(unix.O_WRONLY) }},
	{"open and close, to create (a supervised call)", 5000, func() error { return openClose(unix.O_WRONLY | unix.O_CREAT) }},
}

func openClose(flags int) error {
	fd, err := unix.Open("file", flags|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

// makeCalls repeats one call and prints how many nanoseconds that took.
func makeCalls(args []string) error {
	i, err := strconv.Atoi(strings.Join(args, ""))
	if err != nil || i < 0 || i >= len(callLoops) {
		return errors.New("which call?")
	}
	loop := callLoops[i]
	began := time.Now()
	for range loop.n {
		if err := loop.call(); err != nil {
			return err
		}
	}
	fmt.Println(int64(time.Since(began)))
	return nil
}

// calls measures system calls inside and outside, made by this same program.
func calls(rounds int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bench")
	if err := copyFile("/proc/self/exe", program, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o644); err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("System calls, %d rounds: medians and quartiles", rounds), head: []string{"", "us outside", "us inside", "us added", "x outside"}}
	for i, loop := range callLoops {
		arg := strconv.Itoa(i)
		outside := contender{"outside", func() (time.Duration, error) { return answer(dir, loop.n, outsideCommand(program, callsWorker, arg)) }}
		inside := contender{"inside", func() (time.Duration, error) { return answer(dir, loop.n, insideCommand(s, program, callsWorker, arg)) }}
		r, err := interleave(rounds, []contender{outside, inside})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", loop.name, err)
		}
		t.add(loop.name, r.time(0, time.Microsecond).String(), r.time(1, time.Microsecond).String(), r.added(1, 0, time.Microsecond).String(), r.ratio(1, 0).String())
	}
	return []table{t}, nil
}

// answer runs a worker and returns what one of its n calls took.
func answer(dir string, n int, c command) (time.Duration, error) {
	c.in(dir)
	out, err := c.Output()
	if err != nil {
		return 0, err
	}
	total, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return time.Duration(total / int64(n)), err
}

func copyFile(from, to string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
