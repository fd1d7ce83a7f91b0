package stage

import (
	"debug/elf"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// needTrampoline returns the trampoline. A program that lies where it was linked to has
// one, on every architecture.
func needTrampoline(t *testing.T) *launch.Launcher {
	t.Helper()
	trampoline, err := launch.Trampoline()
	if err == nil {
		return trampoline
	}
	exe, elfErr := elf.Open("/proc/self/exe")
	if elfErr != nil {
		t.Fatal(elfErr)
	}
	defer exe.Close()
	if exe.Type != elf.ET_EXEC || errors.Is(err, os.ErrPermission) {
		t.Skipf("there is no trampoline: %v", err)
	}
	t.Fatalf("there is no trampoline: %v", err)
	return nil
}

// byBoth runs body with the trampoline and with the harness's file.
func byBoth(t *testing.T, body func(t *testing.T, l *launch.Launcher)) {
	t.Run("the harness's file", func(t *testing.T) { body(t, launch.Reexec) })
	t.Run("the trampoline", func(t *testing.T) {
		body(t, needTrampoline(t))
	})
}

// TestKernelTheTrampolineIsWhatPathNamesInTheChild: os/exec moves descriptors there,
// which must not put one of the caller's in the trampoline's place.
func TestKernelTheTrampolineIsWhatPathNamesInTheChild(t *testing.T) {
	trampoline := needTrampoline(t)
	// A script of the caller's, at the descriptors around the trampoline's.
	decoy, err := os.Open("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	defer decoy.Close()
	var decoys []*os.File
	for range 2 {
		for _, from := range []int{39, 40, 41, 80} {
			fd, err := unix.FcntlInt(decoy.Fd(), unix.F_DUPFD_CLOEXEC, from)
			if err != nil {
				t.Fatal(err)
			}
			f := os.NewFile(uintptr(fd), "decoy")
			defer f.Close()
			decoys = append(decoys, f)
		}
	}
	for n := range 90 { // descriptors that have to be moved out of the way first
		var tools []*os.File
		for i := range n {
			tools = append(tools, decoys[i%len(decoys)])
		}
		file := memfd(t, compiled(t, plan.Plan{}).Program(Run{Path: "/bin/true", Argv: []string{"true"}, ExtraFiles: n, Quiet: true, Layout: trampoline.Layout(3 + n)}), true)
		cmd := exec.Cmd{Path: trampoline.Path, Dir: "/", Env: []string{"NOT=HOLDFAST"}, ExtraFiles: trampoline.Files(tools, file, decoy)}
		if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != wire.ExitFailed {
			t.Fatalf("with %d files: %v; the trampoline ends with %d where it finds no program", n, err, wire.ExitFailed)
		}
	}
}
