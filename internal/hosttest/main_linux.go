package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
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
	case len(args) > 0 && args[0] == "boot":
		return boot()
	case os.Args[0] == "/sbin/init": // the first process of a container of LXD's
		halt := make(chan os.Signal, 1)
		signal.Notify(halt, unix.SIGPWR, syscall.Signal(37)) // "lxc restart" sends SIGRTMIN+3 where the first thread blocks that, as systemd's does and Go's may (lxcapi_shutdown)
		if err := loopbackUp(); err != nil {
			return err
		}
		<-halt
		return nil
	case len(args) > 0 && args[0] == "ready": // waits for that one: a signal before is lost
		for {
			if lo, err := net.InterfaceByName("lo"); err == nil && lo.Flags&net.FlagUp != 0 {
				return nil
			}
			time.Sleep(50 * time.Millisecond)
		}
	case len(args) > 0 && args[0] == "bystander":
		signal.Ignore(signals...)
		return unix.Pause()
	case len(args) > 1 && args[0] == "first":
		return first(args[1:])
	case len(args) == 4 && args[0] == "within":
		return within(args[1], args[2], args[3])
	}
	var o runOptions
	flag.StringVar(&o.Only, "only", "", "the hosts whose `name` begins so")
	flag.BoolVar(&o.Long, "long", false, "pip on each host, and not on two alone")
	flag.StringVar(&o.Play, "play", "", "a shell's `command` in a copy of the module below a home, and nothing else: as a newcomer runs README's commands")
	flag.StringVar(&o.Where, "where", "user", "`where` -play runs it: \"container, root\", \"container, user\" with Docker's current profile, or \"user\", an ordinary one of this machine")
	flag.BoolVar(&o.Switches, "switches", false, "this machine with each setting that forbids user namespaces: for a virtual machine (.ci/vm), whose settings are changed")
	inMachines := flag.Bool("machines", false, "virtual machines too, whose kernels are Debian's and Ubuntu's; it takes minutes")
	write := flag.String("write", "", "write the table into this `file`, if it has all rows that were to be run and all that the file has; with -long")
	partial := flag.Bool("partial", false, "write a table also if rows are missing from it")
	flag.Parse()
	if o.Switches && os.Getenv("CI_BARE") == "" {
		return errors.New("-switches changes the machine's settings, and runs under .ci/vm alone")
	}
	o.Long = o.Long || *write != ""
	table, missing, err := outside(o)
	if err == nil && *inMachines {
		var more string
		more, err = machines()
		table = strings.Replace(table, "\n\n", "\n"+more+"\n", 1)
	}
	if err == nil && *write != "" {
		err = writeTable(*write, table, missing, *partial)
	}
	return err
}

// runOptions are what to run.
type runOptions struct {
	Only, Play, Where string
	Long, Switches    bool
}

// outside starts this program again in new namespaces, in which everything ends with it, and returns the table and what could not be run.
func outside(o runOptions) (table string, missing []string, err error) {
	if os.Geteuid() != 0 {
		return "", nil, unableError("it needs root")
	}
	dir, err := os.MkdirTemp("", "holdfast-hosts-")
	if err != nil {
		return "", nil, err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil {
		return "", nil, err
	}
	cgroup := "/" + filepath.Base(dir)
	defer removeCgroups(cgroup)
	options, err := json.Marshal(o)
	if err != nil {
		return "", nil, err
	}
	run := []string{"within", dir, cgroup, string(options)}
	if o.Play != "" { // tests leave orphans, as on a machine whose first process waits for them
		run = append([]string{"first"}, run...)
	}
	c := exec.Command("/proc/self/exe", run...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	runtime.LockOSThread() // Pdeathsig is sent when this thread ends (prctl(2))
	if err := c.Start(); errors.Is(err, syscall.EPERM) {
		return "", nil, unableError("namespaces cannot be made: " + err.Error())
	} else if err != nil {
		return "", nil, err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	go func() { <-stop; c.Process.Kill() }()
	err = c.Wait()
	if c.ProcessState.ExitCode() == 77 {
		return "", nil, unableError("no host could be made")
	}
	if err != nil {
		return "", nil, fmt.Errorf("not all is right: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, tableFile))
	if err != nil {
		return "", nil, err
	}
	list, err := os.ReadFile(filepath.Join(dir, missingFile))
	return string(text), strings.FieldsFunc(string(list), func(r rune) bool { return r == '\n' }), err
}

// What the process within leaves for the one outside.
const tableFile, missingFile = "table", "missing"

// first is the first process of a pid namespace: it starts this program again, waits for whatever ends, and ends as that does.
func first(args []string) error {
	p, err := os.StartProcess("/proc/self/exe", append([]string{"hosttest"}, args...), &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	for {
		var status unix.WaitStatus
		switch pid, err := unix.Wait4(-1, &status, 0, nil); {
		case err == unix.EINTR:
		case err != nil:
			return err
		case pid == p.Pid && status.Exited():
			os.Exit(status.ExitStatus())
		case pid == p.Pid:
			return fmt.Errorf("ended by %v", status.Signal())
		}
	}
}

// within runs every host.
func within(dir, cgroup, options string) error {
	var o runOptions
	if err := json.Unmarshal([]byte(options), &o); err != nil {
		return err
	}
	if err := settle(); err != nil {
		return unableError(err.Error())
	}
	w, err := newWorld(dir, cgroup)
	if err != nil {
		return err
	}
	w.long = o.Long
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	if o.Play != "" {
		return errors.Join(w.play(ctx, o.Where, o.Play), os.WriteFile(filepath.Join(dir, tableFile), nil, 0o644), os.WriteFile(filepath.Join(dir, missingFile), nil, 0o644))
	}
	list := w.habitats
	if o.Switches {
		list = w.changed
	}
	var rows []row
	bad, refused := 0, map[string]bool{}
	for _, h := range list() {
		if !strings.HasPrefix(h.name, o.Only) {
			continue
		}
		if h.start != nil {
			if err := h.start(ctx); err != nil {
				if !refused[h.name] {
					w.miss(h.name, err)
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
	table := tableOf(rows)
	if o.Switches {
		fmt.Print(table)
	}
	if bad > 0 {
		return fmt.Errorf("%d problems", bad)
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, tableFile), []byte(table), 0o644), os.WriteFile(filepath.Join(dir, missingFile), []byte(strings.Join(w.missing, "\n")), 0o644))
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
