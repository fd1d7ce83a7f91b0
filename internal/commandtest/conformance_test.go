package commandtest

import (
	"github.com/holdfast-dev/holdfast/internal/kerneltest"

	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// A recorder is a context that does something each time it is asked whether it
// is done, and notes from which goroutine.
type recorder struct {
	context.Context
	mu    sync.Mutex
	asked int
	at    []func()
}

func (r *recorder) Done() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked < len(r.at) {
		r.at[r.asked]()
	}
	r.asked++
	return r.Context.Done()
}

// TestConformanceOrderOfStart pins what the sandbox relies on and os/exec does
// not promise: Start reads Path before it asks the context whether it is done,
// and everything else after; it asks a second time when the process has been
// started, and a third time where it watches. If a new Go does otherwise,
// sandbox's run has to change; until then its stage finds no program and exits.
func TestConformanceOrderOfStart(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &recorder{Context: ctx}
	c := exec.CommandContext(r, exe)
	c.Args = []string{"wrong"}
	c.Env = []string{"CONFORMANCE=wrong"}
	c.Dir = "/nonexistent"
	c.ExtraFiles = []*os.File{nil}
	dir := t.TempDir()
	started := false
	watched := make(chan struct{})
	r.at = []func(){
		func() {
			if c.Process != nil {
				t.Error("the process was started before the first question")
			}
			c.Path = "/nonexistent/tool" // too late
			c.Args = []string{conformance, dir}
			c.Env = append(os.Environ(), "CONFORMANCE=right")
			c.Dir = dir
			c.ExtraFiles = []*os.File{nil, file}
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
		},
		func() {
			started = c.Process != nil
			c.Env, c.ExtraFiles = nil, nil // no longer read
		},
		func() { close(watched) },
	}
	if err := c.Start(); err != nil {
		t.Fatalf("%s: Start: %v: Path is read after the first question, or something else before", runtime.Version(), err)
	}
	if !started || r.count() < 2 {
		t.Errorf("%s: Start has asked %d times, the second time with the process started: %t; want 2, true", runtime.Version(), r.count(), started)
	}
	<-watched // by another goroutine
	if err := c.Wait(); err != nil {
		t.Errorf("%s: the process did not get what was set in the first question: %v", runtime.Version(), err)
	}
	if n := r.count(); n != 3 {
		t.Errorf("%s: the context was asked %d times, want 3", runtime.Version(), n)
	}
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

const conformance = "holdfast-conformance"

func init() {
	kerneltest.Programs[conformance] = func() {
		dir, err := os.Getwd()
		_, extra := os.NewFile(4, "the second of ExtraFiles").Stat()
		if err != nil || dir != os.Args[1] || extra != nil || !slices.Contains(os.Environ(), "CONFORMANCE=right") {
			fmt.Println(dir, err, extra, os.Args, os.Getenv("CONFORMANCE"))
			os.Exit(1)
		}
	}
}
