//go:build linux && (amd64 || arm64)

package rlimit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A test that sets limits runs this binary again with an act and limits in its environment:
// the child sets them, does the act, and prints what came of it.
const (
	actEnv    = "HOLDFAST_RLIMIT_ACT"
	limitsEnv = "HOLDFAST_RLIMIT_LIMITS"
	// noRaceSleep keeps a program built with -race from sleeping for a second as it exits.
	noRaceSleep = "GORACE=atexit_sleep_ms=0"
)

func TestMain(m *testing.M) {
	name := os.Getenv(actEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	var l Limits
	if err := json.Unmarshal([]byte(os.Getenv(limitsEnv)), &l); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	if err := l.Apply(); err != nil {
		fmt.Println("apply:", err)
		os.Exit(4)
	}
	fmt.Println(acts[name]())
	os.Exit(0)
}

// acts use up a resource and say how that ended.
var acts = map[string]func() string{
	"write 1 MiB": func() string {
		f, err := os.CreateTemp("", "rlimit-test-")
		if err != nil {
			return err.Error()
		}
		defer os.Remove(f.Name())
		_, err = f.Write(make([]byte, 1<<20))
		return verdict(err)
	},
	"open 100 files": func() string {
		var held []*os.File
		defer func() { clear(held) }()
		for range 100 {
			f, err := os.Open("/dev/null")
			if err != nil {
				return verdict(err)
			}
			held = append(held, f)
		}
		return "ok"
	},
	"map 1 GiB": func() string {
		// NORESERVE: the machine may have less memory than that.
		_, err := syscall.Mmap(-1, 0, 1<<30, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE|syscall.MAP_NORESERVE)
		return verdict(err)
	},
	"lock 1 MiB": func() string {
		b, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		if err == nil {
			err = syscall.Mlock(b)
		}
		return verdict(err)
	},
	"spin":  func() string { return become("while :; do :; done") },
	"abort": func() string { return become("kill -ABRT $$") },
	"fork":  func() string { return verdict(exec.Command("/bin/true").Run()) },
	"start with 200 KB of arguments": func() string {
		return verdict(exec.Command("/bin/true", strings.Repeat("x", 100_000), strings.Repeat("x", 100_000)).Run())
	},
	"read a child's limits": func() string {
		out, err := exec.Command("/bin/sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -Hc").CombinedOutput()
		if err != nil {
			return err.Error()
		}
		return strings.Join(strings.Fields(string(out)), " ")
	},
	"set the soft limit to one below the hard one": func() string {
		v, err := Current()
		if err != nil {
			return err.Error()
		}
		cmd := exec.Command("/proc/self/exe") // starts with the soft limit that this process was given
		cmd.Env = []string{actEnv + "=read a child's limits", fmt.Sprintf(`%s={"nofile": "%d:inherited"}`, limitsEnv, v[NoFile].Hard-1), noRaceSleep}
		out, err := cmd.Output()
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(out))
	},
	"print the limits": func() string {
		v, err := Current()
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(v)
	},
}

// become makes this process a shell, because Go handles the signals that the limits send.
func become(script string) string {
	return verdict(syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil))
}

func verdict(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno.Error()
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

var nobody = &syscall.Credential{Uid: 65534, Gid: 65534}

// child runs an act under limits, as nobody if this is root, and returns what it said and how it ended.
func child(t *testing.T, act string, l Limits, change ...func(*exec.Cmd)) (string, *os.ProcessState) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{actEnv + "=" + act, limitsEnv + "=" + text(t, l), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1", noRaceSleep}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = nobody
	}
	for _, f := range change {
		f(cmd)
	}
	var out bytes.Buffer
	cmd.Stdout = &out // the act's word; the runtime's own, with -cover for one, goes to stderr
	cmd.Run()
	return strings.TrimSpace(out.String()), cmd.ProcessState
}

func TestKernelLimitsHold(t *testing.T) {
	for _, tt := range []struct {
		name, act string
		free      Limits // enough: the act works
		tight     Limits
		want      string
	}{
		{"file size", "write 1 MiB", Limits{FSize: At(1 << 20)}, Limits{FSize: At(1<<20 - 1)}, "file too large"},
		{"descriptors", "open 100 files", Limits{NoFile: At(150)}, Limits{NoFile: At(50)}, "too many open files"},
		{"address space", "map 1 GiB", Limits{AS: At(Inherited)}, Limits{AS: At(2 << 30)}, "cannot allocate memory"},
		{"data", "map 1 GiB", Limits{Data: At(2 << 30)}, Limits{Data: At(1 << 30)}, "cannot allocate memory"},
		{"locked memory", "lock 1 MiB", Limits{MemLock: At(2 << 20)}, Limits{MemLock: At(1 << 16)}, "cannot allocate memory"},
		{"arguments, a quarter of the stack", "start with 200 KB of arguments", Limits{Stack: At(8 << 20)}, Limits{Stack: At(1 << 17)}, "argument list too long"},
		{"processes", "fork", Limits{}, Limits{NProc: At(1)}, "resource temporarily unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, _ := child(t, tt.act, tt.free); got != "ok" {
				t.Errorf("with room: %s", got)
			}
			got, state := child(t, tt.act, tt.tight)
			if tt.act == "fork" && refusedFork(got, state) {
				return
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("without room: %s, want %s", got, tt.want)
			}
		})
	}
}

// refusedFork reports whether NProc has refused the act's fork, or before it a
// thread that the Go runtime wanted: the runtime then ends with status 2.
func refusedFork(got string, state *os.ProcessState) bool {
	return got == "resource temporarily unavailable" || got == "" && state.ExitCode() == 2
}

func TestKernelProcessorTimeEndsInSIGXCPU(t *testing.T) {
	kerneltest.Long(t)
	_, state := child(t, "spin", Limits{CPU: Between(1, 5)})
	if ws := state.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGXCPU {
		t.Errorf("ended with %v, want SIGXCPU", state)
	}
}

func TestKernelProcessorTimeAtTheHardLimitEndsInSIGKILL(t *testing.T) {
	kerneltest.Long(t)
	_, state := child(t, "spin", Limits{CPU: At(1)})
	if ws := state.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, want SIGKILL", state)
	}
}

func TestKernelNoCoreIsWritten(t *testing.T) {
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil {
		t.Fatal(err)
	}
	if pattern[0] == '|' {
		t.Skip("cores go to a program on this machine (core_pattern), where the limit does not apply")
	}
	if inherited, err := Current(); err != nil || inherited[Core].Hard < 1<<20 {
		t.Skipf("this test process may write no core (hard limit %d), so nothing would show the difference", inherited[Core].Hard)
	}
	dir, err := os.MkdirTemp("", "rlimit-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		l    Limits
		core bool
	}{{Limits{Core: At(0)}, false}, {Limits{Core: Between(1<<20, Inherited)}, true}} {
		out, state := child(t, "abort", tt.l, func(c *exec.Cmd) { c.Dir = dir })
		if ws := state.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.CoreDump() != tt.core {
			t.Errorf("%s: ended with %v (%s), want a core: %v", text(t, tt.l), state, out, tt.core)
		}
	}
}

func TestKernelChildrenHaveTheLimitsThatWereSet(t *testing.T) {
	l := Limits{NoFile: Between(333, 444), Core: At(0)}
	if got, _ := child(t, "read a child's limits", l); got != "333 444 0" {
		t.Errorf("a child reads %q", got)
	}
}

// Go raises its soft NoFile at the start to one below the hard limit and, where it still finds
// that, gives children the former one back. A limit of just that number must reach them all
// the same.
func TestKernelChildrenHaveTheLimitThatWasSetEvenIfGoHadRaisedItToThat(t *testing.T) {
	inherited, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(inherited[NoFile].Hard - 1)
	l := Limits{NoFile: Between(500, Inherited)}
	if got, _ := child(t, "set the soft limit to one below the hard one", l); !strings.HasPrefix(got, want+" ") {
		t.Errorf("a child reads %q, want %s", got, want)
	}
}

func TestKernelApplySetsWhatResolveSays(t *testing.T) {
	inherited, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	l := Defaults(inherited, 0)
	settings, err := l.Resolve(inherited)
	if err != nil {
		t.Fatal(err)
	}
	want := inherited
	for _, s := range settings {
		want[s.Resource] = Limit{s.Soft, s.Hard}
	}
	if got, _ := child(t, "print the limits", l); got != fmt.Sprint(want) {
		t.Errorf("the child has %s, want %v", got, want)
	}
}

func TestKernelApplySetsNothingIfOneFieldCannotBe(t *testing.T) {
	before, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	var bad *FieldError
	if err := (Limits{Core: At(0), NoFile: At(uint64(1) << 30)}).Apply(); !errors.As(err, &bad) || bad.Field != "NoFile" {
		t.Errorf("error %v", err)
	}
	if after, _ := Current(); !reflect.DeepEqual(before, after) {
		t.Errorf("limits were %v and are %v", before, after)
	}
}
