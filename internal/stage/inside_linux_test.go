package stage

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
)

// toolEnv makes this test binary the tool of a sandbox: what it does is its
// arguments.
const toolEnv = "HOLDFAST_TEST_TOOL=1"

func TestMain(m *testing.M) {
	if os.Getenv("HOLDFAST_TEST_TOOL") != "" {
		if err := beTestTool(os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	kerneltest.Main(m)
}

// beTestTool does one thing and prints what came of it.
func beTestTool(args []string) error {
	switch args[0] {
	case "talk": // network, address: says "ping", prints the answer
		c, err := net.DialTimeout(args[1], args[2], time.Minute)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.WriteString(c, "ping"); err != nil {
			return err
		}
		answer := make([]byte, 64)
		n, err := c.Read(answer)
		fmt.Printf("%s", answer[:n])
		return err
	case "files": // prints what this process has open
		list, err := filepath.Glob("/proc/self/fd/*")
		for _, f := range list {
			if to, err := os.Readlink(f); err == nil {
				fmt.Println(filepath.Base(f), to)
			}
		}
		return err
	case "mode":
		info, err := os.Lstat(args[1])
		if err == nil {
			fmt.Print(info.Mode())
		}
		return err
	}
	if f := moreTools[args[0]]; f != nil {
		return f(args[1:])
	}
	return fmt.Errorf("no tool %q", args[0])
}

var moreTools = map[string]func(args []string) error{}

// An insider is a test's tool that runs in a sandbox of its own root and network.
type insider struct {
	t        *testing.T
	c        *Control
	template *Template
	cmd      *exec.Cmd
	in       io.WriteCloser // its standard input
	out      lockedBuffer
}

// A lockedBuffer can be read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (i *insider) output() string {
	i.out.mu.Lock()
	defer i.out.mu.Unlock()
	return i.out.b.String()
}

// toolFile is where the tool is if this program's own path cannot be used.
var toolFile string

// walls is a plan whose tool has its own root, /tmp and network, with steps of the
// test's between Loopback and Pivot, and more before the root is sealed.
func walls(before, after []plan.Action) plan.Plan {
	user := os.Geteuid() != 0
	exe := toolFile
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			panic(err)
		}
	}
	steps := []plan.Action{plan.PrivateMounts{}, plan.NewRoot{Private: true}, plan.Proc{}, plan.Private{At: "/tmp", Slot: "tmp", Mode: 0o1777},
		plan.Bind{Source: exe, At: "/tool"}}
	for _, link := range []string{"/usr", "/bin", "/lib", "/lib64"} { // what the tool may be linked to
		if to, err := os.Readlink(link); err == nil {
			steps = append(steps, plan.MakeLink{Path: link, Target: to})
		} else if _, err := os.Stat(link); err == nil {
			steps = append(steps, plan.Bind{Source: link, At: link, Dir: true})
		}
	}
	steps = append(append(append(steps, plan.Loopback{}), before...), plan.Pivot{})
	steps = append(append(steps, after...), plan.SealRoot{})
	if user {
		steps = append(append([]plan.Action{plan.MapIDs{}}, steps...), plan.NestUser{})
	}
	steps = append(steps, plan.SetNoNewPrivs{}, plan.DropCapabilities{KeepPtrace: user}, plan.Undumpable{})
	p := plan.Plan{Namespaces: plan.Namespaces{User: user, Mount: true, PID: true, IPC: true, UTS: true, Cgroup: true, Net: true}, DeadlineMS: 60_000}
	for _, a := range steps {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	if user {
		p.Steps = append(p.Steps, plan.Step{In: plan.Tool, Do: plan.DropLast{}})
	}
	p.Steps = append(p.Steps, plan.Step{In: plan.Tool, Do: plan.Chdir{}}, plan.Step{In: plan.Tool, Do: plan.RestoreSignals{}})
	return p
}

// begin starts the test's tool under a plan.
func begin(t *testing.T, p plan.Plan, args ...string) *insider {
	t.Helper()
	return beginWith(t, p, func(i *insider) { i.c.AwaitStart() }, args...)
}

// beginWith is begin with another way of awaiting the start.
func beginWith(t *testing.T, p plan.Plan, await func(i *insider), args ...string) *insider {
	t.Helper()
	return beginAll(t, "/tool", p, await, args...)
}

// beginAt is begin with the tool at another path.
func beginAt(t *testing.T, path string, p plan.Plan, args ...string) *insider {
	t.Helper()
	return beginAll(t, path, p, func(i *insider) { i.c.AwaitStart() }, args...)
}

// alter, if it is set, changes a template before it is run.
var alter func(*Template)

// before, if it is set, is given a Control before its stage is started.
var before func(*Control)

func beginAll(t *testing.T, path string, p plan.Plan, await func(i *insider), args ...string) *insider {
	t.Helper()
	l, err := launch.Default()
	if err != nil {
		t.Fatal(err)
	}
	i := &insider{t: t}
	if i.template, err = Compile(p, Identity{UID: os.Geteuid(), GID: os.Getegid()}); err != nil {
		t.Fatal(err)
	}
	if alter != nil {
		alter(i.template)
	}
	if i.c, err = NewControl(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.c.Close)
	if before != nil {
		before(i.c)
	}
	program, err := i.template.Sealed(Run{Path: path, Argv: append([]string{"tool"}, args...), Env: []string{toolEnv, "GORACE=atexit_sleep_ms=0"}, Quiet: true, Layout: l.Layout(3)})
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	i.cmd = &exec.Cmd{Path: l.Path, Env: l.Layout(3).Env, Dir: "/", ExtraFiles: l.Files(nil, program, i.c.Child), Stdout: &i.out, Stderr: &i.out}
	if i.in, err = i.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { i.cmd.Process.Kill(); i.end() })
	i.c.Passed()
	await(i)
	return i
}

// held fails the test if the tool was not started.
func (i *insider) held() *insider {
	i.t.Helper()
	if !i.c.Started || i.c.Failed != nil {
		i.t.Fatalf("started %v, %s: %+v", i.c.Started, i.failed(), i.c.Failed)
	}
	return i
}

func (i *insider) failed() string {
	if i.c.Failed == nil {
		return ""
	}
	return i.template.StepName(i.c.Failed.Step)
}

// end waits for the tool's end and returns what it printed.
func (i *insider) end() string {
	i.in.Close()
	i.cmd.Wait()
	i.c.Drain()
	i.c.AwaitEmpty(nil, MostEnd)
	i.c.AtEnd(func(*os.File) {})()
	return strings.TrimSpace(i.output())
}
