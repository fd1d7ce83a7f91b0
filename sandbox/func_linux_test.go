package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// mentioned is initialised before the functions that mention it.
var mentioned = strings.Repeat("there", 1)

var (
	echoFunc = Func("echo", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		text, err := io.ReadAll(in)
		fmt.Fprintf(out, "%s %q %q %s %s", text, args, os.Args, mentioned, os.Getenv("VALUE"))
		return err
	})
	failFunc = Func("fail", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		return errors.New(args[0] + "\x00")
	})
	panicFunc = Func("panic", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error { panic(args[0]) })
	exitFunc  = Func("exit", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		switch args[0] {
		case "0":
			os.Exit(0)
		case "7":
			os.Exit(7)
		case "kill":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		go panic(args[0])
		select {}
	})
	filesFunc = Func("descriptors", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		c := exec.Command("/bin/ls", "/proc/self/fd")
		c.Stdout = out
		return c.Run()
	})
	// conditionalFunc is registered in this process only: that of a function has its name as os.Args[0].
	conditionalFunc = func() *Function {
		if os.Args[0] == "conditional" {
			return nil
		}
		return Func("conditional", func(context.Context, io.Reader, io.Writer, ...string) error { return nil })
	}()
	waitFunc = Func("wait", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		fmt.Fprintln(out, "ready")
		<-ctx.Done()
		return ctx.Err()
	})
	floodFunc = Func("flood", func(ctx context.Context, in io.Reader, out io.Writer, args ...string) error {
		for range 16 {
			if _, err := out.Write(make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return errors.New(strings.Repeat("long", 1<<20))
	})
)

// TestKernelAFunctionRunsInASession: its input, output, arguments, variables and how it ends.
func TestKernelAFunctionRunsInASession(t *testing.T) {
	inSessions(t, sessionWalls[:2], func(t *testing.T, s *Session, here walls) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		at := func(c *Cmd) *Cmd { c.Dir = "/"; return c }
		c := at(echoFunc.Command(s, "one", "two\n"))
		c.Stdin, c.ExtraFiles, c.Env = strings.NewReader("input"), []*os.File{nil, w}, []string{"VALUE=own"}
		if got, want := outputOf(t, c), `input ["one" "two\n"] ["echo" "one" "two\n"] there own`; got != want {
			t.Errorf("%s, not %s", got, want)
		}
		if r := c.Report(); r.Held() == here.bare() {
			t.Errorf("%v", r)
		}
		if got := outputOf(t, at(filesFunc.Command(s))); got != "0\n1\n2\n3" {
			t.Errorf("descriptors of a function's child: %q", got)
		}
		for _, test := range []struct {
			name string
			cmd  *Cmd
			want policy.FuncError
			exit int
		}{
			{"an error", failFunc.Command(s, "a \x1b[31mred \xff text\n"), policy.FuncError{Function: "fail", Message: "a \x1b[31mred \uFFFD text\n\x00"}, 1},
			{"an empty one", failFunc.Command(s, ""), policy.FuncError{Function: "fail", Message: "\x00"}, 1},
			{"a panic", panicFunc.Command(s, "text"), policy.FuncError{Function: "panic", Message: "text", Panicked: true}, 2},
			{"exit 0", exitFunc.Command(s, "0"), policy.FuncError{Function: "exit", Message: "the process ended before the function returned"}, 0},
			{"exit 7", exitFunc.Command(s, "7"), policy.FuncError{Function: "exit", Message: "the process ended before the function returned"}, 7},
			{"a panic of another goroutine", exitFunc.Command(s, "panic"), policy.FuncError{Function: "exit", Message: "the process ended before the function returned"}, 2},
			{"not registered there", conditionalFunc.Command(s), policy.FuncError{Function: "conditional", Message: "not registered in the process that was started for it: register it at package level, under no condition"}, 125},
			{"killed", exitFunc.Command(s, "kill"), policy.FuncError{Function: "exit", Message: "the process ended before the function returned"}, -1},
		} {
			err := at(test.cmd).Run()
			var failed *policy.FuncError
			if !errors.As(err, &failed) || failed.Message != test.want.Message || failed.Function != test.want.Function || failed.Panicked != test.want.Panicked {
				t.Errorf("%s: %#v", test.name, err)
				continue
			}
			var exit *exec.ExitError
			if got := test.cmd.ProcessState.ExitCode(); got != test.exit || errors.As(err, &exit) != (test.exit != 0) {
				t.Errorf("%s: status %d, not %d: %v", test.name, got, test.exit, err)
			}
			if strings.ContainsAny(err.Error(), "\x1b\x00\n") {
				t.Errorf("%s: an error speaks to the terminal: %q", test.name, err)
			}
			if failed.Panicked && !strings.Contains(failed.Stack, "func_linux_test.go") {
				t.Errorf("%s: %s", test.name, failed.Stack)
			}
		}
		c = at(waitFunc.Command(s))
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		c.Process.Signal(syscall.SIGTERM)
		var failed *policy.FuncError
		if err := c.Wait(); !errors.As(err, &failed) || failed.Message != context.Canceled.Error() {
			t.Errorf("SIGTERM: %v", err)
		}
		var all bytes.Buffer
		c = at(floodFunc.Command(s))
		c.Stdout = &all
		if err := c.Run(); !errors.As(err, &failed) || len(failed.Message) != 16<<10 || all.Len() != 16<<20 {
			t.Errorf("a flood: %d bytes, %d of the error", all.Len(), len(failed.Message))
		}
		c = echoFunc.Command(s)
		c.Dir = "/nowhere"
		if err := c.Run(); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("in a directory that is not there: %v", err)
		}
	})
}

var _ = offer(programs, "function thief", func(args []string) {
	pid := 0
	fmt.Sscan(args[0], &pid)
	problem := func(what string, err error) {
		if err == nil {
			fmt.Println(what)
		}
	}
	problem("ptrace", unix.PtraceSeize(pid))
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		fmt.Println("no such process")
	}
	for n := range 64 {
		_, err := unix.PidfdGetfd(fd, n, 0)
		problem(fmt.Sprint("pidfd_getfd ", n), err)
		for _, flags := range []int{os.O_RDONLY, os.O_WRONLY} {
			f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/%d", pid, n), flags|unix.O_NONBLOCK, 0)
			problem(fmt.Sprint("descriptor ", n), err)
			f.Close()
		}
	}
	for _, name := range []string{"mem", "environ", "exe", "root", "cwd/x", "attr/current", "clear_refs", "oom_score_adj"} {
		for _, flags := range []int{os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREATE} {
			if f, err := os.OpenFile(fmt.Sprintf("/proc/%d/%s", pid, name), flags, 0); name != "oom_score_adj" && name != "attr/current" || flags != os.O_RDONLY {
				problem(fmt.Sprint(name, " ", flags), err)
				f.Close()
			}
		}
	}
	for _, secret := range []string{"secret argument", "secret variable"} {
		if text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(text), secret) {
			fmt.Println(secret)
		}
	}
})

// TestKernelAttackAFunction from another command of its session: its result, program, arguments and memory are its own; to end it
// is an end, and no result.
func TestKernelAttackAFunction(t *testing.T) {
	inSession(t, func(t *testing.T, s *Session) {
		c := waitFunc.Command(s, "secret argument")
		c.Dir, c.Env = "/", []string{"VALUE=secret variable"}
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		io.ReadFull(out, make([]byte, len("ready\n")))
		list := awaitProcesses(t, s, 1, "wait")
		if len(list) != 1 {
			t.Fatal(list)
		}
		if got := outputOf(t, s.program("function thief", fmt.Sprint(list[0].PID))); got != "" {
			t.Errorf("another command has of a function: %s", got)
		}
		outputOf(t, s.sh(fmt.Sprintf("kill -9 %d", list[0].PID)))
		var failed *policy.FuncError
		if err := c.Wait(); !errors.As(err, &failed) || endedBy(err) != syscall.SIGKILL {
			t.Errorf("killed: %v", err)
		}
	})
}

var _ = offer(programs, "function main", func([]string) { fmt.Print("main") })

var _ = offer(programs, "function pretender", func([]string) {
	exe, _ := os.Open("/proc/self/exe")
	call, _ := unix.MemfdCreate("call", unix.MFD_ALLOW_SEALING)
	unix.Write(call, []byte("HOLDFAST FUNCTION\n\x04\x00\x00\x00fail\x04\x00\x00\x00text"))
	notSealed := os.NewFile(uintptr(call), "call")
	for _, call := range []*os.File{exe, nil, notSealed} {
		for _, as := range []string{"/dev/fd/7", "/proc/self/fd/7"} {
			c := &exec.Cmd{Path: as, Args: []string{attackTool, "function main"}, ExtraFiles: []*os.File{nil, nil, call, exe, exe}}
			if out, err := c.CombinedOutput(); err != nil || string(out) != "main" {
				fmt.Printf("%s: %v %s\n", as, err, out)
			}
		}
	}
})

// TestAProcessWithoutACallIsNoFunction, by whatever name it was executed: its main is called.
func TestAProcessWithoutACallIsNoFunction(t *testing.T) {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{attackTool, "function pretender"}
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v %s", err, out)
	}
}

var _ = offer(programs, "function setuid", func([]string) {
	if err := syscall.Setresuid(65534, 0, 0); err != nil {
		fmt.Print(err)
		return
	}
	exe, _ := os.Open("/proc/self/exe")
	fd, _ := unix.MemfdCreate("call", unix.MFD_ALLOW_SEALING)
	unix.Write(fd, []byte("HOLDFAST FUNCTION\n\x04\x00\x00\x00fail\x04\x00\x00\x00text"))
	unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	c := &exec.Cmd{Path: "/dev/fd/7", Args: []string{attackTool, "function main"}, ExtraFiles: []*os.File{nil, nil, os.NewFile(uintptr(fd), "call"), exe, exe}}
	out, _ := c.CombinedOutput()
	fmt.Printf("%d %s", c.ProcessState.ExitCode(), out)
})

// TestAProgramThatGainedRightsCallsNoFunction: the functions of a setuid program, the file server among them, would act for its caller.
// Two user ids stand for the bit: the kernel sets AT_SECURE for both.
func TestAProgramThatGainedRightsCallsNoFunction(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to have two user ids")
	}
	c := exec.Command("/proc/self/exe")
	c.Args = []string{attackTool, "function setuid"}
	if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "125 sandbox: no function is called") {
		t.Errorf("%v %q", err, out)
	}
}

// TestFuncRefusesMistakes of the program.
func TestFuncRefusesMistakes(t *testing.T) {
	body := func(context.Context, io.Reader, io.Writer, ...string) error { return nil }
	for _, test := range []struct {
		name, function, want string
		body                 func(context.Context, io.Reader, io.Writer, ...string) error
	}{
		{"a name that is registered", "echo", "is registered twice", body},
		{"no name", "", "a name has 1 to 128 bytes", body},
		{"a name with a NUL", "a\x00b", "no NUL", body},
		{"a long name", strings.Repeat("n", 129), "a name has 1 to 128 bytes", body},
		{"no function", "nothing", "it is nil", nil},
		{"after the initialisation", "late", "after the program's initialisation", body},
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, test.want) {
					t.Errorf("%s: %s, not %s", test.name, v, test.want)
				}
			}()
			Func(test.function, test.body)
		}()
	}
}
