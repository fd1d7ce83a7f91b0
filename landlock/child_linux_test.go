//go:build linux && (amd64 || arm64)

package landlock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// A test that restricts runs this binary again with a job in jobEnv: the child restricts its
// only thread that matters, does the acts, and prints what each of them gave.
const jobEnv = "HOLDFAST_LANDLOCK_JOB"

// noRaceSleep keeps a program built with -race from sleeping for a second as it exits.
const noRaceSleep = "GORACE=atexit_sleep_ms=0"

// job is what a child does.
type job struct {
	Rulesets []Ruleset // put on in this order; none: a control that shows what the acts do unrestricted
	Acts     []act
	Exit     bool // end at once with status 0
	Wait     bool // before ending, say so on stdout and wait for stdin to end
}

// act is one thing to try. Its outcome is "ok" or the name of an errno.
type act struct {
	Do   string
	A, B string `json:",omitempty"`
	N    int    `json:",omitempty"`
	Job  *job   `json:",omitempty"`
}

func (a act) String() string { return strings.TrimSpace(a.Do + " " + a.A + " " + a.B) }

func TestMain(m *testing.M) {
	text := os.Getenv(jobEnv)
	if text == "" {
		kerneltest.Main(m)
		return
	}
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		fatal(err)
	}
	if j.Exit {
		os.Exit(0)
	}
	runtime.LockOSThread()
	for _, r := range j.Rulesets {
		if err := restrict(r); err != nil {
			fatal(err)
		}
	}
	outcomes := []string{}
	for _, a := range j.Acts {
		outcomes = append(outcomes, outcome(a.do()))
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		fatal(err)
	}
	if j.Wait {
		os.Stdin.Read(make([]byte, 1))
	}
	os.Exit(0)
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}

// restrict puts on the calling thread what this kernel can hold of r.
func restrict(r Ruleset) error {
	abi, err := ABI()
	if err != nil {
		return err
	}
	if r, _, err = Downgrade(r, abi); err != nil {
		return err
	}
	f, err := Build(r)
	if err != nil {
		return err
	}
	defer f.Close()
	return RestrictThread(int(f.Fd()), 0)
}

func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		for name, e := range map[string]syscall.Errno{"EACCES": syscall.EACCES, "EPERM": syscall.EPERM, "EXDEV": syscall.EXDEV, "ENOENT": syscall.ENOENT} {
			if errno == e {
				return name
			}
		}
		return fmt.Sprintf("errno %d", errno)
	}
	return err.Error()
}

// user is who a child runs as.
type user struct {
	name string
	cred *syscall.Credential
}

// users are those that this test process can be: only itself, or of root where All tests are asked for nobody too.
func users(t testing.TB) []user {
	switch {
	case os.Getuid() != 0:
		return []user{{"as the ordinary user of the test", nil}}
	case !kerneltest.All(t):
		return []user{{"as root", nil}}
	}
	return []user{{"as root", nil}, {"as nobody", &syscall.Credential{Uid: 65534, Gid: 65534}}}
}

// needABI skips where the kernel's Landlock is older than abi, or missing, and returns what it is.
func needABI(t *testing.T, abi int) int {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(abi))
	have, err := ABI()
	must(t, err)
	return have
}

// self is a command for this binary with a job. Its path works for users who cannot search the directory it is in.
func self(j job) *exec.Cmd {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{jobEnv + "=" + string(text), "GOMAXPROCS=1", noRaceSleep}
	return cmd
}

// run runs a job in a child and returns the outcome of each act.
func run(t *testing.T, u user, j job, change ...func(*exec.Cmd)) []string {
	t.Helper()
	cmd := self(j)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: u.cred, Pdeathsig: syscall.SIGKILL}
	for _, f := range change {
		f(cmd)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("child: %v: %s", err, stderr.Bytes())
	}
	var outcomes []string
	if err := json.Unmarshal(out, &outcomes); err != nil || len(outcomes) != len(j.Acts) {
		t.Fatalf("child said %q: %v", out, err)
	}
	return outcomes
}

// fixture makes a fresh tree that everybody may change:
//
//	in/  file  sub/file  empty/  exe  full/x
//	out/ the same
func fixture(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "landlock-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	for _, top := range []string{"in", "out"} {
		for _, d := range []string{"sub", "empty", "full"} {
			must(t, os.MkdirAll(filepath.Join(dir, top, d), 0o777))
		}
		for name, data := range map[string][]byte{"file": []byte("text"), "sub/file": []byte("text"), "full/x": nil, "exe": exe} {
			must(t, os.WriteFile(filepath.Join(dir, top, name), data, 0o777))
		}
	}
	must(t, filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if os.Getuid() == 0 {
			if err := os.Chown(p, 65534, 65534); err != nil {
				return err
			}
		}
		return os.Chmod(p, 0o777)
	}))
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
