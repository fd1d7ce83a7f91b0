package host

import (
	"os"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// killsForAcct is a filter that kills the process that makes acct(2), by its number on this program's architecture.
var killsForAcct = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // seccomp_data.nr
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_ACCT, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_KILL_PROCESS},
	{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
}

// underAFilter calls f on a thread for which killsForAcct is in force.
func underAFilter(t *testing.T, f func()) {
	t.Helper()
	var err error
	onThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return
		}
		program := unix.SockFprog{Len: uint16(len(killsForAcct)), Filter: &killsForAcct[0]}
		if err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err == nil {
			f()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAProbingChildDumpsNoCore when a filter kills it, for it is a copy of the harness.
func TestAProbingChildDumpsNoCore(t *testing.T) {
	t.Chdir(t.TempDir())
	largestCore(t)
	var made bool
	var status unix.WaitStatus
	var err error
	underAFilter(t, func() { made, status, err = endOf([]uintptr{unix.SYS_ACCT}) })
	if made || err != nil || !status.Signaled() || status.Signal() != unix.SIGSYS {
		t.Fatalf("status %#x, %v, made: %t", status, err, made)
	}
	if left, err := os.ReadDir("."); status.CoreDump() || err != nil || len(left) > 0 {
		t.Errorf("core: %t, files: %v, %v", status.CoreDump(), left, err)
	}
}

// TestAProbingChildIsTakenByAnother who waits for all children, as a harness may: what the filter does is known nevertheless.
func TestAProbingChildIsTakenByAnother(t *testing.T) {
	var taken, over atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for over.Load() == 0 {
			if pid, _ := unix.Wait4(-1, nil, unix.WALL, nil); pid > 0 {
				taken.Add(1)
			}
		}
	}()
	for call, killed := range map[uintptr]bool{unix.SYS_ACCT: true, unix.SYS_GETPID: false} {
		underAFilter(t, func() {
			for before := taken.Load(); taken.Load() == before; {
				if got := kills([]uintptr{call}); got != killed {
					t.Errorf("call %d kills: %t", call, got)
				}
			}
		})
	}
	over.Store(1)
	<-done
}

// largestCore raises the limit of this process' core for the time of a test.
func largestCore(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	if before.Max == 0 {
		t.Skip("the hard limit of a core's size, RLIMIT_CORE, is 0")
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: before.Max, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_CORE, &before); err != nil {
			t.Error(err)
		}
	})
}
