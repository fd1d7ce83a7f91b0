//go:build linux && (amd64 || arm64)

package process

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	golandlock "github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/sys"
	"github.com/holdfast-dev/holdfast/landlock"
)

func TestMain(m *testing.M) { kerneltest.Main(m) }

// held is what this kernel can hold of r.
func held(t *testing.T, r landlock.Ruleset) landlock.Ruleset {
	t.Helper()
	abi, err := landlock.ABI()
	if err != nil {
		t.Fatal(err)
	}
	r, _, err = landlock.Downgrade(r, abi)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// needRestrict skips where Restrict cannot work: without Landlock, or in a test binary with the tag landlocktsync before ABI 8.
func needRestrict(t *testing.T) {
	t.Helper()
	abi := 1
	if tsyncOnly {
		abi = 8
	}
	kerneltest.Need(t, kerneltest.LandlockABI(abi))
}

// tree makes in/ and out/, each with a file, in a directory of the child's own.
func tree(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "") // not t.TempDir: nothing can be removed after the restriction
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"in", "out", "in/sub"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"in/file", "out/file"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func canListRoot() bool {
	_, err := os.ReadDir("/")
	return err == nil
}

func TestKernelEveryThreadIsRestricted(t *testing.T) {
	needRestrict(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			dir := tree(t)
			const threads = 12
			var ready, done sync.WaitGroup
			ready.Add(threads)
			restricted := make(chan bool)
			try := func() {
				if _, err := os.ReadFile(dir + "/out/file"); !errors.Is(err, unix.EACCES) {
					t.Errorf("reading outside: %v", err)
				}
				if _, err := os.ReadFile(dir + "/in/file"); err != nil {
					t.Errorf("reading inside: %v", err)
				}
			}
			for range threads {
				done.Go(func() {
					runtime.LockOSThread()
					ready.Done()
					<-restricted
					try()
				})
			}
			ready.Wait()
			if err := Restrict(held(t, landlock.Ruleset{Paths: []landlock.PathRule{{Path: dir + "/in", Access: landlock.FSReadWrite}}})); err != nil {
				t.Fatal(err)
			}
			close(restricted)
			done.Wait()
			try()
			status, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
			if status != 1 || err != nil {
				t.Errorf("no_new_privs is %d, %v", status, err)
			}
		})
	})
}

func TestKernelNothingIsRestrictedWhenRestrictFails(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(1))
	all := landlock.FSAll
	for _, tt := range []struct {
		name string
		r    func(t *testing.T) landlock.Ruleset
		is   func(err error) bool
	}{
		{"a ruleset that no kernel can hold", func(*testing.T) landlock.Ruleset { return landlock.Ruleset{UnhandledFS: 1 << 60} },
			func(err error) bool { return errors.As(err, new(*landlock.FieldError)) }},
		{"a path that is missing", func(t *testing.T) landlock.Ruleset {
			return held(t, landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/no/such/path", Access: landlock.FSRead}}})
		}, func(err error) bool {
			return tsyncOnly || errors.As(err, new(*landlock.RuleError)) && errors.Is(err, os.ErrNotExist)
		}},
		{"a ruleset that cannot be checked", func(*testing.T) landlock.Ruleset {
			return landlock.Ruleset{UnhandledFS: all &^ landlock.FSMakeFifo, UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll}
		}, func(err error) bool { return tsyncOnly || errors.As(err, new(*CheckError)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
				if err := Restrict(tt.r(t)); err == nil || !tt.is(err) {
					t.Errorf("error %v", err)
				}
				if !canListRoot() {
					t.Error("the process is restricted")
				}
			})
		})
	}
}

func TestKernelWhatCannotBeHeldIsNeverDropped(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(1))
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		abi, err := landlock.ABI()
		if err != nil {
			t.Fatal(err)
		}
		err = Restrict(landlock.Ruleset{})
		var un *landlock.UnsupportedError
		if abi < 10 && (!errors.As(err, &un) || len(un.Lost) == 0 || !canListRoot()) {
			t.Errorf("ABI %d: %v", abi, err)
		}
	})
}

// go-landlock's best effort succeeds without Landlock. This package's Restrict does not.
func TestKernelWithoutLandlockIsAnErrorHereAndNotInBestEffort(t *testing.T) {
	for _, feature := range []kerneltest.Feature{kerneltest.Landlock, kerneltest.LandlockAtBoot} {
		t.Run(string(feature), func(t *testing.T) {
			kerneltest.InChild(t, kerneltest.Child{Without: []kerneltest.Feature{feature}}, func(t *testing.T) {
				if err := golandlock.V7.BestEffort().RestrictPaths(); err != nil || !canListRoot() {
					t.Errorf("best effort: %v, and the root can be listed: %v", err, canListRoot())
				}
				if err := Restrict(landlock.ScopesOnly()); !errors.Is(err, errors.ErrUnsupported) {
					t.Errorf("Restrict: %v", err)
				}
			})
		})
	}
}

func TestKernelAProgramBuiltForTSyncAloneGetsAnErrorBeforeABI8(t *testing.T) {
	abi, err := landlock.ABI()
	if !tsyncOnly || err != nil || abi >= 8 {
		return // the rule itself is tested on made-up kernels; this is for a run with -tags landlocktsync
	}
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		if err := golandlock.V7.BestEffort().RestrictPaths(); err != nil || !canListRoot() {
			t.Errorf("best effort: %v, and the root can be listed: %v", err, canListRoot())
		}
		if err := Restrict(held(t, landlock.Ruleset{})); !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, errTSyncOnly) {
			t.Errorf("Restrict: %v", err)
		}
	})
}

// A filter that answers landlock_restrict_self(2) with success, and does nothing, stands for
// every way in which a library or a kernel can claim a restriction that is none.
func TestKernelARestrictionThatIsClaimedAndNotMadeIsFound(t *testing.T) {
	needRestrict(t)
	kerneltest.Need(t, kerneltest.HasSeccompFilter)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		pretend(t, unix.SYS_LANDLOCK_RESTRICT_SELF)
		dir := tree(t)
		err := Restrict(held(t, landlock.Ruleset{Paths: []landlock.PathRule{{Path: dir, Access: landlock.FSRead}}}))
		var check *CheckError
		if !errors.As(err, &check) || check.Act != "list /" || check.Err != nil {
			t.Errorf("error %v", err)
		}
	})
}

// pretend makes a system call a success without effect, on every thread.
func pretend(t *testing.T, nr uint32) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: nr, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(prog)
	pin.Pin(&filter[0])
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, sys.Addr(prog))
	if errno != 0 {
		t.Fatal(errno)
	}
}
