package sandbox

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "tracers", beTracers), offer(programs, "second tracer", beSecondTracer)

const refusedTrace = "seize: invalid argument"

// tracerOutcomes are what the two processes of beTracers get, by the step.
var tracerOutcomes = map[string]string{
	"the first process asks":                            "ok",
	"another thread of it asks":                         "ok",
	"it sets the option":                                "ok",
	"it sets the option by the old number":              "ok",
	"a second process asks for a child of its own":      refusedTrace,
	"the second asks for the first":                     refusedTrace,
	"the second asks when the first tracer has ended":   "ok",
	"the first asks while the second lives":             refusedTrace,
	"the first asks for the second, which is a tracer":  refusedTrace,
	"the first seizes the second without the option":    "ok",
	"the first sets the option on its tracee, a tracer": "set options: invalid argument",
	"the first asks when the second has ended":          "ok",
}

// beTracers asks for the option in two processes, in both orders. No two of them ever
// trace each other: each request that could close the pair must be refused, and what
// would be traced by it traces but a process that sleeps.
func beTracers([]string) {
	say := func(step string, err error) {
		outcome := "ok"
		if err != nil {
			outcome = err.Error()
		}
		fmt.Printf("%s\t%s\n", step, outcome)
	}
	other := func() *secondTracer {
		o, err := startSecond()
		if err != nil {
			say("start", err)
			os.Exit(1)
		}
		return o
	}
	// A process of its own is the first to ask, so that it can end.
	one := other()
	say("the first process asks", one.ask("child", seizeRequest))
	say("another thread of it asks", one.ask("child", seizeRequest))
	say("it sets the option", one.ask("child", setOptions))
	if runtime.GOARCH == "amd64" {
		say("it sets the option by the old number", one.ask("child", oldSetOptions))
	}
	two := other()
	say("a second process asks for a child of its own", two.ask("child", seizeRequest))
	say("the second asks for the first", two.ask("process", one.cmd.Process.Pid))
	one.end()
	say("the second asks when the first tracer has ended", two.ask("child", seizeRequest))
	say("the first asks while the second lives", traceWith(seizeRequest, unix.PTRACE_O_TRACEEXIT))
	say("the first asks for the second, which is a tracer", seizeProcess(two.cmd.Process.Pid, unix.PTRACE_O_TRACEEXIT))
	say("the first seizes the second without the option", seizeProcess(two.cmd.Process.Pid, 0))
	awaitUntraced(two.cmd.Process.Pid)
	say("the first sets the option on its tracee, a tracer", onThread(func() error { return trace(two.cmd.Process.Pid, setOptions, unix.PTRACE_O_TRACEEXIT) }))
	two.end()
	say("the first asks when the second has ended", traceWith(seizeRequest, unix.PTRACE_O_TRACEEXIT))
}

// awaitUntraced returns when the thread that has traced a process is gone, and so lets go of it.
func awaitUntraced(pid int) {
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil || bytes.Contains(status, []byte("TracerPid:\t0\n")) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// beSecondTracer asks for the option, as its input says.
func beSecondTracer([]string) {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var what string
		var n int
		fmt.Sscan(in.Text(), &what, &n)
		err := error(nil)
		if what == "child" {
			err = traceWith(uintptr(n), unix.PTRACE_O_TRACEEXIT)
		} else {
			err = seizeProcess(n, unix.PTRACE_O_TRACEEXIT)
		}
		if err == nil {
			err = errors.New("ok")
		}
		fmt.Println(err)
	}
}

// A secondTracer is another process that asks.
type secondTracer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startSecond() (*secondTracer, error) {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{attackTool, "second tracer"}
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &secondTracer{c, in, bufio.NewReader(out)}, c.Start()
}

func (s *secondTracer) ask(what string, n int) error {
	fmt.Fprintln(s.in, what, n)
	line, err := s.out.ReadString('\n')
	if err != nil || line == "ok\n" {
		return err
	}
	return errors.New(strings.TrimSpace(line))
}

func (s *secondTracer) end() {
	s.in.Close()
	s.cmd.Wait()
}

// onThread runs trace's requests on a thread that ends with them, and so lets go.
func onThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}

// seizeProcess seizes a process and lets go of it.
func seizeProcess(pid int, options uintptr) error {
	return onThread(func() error {
		if err := rawCall(unix.SYS_PTRACE, seizeRequest, uintptr(pid), 0, options); err != nil {
			return fmt.Errorf("seize: %w", err)
		}
		return nil
	})
}

// tracedPolicy has a supervisor, which files that can be written need.
func tracedPolicy(t *testing.T, w walls) Policy {
	p := attackPolicy(t, makeGrounds(t, 1), w)
	p.Files.Protect = policy.Protect{}
	p.Env.Pass = append(p.Env.Pass, "PATH")
	return p
}

// With a supervisor one process at a time may ask for the option, so strace works.
func TestKernelAttackTracers(t *testing.T) {
	kerneltest.Long(t)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		c := hostile(t, attackSandbox(t, tracedPolicy(t, w), w), "tracers")
		var complained bytes.Buffer
		c.Stderr = &complained
		out, err := c.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, complained.Bytes())
		}
		got := map[string]string{}
		for line := range strings.Lines(string(out)) {
			step, outcome, _ := strings.Cut(strings.TrimSpace(line), "\t")
			got[step] = outcome
		}
		for _, step := range slices.Sorted(maps.Keys(tracerOutcomes)) {
			if got[step] != tracerOutcomes[step] && !(runtime.GOARCH != "amd64" && strings.HasSuffix(step, "old number")) {
				t.Errorf("%s: %q, want %q", step, got[step], tracerOutcomes[step])
			}
		}
	})
}

// Debuggers work, with the option and without.
func TestKernelDebuggersWork(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for name, argv := range map[string][]string{
		"strace": {"strace", "-f", "-e", "trace=execve", "sh", "-c", "true; /bin/true"},
		"gdb":    {"gdb", "-nx", "-batch", "-ex", "run", "-ex", "info inferiors", "--args", "/bin/true"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				t.Skip("needs ", name, ": ", err)
			}
			eachWall(t, allSets, func(t *testing.T, w walls) {
				c := attackSandbox(t, tracedPolicy(t, w), w).Command("sh", "-c", `"$@" && "$@"`, "sh") // twice in one run
				c.Args = append(c.Args, argv...)
				c.Dir = "/"
				out, err := c.CombinedOutput()
				ends := map[string]string{"strace": "+++ exited with 0 +++", "gdb": "exited normally"}
				if err != nil || strings.Count(string(out), ends[name]) < 2 {
					t.Errorf("%v\n%s", err, out)
				}
			})
		})
	}
}
