package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	err := be(os.Args[1:])
	var unable unableError
	switch {
	case errors.As(err, &unable):
		fmt.Println(err)
		os.Exit(77)
	case err != nil:
		fmt.Fprintln(os.Stderr, "hosttest:", err)
		os.Exit(1)
	}
}

// An unableError says why this machine cannot make a host.
type unableError string

func (e unableError) Error() string { return string(e) }

// be is what this program is by its first argument.
func be(args []string) error {
	switch {
	case len(args) > 0 && args[0] == "inside":
		return inside(args[1:])
	case len(args) > 0 && args[0] == "tool":
		return tool(args[1:])
	case len(args) > 2 && args[0] == "limit":
		return limit(args[1], args[2:])
	case len(args) > 0 && args[0] == "bystander":
		signal.Ignore(signals...)
		return unix.Pause()
	case len(args) == 5 && args[0] == "within":
		return within(args[1], args[2], args[3], args[4] == "true")
	}
	only := flag.String("only", "", "the hosts whose `name` begins so")
	long := flag.Bool("long", false, "pip on each host, and not on two alone")
	write := flag.String("write", "", "write the table into this `file`; with -long")
	flag.Parse()
	table, err := outside(*only, *long || *write != "")
	if err == nil && *write != "" {
		err = replaceTable(*write, table)
	}
	return err
}

// outside starts this program again in namespaces of its own, in which everything ends with it, and returns the table.
func outside(only string, long bool) (string, error) {
	if os.Geteuid() != 0 {
		return "", unableError("it needs root")
	}
	dir, err := os.MkdirTemp("", "holdfast-hosts-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", err
	}
	cgroup := "/" + filepath.Base(dir)
	defer removeCgroups(cgroup)
	c := exec.Command("/proc/self/exe", "within", dir, cgroup, only, strconv.FormatBool(long))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends (prctl(2))
	if err := c.Start(); errors.Is(err, syscall.EPERM) {
		return "", unableError("namespaces cannot be made: " + err.Error())
	} else if err != nil {
		return "", err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() { <-stop; c.Process.Kill() }()
	err = c.Wait()
	if c.ProcessState.ExitCode() == 77 {
		return "", unableError("no host could be made")
	}
	if err != nil {
		return "", fmt.Errorf("not all is right: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "table"))
	return string(text), err
}

// within runs every host.
func within(dir, cgroup, only string, long bool) error {
	if err := settle(); err != nil {
		return unableError(err.Error())
	}
	w, err := newWorld(dir, cgroup)
	if err != nil {
		return err
	}
	w.long = long
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	var rows []row
	bad, refused := 0, map[string]bool{}
	for _, h := range w.habitats() {
		if !strings.HasPrefix(h.name, only) {
			continue
		}
		if h.start != nil {
			if err := h.start(ctx); err != nil {
				if !refused[h.name] {
					fmt.Printf("not run: %s: %v\n", h.name, err)
				}
				refused[h.name] = true
				continue
			}
		}
		r := w.tryHost(ctx, h)
		if r.account.Default == nil && len(r.problems) == 0 {
			continue // it could not be run
		}
		if d := r.account.Default; h.name == bare && d != nil && d.Error != "" {
			return unableError("this machine itself does not hold the default sandbox: " + strings.ReplaceAll(d.Error, "\n", "; "))
		}
		fmt.Println(r.line())
		for _, p := range r.problems {
			bad++
			fmt.Println("    " + strings.ReplaceAll(p, "\n", "\n    "))
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return unableError("no host could be made")
	}
	if err := os.WriteFile(filepath.Join(dir, "table"), []byte(tableOf(rows)), 0o644); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d problems", bad)
	}
	return nil
}

// removeCgroups removes what the engines made below a cgroup.
func removeCgroups(name string) {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*")
	for _, root := range append(roots, "/sys/fs/cgroup") {
		for depth := 4; depth >= 0; depth-- {
			list, _ := filepath.Glob(root + name + strings.Repeat("/*", depth))
			for _, p := range list {
				unix.Rmdir(p)
			}
		}
	}
}
