package inside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/regularfile"
	"golang.org/x/sys/unix"
)

// TestAPatternHasBounds: a directory whose entries lead to itself has a name for each way round.
func TestAPatternHasBounds(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	const n = 20
	for i := range n {
		if err := os.Symlink(".", fmt.Sprint(dir, "/", i)); err != nil {
			t.Fatal(err)
		}
	}
	all := (1 + n) + n*(1+n) // directories and entries of two levels
	for most, want := range map[int]error{all: nil, all - 1: unix.EFBIG} {
		if list, err := (tree{files: files, dir: dir}).glob("*/*", most, maxMatched); !errors.Is(err, want) || want == nil && len(list) != n*n {
			t.Errorf("%d: %d, %v", most, len(list), err)
		}
	}
	t.Run("of a million", func(t *testing.T) {
		kerneltest.Heavy(t)
		for i := n; i < 1100; i++ {
			if err := os.Symlink(".", fmt.Sprint(dir, "/", i)); err != nil {
				t.Fatal(err)
			}
		}
		if list, err := files.Glob(dir + "/*/*"); !errors.Is(err, unix.EFBIG) || len(list) > 0 {
			t.Errorf("%d, %v", len(list), err)
		}
	})
}

// TestMatchesHaveABoundInBytes: a tool chooses how long their directory's name is.
func TestMatchesHaveABoundInBytes(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.MkdirAll(dir+"/directory/"+name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	all := len("directory") + 3*len("directory/a")
	for bytes, want := range map[int]error{all: nil, all - 1: unix.EFBIG} {
		if list, err := (tree{files: files, dir: dir}).glob("d*/*", maxEntries, bytes); !errors.Is(err, want) || want == nil && len(list) != 3 {
			t.Errorf("%d: %q, %v", bytes, list, err)
		}
	}
}

// TestAPatternThatCouldNotBeLookedForIsAnError, and files that are no directories, or are closed to the tools, are none.
func TestAPatternThatCouldNotBeLookedForIsAnError(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	os.Symlink("ring", dir+"/ring")
	unix.Mkfifo(dir+"/fifo", 0o600)
	os.WriteFile(dir+"/file", nil, 0o600)
	if list, err := files.Glob(dir + "/*/*"); err != nil || len(list) > 0 {
		t.Errorf("%q, %v", list, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, pattern := range []string{"/*", "/file", "/*/*"} {
		if list, err := files.WithContext(ctx).Glob(dir + pattern); !errors.Is(err, context.Canceled) || len(list) > 0 {
			t.Errorf("%s: %q, %v", pattern, list, err)
		}
	}
}

// TestEntriesShareTheNameOfTheirDirectory: a tool chooses both, and how many there are.
func TestEntriesShareTheNameOfTheirDirectory(t *testing.T) {
	files, dir, n := served(t, serve), t.TempDir(), 300
	for len(dir) < 3700 {
		dir += "/" + strings.Repeat("d", 250)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	list, err := files.ReadDir(dir)
	if err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
	runtime.GC()
	if runtime.ReadMemStats(&after); int64(after.HeapAlloc)-int64(before.HeapAlloc) > 1<<19 {
		t.Errorf("%d bytes for %d entries of one directory", after.HeapAlloc-before.HeapAlloc, n)
	}
	if info, err := list[0].Info(); err != nil || info.Name() != "0" {
		t.Error(info, err)
	}
}

// TestFilesOfTheKernelAreNotWritten, which a name of a tool's may lead to: the kernel asks for the rights of who writes, the harness.
func TestFilesOfTheKernelAreNotWritten(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	os.Symlink(fmt.Sprintf("/proc/%d/oom_score_adj", os.Getpid()), dir+"/score") // which CAP_SYS_RESOURCE of the writer's may lower
	if text, err := files.ReadFile(dir + "/score"); err != nil || len(text) == 0 {
		t.Errorf("a file of the kernel's: %q %v", text, err)
	}
	for _, err := range []error{files.WriteFile(dir+"/score", []byte("0"), 0), second(files.OpenFile(dir+"/score", os.O_RDWR, 0))} {
		if !errors.Is(err, unix.EACCES) {
			t.Errorf("a file of the kernel's, to write: %v", err)
		}
	}
}

// TestOrdersToTheKernelAreNotWritten in other file systems than those that are mounted everywhere.
func TestOrdersToTheKernelAreNotWritten(t *testing.T) {
	for kind, name := range map[string]string{"securityfs": "lsm", "tracefs": "trace_marker", "binfmt_misc": "status", "debugfs": "", "fusectl": "", "configfs": "", "bpf": "", "pstore": "", "selinuxfs": "load"} {
		t.Run(kind, func(t *testing.T) {
			fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
			if err != nil {
				t.Skip("needs root and a kernel with this file system:", err)
			}
			defer unix.Close(fs)
			if err := unix.FsconfigCreate(fs); err != nil {
				t.Skip("needs to mount it:", err)
			}
			at, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0) // nowhere
			if err != nil {
				t.Skip("needs to mount it:", err)
			}
			defer unix.Close(at)
			var in unix.Statfs_t
			if err := unix.Fstatfs(at, &in); err != nil || !regularfile.OfTheKernel(int64(in.Type)) {
				t.Errorf("%#x, %v", in.Type, err)
			}
			if name == "" {
				return
			}
			fd, err := unix.Openat(at, name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Skipf("needs a file to write, %q: %v", name, err)
			}
			if f, _, err := opened(fd, unix.O_WRONLY, name); !errors.Is(err, unix.EACCES) {
				f.Close()
				t.Errorf("%v", err)
			}
		})
	}
}

func second(_ *os.File, err error) error { return err }
