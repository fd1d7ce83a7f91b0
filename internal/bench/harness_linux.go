package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/seccomp"
)

const (
	harnessWorker = "harness-worker"
	touchedMiB    = 1024
)

// withoutNamespaces is a harness's second argument: a filter as Docker's refuses namespaces to it.
const withoutNamespaces = "without-namespaces"

// beHarness is a harness that holds as many MiB of touched memory as its
// argument says, in the workspace of its third or a new one, and starts a tool whenever it reads a line. It answers how many
// nanoseconds that took.
func beHarness(args []string) error {
	mib, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	change := func(p sandbox.Policy) sandbox.Policy { return p }
	if len(args) > 1 && args[1] == withoutNamespaces {
		change = sandbox.Policy.InContainer
		if err := refuseNamespaces(); err != nil {
			return err
		}
	}
	memory := make([]byte, mib<<20)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	dir, s, err := workspace(change)
	if err == nil && len(args) > 2 {
		os.RemoveAll(dir)
		dir = args[2]
		s, err = sandbox.New(change(sandbox.Workspace(dir)))
	} else {
		defer os.RemoveAll(dir)
	}
	if err != nil {
		return err
	}
	for in := bufio.NewReader(os.Stdin); ; {
		if _, err := in.ReadString('\n'); err != nil {
			break
		}
		began := time.Now()
		c := s.Command(trivial)
		c.Dir = dir
		if err := c.Run(); err != nil {
			return err
		}
		fmt.Println(int64(time.Since(began)))
	}
	runtime.KeepAlive(memory)
	return nil
}

// refuseNamespaces loads a filter on this process.
func refuseNamespaces() error {
	arch, err := seccomp.Native()
	if err != nil {
		return err
	}
	user := seccomp.Arg{Index: 0, Op: seccomp.MaskedEqual, Mask: syscall.CLONE_NEWUSER, Value: syscall.CLONE_NEWUSER}
	program, err := seccomp.Filter{Default: seccomp.Allow, Rules: []seccomp.Rule{
		{Names: []string{"unshare", "mount", "setns"}, Action: seccomp.Errno(seccomp.EPERM)},
		{Names: []string{"clone"}, Args: []seccomp.Arg{user}, Action: seccomp.Errno(seccomp.EPERM)},
		{Names: []string{"clone3"}, Action: seccomp.Errno(seccomp.ENOSYS)},
	}}.Compile(arch)
	if err != nil {
		return err
	}
	_, err = program.Load(seccomp.LoadOptions{})
	return err
}

// A worker is a running program that answers lines.
type worker struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newWorker(name string, args ...string) (*worker, error) {
	w := &worker{cmd: exec.Command(name, args...)}
	w.cmd.Stderr = os.Stderr
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.out = in, bufio.NewReader(out)
	return w, w.cmd.Start()
}

// ask sends a line and reads the answer, a number of nanoseconds.
func (w *worker) ask(line string) (took time.Duration, err error) { return took, w.askFor(line, &took) }

// askFor sends a line and reads the answer, a line of JSON.
func (w *worker) askFor(line string, answer any) error {
	if _, err := fmt.Fprintln(w.in, line); err != nil {
		return err
	}
	text, err := w.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

func (w *worker) close() {
	w.in.Close()
	w.cmd.Wait()
}

// harness measures the start from harnesses of three kinds.
func harness(rounds int) ([]table, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	large, size, err := buildLarge()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(large.dir)
	var list []contender
	for _, h := range []struct {
		name string
		argv []string
	}{
		{"a small harness", []string{self, harnessWorker, "0"}},
		{fmt.Sprintf("%d MiB of touched memory", touchedMiB), []string{self, harnessWorker, strconv.Itoa(touchedMiB)}},
		{fmt.Sprintf("a binary of %d MB, its init functions take %d ms", size>>20, large.initTime.Milliseconds()), []string{large.program}},
	} {
		w, err := newWorker(h.argv[0], h.argv[1:]...)
		if err != nil {
			return nil, err
		}
		defer w.close()
		list = append(list, contender{h.name, func() (time.Duration, error) { return w.ask("start") }})
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("Start to end of %s from harnesses of several kinds, %d rounds: medians and quartiles", trivial, rounds),
		head: []string{"", "ms", "x a small harness"}}
	for i, name := range r.names {
		t.add(name, r.time(i, time.Millisecond).String(), r.ratio(i, 0).String())
	}
	return []table{t}, nil
}
