package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const callsWorker = "calls-worker"

// callLoops are what the worker repeats in the directory it was started in, on some threads. The supervisor carries out
// those that change a name.
var callLoops = []struct {
	name    string
	n       int
	threads int
	call    func(thread string) error
}{
	{"getpid", 200000, 1, func(string) error { unix.Getpid(); return nil }},
	{"open and close, to read", 20000, 1, func(string) error { return openClose("file", unix.O_RDONLY) }},
	{"open and close, to write", 5000, 1, func(string) error { return openClose("file", unix.O_WRONLY) }},
	{"open and close, to create", 5000, 1, func(thread string) error { return openClose(thread, unix.O_WRONLY|unix.O_CREAT) }},
	{"the same on 8 threads", 1000, 8, func(thread string) error { return openClose(thread, unix.O_WRONLY|unix.O_CREAT) }},
	{"two renames, there and back", 5000, 1, rename},
	{"mkdir and rmdir", 5000, 1, makeRemove},
}

// rename renames the file that the loops before have made.
func rename(thread string) error {
	return errors.Join(unix.Rename(thread, thread+".new"), unix.Rename(thread+".new", thread))
}

func makeRemove(thread string) error {
	return errors.Join(unix.Mkdir(thread+".dir", 0o755), unix.Rmdir(thread+".dir"))
}

func openClose(name string, flags int) error {
	fd, err := unix.Open(name, flags|unix.O_CLOEXEC, 0o644)
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
	failures := make([]error, loop.threads)
	var group sync.WaitGroup
	began := time.Now()
	for k := range failures {
		group.Go(func() {
			runtime.LockOSThread()
			for range loop.n {
				if failures[k] = loop.call(fmt.Sprint("file", k)); failures[k] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	fmt.Println(int64(time.Since(began)))
	return errors.Join(failures...)
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
		outside := contender{"outside", func() (time.Duration, error) {
			return answer(dir, loop.n*loop.threads, outsideCommand(program, callsWorker, arg))
		}}
		inside := contender{"inside", func() (time.Duration, error) {
			return answer(dir, loop.n*loop.threads, insideCommand(s, program, callsWorker, arg))
		}}
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
