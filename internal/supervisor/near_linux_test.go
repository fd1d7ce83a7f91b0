package supervisor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernelOpensLeaveTheToolsAffinity lets threads with different affinities open files at once: each has the one it chose after every open, and
// so have the processes that it starts.
func TestKernelOpensLeaveTheToolsAffinity(t *testing.T) {
	for user, uid := range users(t) {
		t.Run(user, func(t *testing.T) {
			dir, rules := workspace(t, uid)
			rules.Near = true
			out, code := run(t, job{Rules: rules, Dir: dir, UID: uid, Argv: []string{"bash", "-ec", `"$SELF" affinities`}, Env: []string{roleEnv + "=act"}})
			if code != 0 || strings.Contains(out, "supervisor test:") {
				t.Errorf("exit %d\n%s", code, out)
			}
		})
	}
}

// TestWhatSetsAnAffinityWhileAThreadIsKeptNearIsNotUndone: sched_setaffinity(2) takes the number of another thread.
func TestWhatSetsAnAffinityWhileAThreadIsKeptNearIsNotUndone(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	if all.Count() < 2 {
		t.Skip("this process has one processor")
	}
	tids, done := make(chan int), make(chan struct{})
	defer close(done)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		tids <- unix.Gettid()
		<-done
	}()
	tid := <-tids
	is := func(when string, want unix.CPUSet) {
		t.Helper()
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(tid, &got); err != nil || got != want {
			t.Errorf("%s it is %v, not %v: %v", when, got, want, err)
		}
	}
	var s State
	s.keepNear(uint32(tid))
	var here unix.CPUSet
	here.Set(int(s.near.cpu))
	is("while it is kept", here)
	s.letGo()
	is("when it is let go", all)

	s.keepNear(uint32(tid))
	other := all
	other.Clear(int(s.near.cpu))
	if err := unix.SchedSetaffinity(tid, &other); err != nil {
		t.Fatal(err)
	}
	s.letGo()
	is("when it was set", other)

	if err := unix.SchedSetaffinity(tid, &all); err != nil {
		t.Fatal(err)
	}
	s.keepNear(uint32(tid))
	other = all
	other.Clear(int(s.near.cpu))
	for i := range s.near.had { // as if the thread had wished for these alone
		s.near.had[i] = byte(other[i/8] >> (i % 8 * 8))
	}
	s.letGo()
	is("when the thread had fewer than its cpuset", other)
}

// affinities opens files on eight threads, of which every second one is bound to a processor.
func affinities() error {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	ends := make(chan error)
	for i := range 8 {
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			ends <- opensWith(fmt.Sprintf("f%d", i), chosen(all, i))
		}()
	}
	var errs []error
	for range 8 {
		errs = append(errs, <-ends)
	}
	return errors.Join(errs...)
}

// chosen is all for an even i, and one of it for an odd one.
func chosen(all unix.CPUSet, i int) unix.CPUSet {
	if i%2 == 0 {
		return all
	}
	var one unix.CPUSet
	left := i % all.Count()
	for cpu := 0; ; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if left == 0 {
			one.Set(cpu)
			return one
		}
		left--
	}
}

func opensWith(name string, want unix.CPUSet) error {
	if err := unix.SchedSetaffinity(0, &want); err != nil {
		return err
	}
	for range 300 {
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		f.Close()
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(0, &got); err != nil || got != want {
			return fmt.Errorf("%s: affinity %v after an open, not %v: %v", name, got, want, err)
		}
	}
	return nil
}
