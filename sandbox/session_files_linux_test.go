package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/inside"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// withFiles runs a test in a session that may write base/write, as root and as an ordinary user.
func withFiles(t *testing.T, body func(t *testing.T, s *Session, base string)) {
	t.Helper()
	filesIn(t, sessionWalls[:1], body)
}

func filesIn(t *testing.T, sets []walls, body func(t *testing.T, s *Session, base string)) {
	t.Helper()
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter)
	eachWall(t, sets, func(t *testing.T, w walls) {
		if !w.bare() {
			kerneltest.Need(t, kerneltest.HasUserNamespaces)
		}
		base := t.TempDir()
		for _, d := range []string{"read", "write"} {
			if err := os.Mkdir(filepath.Join(base, d), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := attackPolicy(t, base, w)
		p.Files.Protect = policy.Protect{}
		s, err := attackSandbox(t, p, w).Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		body(t, s, base)
		if text, err := os.ReadFile(filepath.Join(base, "secret")); string(text) != "secret" {
			t.Errorf("a file outside: %q %v", text, err)
		}
	})
}

// TestKernelFilesOfASessionAreWhatItsToolsSee, and are refused where they are refused to them.
func TestKernelFilesOfASessionAreWhatItsToolsSee(t *testing.T) {
	withFiles(t, func(t *testing.T, s *Session, base string) {
		f, dir := s.Files(), filepath.Join(base, "write")
		outputOf(t, s.sh("echo tool > /tmp/from-tool; mkfifo "+dir+"/fifo; ln -s "+base+"/secret "+dir+"/link; ln -s /proc/self/root"+base+"/secret "+dir+"/proc; mkdir "+dir+"/'a\nb'"))
		if text, err := f.ReadFile("/tmp/from-tool"); string(text) != "tool\n" {
			t.Errorf("the private /tmp: %q %v", text, err)
		}
		if err := f.WriteFile("/tmp/from-harness", []byte("harness"), 0o600); err != nil {
			t.Error(err)
		}
		if got := outputOf(t, s.sh("cat /tmp/from-harness")); got != "harness" {
			t.Errorf("what the harness has written: %q", got)
		}
		if _, err := os.Stat("/tmp/from-harness"); err == nil {
			t.Error("it is in the harness's /tmp")
		}
		if err := f.WriteFile(dir+"/file", []byte("text"), 0o640); err != nil {
			t.Error(err)
		}
		if err := f.Replace(dir+"/file", []byte("other")); err != nil {
			t.Error(err)
		}
		info, err := os.Stat(dir + "/file")
		if text, _ := os.ReadFile(dir + "/file"); string(text) != "other" || err != nil || info.Mode() != 0o640 {
			t.Errorf("%q %v %v", text, info, err)
		}
		if list, err := f.ReadDir(dir); err != nil || len(list) != 5 || list[0].Name() != "a\nb" || list[1].Type() != fs.ModeNamedPipe {
			t.Errorf("%v %v", list, err)
		}
		if list, err := f.Glob(dir + "/f*"); err != nil || strings.Join(list, " ") != dir+"/fifo "+dir+"/file" {
			t.Errorf("%v %v", list, err)
		}
		if err := errors.Join(f.MkdirAll(dir+"/x/y/z", 0o700), f.WriteFile(dir+"/x/y/z/file", nil, 0o600), f.Rename(dir+"/x/y/z/file", dir+"/x/file"), f.Symlink("file", dir+"/x/link"), f.RemoveAll(dir+"/x")); err != nil {
			t.Error(err)
		}
		read := func(name string) error {
			_, err := f.ReadFile(name)
			return err
		}
		for _, test := range []struct {
			name string
			err  error
			want []error
		}{
			{"what is not shown", read(base + "/secret"), []error{fs.ErrNotExist}},
			{"by a link", read(dir + "/link"), []error{fs.ErrNotExist}},
			{"by a link through /proc", read(dir + "/proc"), []error{fs.ErrNotExist}},
			{"by /proc", read("/proc/self/root" + base + "/secret"), []error{fs.ErrNotExist}},
			{"by init's /proc", read("/proc/1/root" + base + "/secret"), []error{fs.ErrPermission}},
			{"by ..", read(dir + "/../secret"), []error{fs.ErrNotExist}},
			{"init's memory", read("/proc/1/mem"), []error{fs.ErrPermission}},
			{"a FIFO", read(dir + "/fifo"), []error{inside.ErrNotRegular}},
			{"a device", read("/dev/zero"), []error{inside.ErrNotRegular}},
			{"to write where it may read", f.WriteFile(base+"/read/file", nil, 0o600), []error{fs.ErrPermission, syscall.EROFS}},
			{"to remove where it may read", f.Remove("/usr/bin/env"), []error{fs.ErrPermission, syscall.EROFS}},
			{"a hook", f.MkdirAll(dir+"/.git/hooks/x", 0o700), []error{fs.ErrPermission}},
			{"a shell's file", f.WriteFile(dir+"/.bashrc", nil, 0o600), []error{fs.ErrPermission}},
			{"a protected name by renaming", f.Rename(dir+"/file", dir+"/.mcp.json"), []error{fs.ErrPermission}},
			{"a protected name by linking", f.Symlink("file", dir+"/.envrc"), []error{fs.ErrPermission}},
			{"a protected directory", f.Mkdir(dir+"/.vscode", 0o700), []error{fs.ErrPermission}},
		} {
			held := false
			for _, want := range test.want {
				held = held || errors.Is(test.err, want)
			}
			if !held {
				t.Errorf("%s: %v", test.name, test.err)
			}
		}
	})
}

var _ = offer(programs, "file swapper", func(args []string) {
	dir := args[0]
	os.WriteFile(dir+"/file", []byte("inside"), 0o600)
	os.Symlink("../secret", dir+"/away")
	os.Mkdir(dir+"/dir", 0o700)
	os.WriteFile(dir+"/dir/secret", []byte("inside"), 0o600)
	os.Symlink("..", dir+"/up")
	fmt.Println("ready")
	for {
		unix.Renameat2(unix.AT_FDCWD, dir+"/file", unix.AT_FDCWD, dir+"/away", unix.RENAME_EXCHANGE)
		unix.Renameat2(unix.AT_FDCWD, dir+"/dir", unix.AT_FDCWD, dir+"/up", unix.RENAME_EXCHANGE)
	}
})

// TestKernelAttackFilesBySwappingLinks while the harness opens, writes and lists them: never a file outside.
func TestKernelAttackFilesBySwappingLinks(t *testing.T) {
	kerneltest.Long(t)
	filesIn(t, sessionWalls[:2], func(t *testing.T, s *Session, base string) {
		f, dir := s.Files(), filepath.Join(base, "write")
		c := s.program("file swapper", dir)
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		out.Read(make([]byte, 6))
		inside := 0
		for range kerneltest.Amount(t, 50, 200, 500) {
			for _, name := range []string{"/file", "/dir/secret"} {
				switch text, err := f.ReadFile(dir + name); {
				case err == nil && string(text) == "secret":
					t.Fatal("the harness has read a file outside")
				case err == nil:
					inside++
				}
				if h, err := f.OpenFile(dir+name, os.O_WRONLY, 0); err == nil {
					h.WriteAt([]byte("inside"), 0)
					h.Close()
				}
			}
			f.Rename(dir+"/away", dir+"/dir/secret2")
			f.Symlink("../secret", dir+"/away")
		}
		if inside == 0 {
			t.Error("no file was read")
		}
		c.Cancel()
		c.Wait()
	})
}

var _ = offer(programs, "many files", func(args []string) {
	n := 0
	fmt.Sscan(args[1], &n)
	for i := range n {
		if err := os.WriteFile(fmt.Sprintf("%s/%d", args[0], i), nil, 0o600); err != nil {
			panic(err)
		}
	}
})

// TestKernelADirectoryOfManyEntriesIsRead whole.
func TestKernelADirectoryOfManyEntriesIsRead(t *testing.T) {
	kerneltest.Long(t)
	withFiles(t, func(t *testing.T, s *Session, base string) {
		n := kerneltest.Amount(t, 300, 1000, 2000)
		dir := filepath.Join(base, "write")
		outputOf(t, s.program("many files", dir, fmt.Sprint(n)))
		list, err := s.Files().ReadDir(dir)
		if err != nil || len(list) != n {
			t.Errorf("%d entries, not %d: %v", len(list), n, err)
		}
	})
}

// TestKernelAttackTheFileServer: to end or stop it fails what is under way, with an error that says so, and its socket is its own.
func TestKernelAttackTheFileServer(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t) // it waits half a minute for a server that is stopped
	filesIn(t, sessionWalls[:2], func(t *testing.T, s *Session, base string) {
		f, name := s.Files(), filepath.Join(base, "write", "file")
		if err := f.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		server := func() int {
			list, err := s.Processes()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range list {
				if len(p.Args) > 0 && p.Args[0] == inside.Server {
					return p.PID
				}
			}
			return 0
		}
		first := server()
		if got := outputOf(t, s.program("function thief", fmt.Sprint(first))); first == 0 || got != "" {
			t.Errorf("another command has of the server, process %d: %s", first, got)
		}
		for _, signal := range []string{"KILL", "STOP"} {
			first = server()
			outputOf(t, s.sh(fmt.Sprintf("kill -%s %d", signal, first)))
			for pid := first; pid == 0 || pid == first; pid = server() {
				_, err := f.ReadFile(name) // one that is stopped answers until the thread that has the signal takes it
				if failed := (*inside.ServerError)(nil); err != nil && !errors.As(err, &failed) {
					t.Fatalf("%s: %v", signal, err)
				}
			}
			if text, err := f.ReadFile(name); err != nil || !bytes.Equal(text, []byte("text")) {
				t.Errorf("%s, the next one: %q %v", signal, text, err)
			}
		}
		s.Close()
		f.ReadFile(name)
		if _, err := f.ReadFile(name); !errors.Is(err, os.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// TestKernelFilesAreRefusedInAPause at once, also if their server was about to start when it began.
func TestKernelFilesAreRefusedInAPause(t *testing.T) {
	kerneltest.Long(t)
	filesIn(t, sessionWalls[:2], func(t *testing.T, s *Session, base string) {
		for i := range 20 {
			begun := make(chan error, 1)
			go func() {
				_, err := s.Files().ReadDir(base + "/read")
				begun <- err
			}()
			time.Sleep(time.Duration(i%10) * 300 * time.Microsecond)
			if err := s.Pause(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Files().ReadDir(base + "/read"); !errors.Is(err, policy.ErrPaused) {
				t.Errorf("in a pause: %v", err)
			}
			<-begun // it ends in the pause, too
			if list, err := s.Files().Glob(base + "/*"); !errors.Is(err, policy.ErrPaused) || len(list) > 0 {
				t.Errorf("Glob in a pause: %v, %v", list, err)
			}
			if err := s.Resume(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Files().ReadDir(base + "/read"); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

// TestKernelTheFileServerHasNoDeadline of a command's.
func TestKernelTheFileServerHasNoDeadline(t *testing.T) {
	kerneltest.Need(t, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.HasUserNamespaces)
	p := Workspace(t.TempDir())
	p.Limits.WallClock = 500 * time.Millisecond
	sandbox, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sandbox.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	server := func() int {
		if _, err := s.Files().ReadDir("/tmp"); err != nil {
			t.Fatal(err)
		}
		list, err := s.Processes()
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0].PID
	}
	first := server()
	if err := s.Command("sleep", "1000").Run(); !errors.Is(err, ErrDeadline) { // a command that begins later has the deadline
		t.Error(err)
	}
	if now := server(); now != first {
		t.Errorf("process %d serves, not %d", now, first)
	}
}

func BenchmarkSessionReadFile(b *testing.B) {
	dir := b.TempDir()
	s, err := New(Workspace(dir))
	if err != nil {
		b.Fatal(err)
	}
	live, err := s.Open(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer live.Close()
	f, name := live.Files(), filepath.Join(dir, "file")
	if err := f.WriteFile(name, make([]byte, 4096), 0o600); err != nil {
		b.Fatal(err)
	}
	b.Run("session", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.ReadFile(name); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("os", func(b *testing.B) {
		for b.Loop() {
			if _, err := os.ReadFile(name); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestKernelADenialOfFilesHasItsReason: the error wraps the violation, which stands in the session's report, also after the server has been
// started anew. A refusal of the file's own mode, and a file that is not there, have none.
func TestKernelADenialOfFilesHasItsReason(t *testing.T) {
	withFiles(t, func(t *testing.T, s *Session, base string) {
		f, dir := s.Files(), filepath.Join(base, "write")
		if s.Report() != nil {
			t.Error("a report of files that were not used")
		}
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil { // in what the tool makes, names are free
			t.Fatal(err)
		}
		if err := os.Symlink("sub", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, ".git", "hooks"), 0o777); err != nil { // by the user
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, ".git", "hooks"), 0o777); err != nil {
			t.Fatal(err)
		}
		must(0, s.SetDir(dir))
		denied := func(err error, operation, name string) {
			t.Helper()
			var v *policy.Violation
			if !errors.As(err, &v) || !errors.Is(err, fs.ErrPermission) || v.Operation != operation || filepath.Base(v.Path) != name || v.Remedy == "" || !strings.Contains(err.Error(), v.Why) {
				t.Errorf("%v, %+v; want %s of %s", err, v, operation, name)
				return
			}
			for _, listed := range s.Report().Violations {
				if listed.Operation == operation && listed.Path == v.Path {
					return
				}
			}
			t.Errorf("%s %s is not in the report:\n%s", operation, name, s.Report())
		}
		denied(f.WriteFile(".git/hooks/pre-commit", nil, 0o755), "create", "pre-commit")
		denied(f.WriteFile(dir+"/link/.bashrc", nil, 0o644), "create", ".bashrc")
		denied(f.Mkdir("sub/.vscode", 0o755), "make a directory", ".vscode")
		denied(f.Rename("sub", ".vscode"), "rename", "sub")
		denied(f.Symlink("/x", ".zshrc"), "make a symbolic link", ".zshrc")
		if err := os.WriteFile(filepath.Join(dir, "pre-commit"), nil, 0); err != nil {
			t.Fatal(err)
		}
		var v *policy.Violation
		if _, err := f.ReadFile("pre-commit"); errors.As(err, &v) || os.Geteuid() != 0 && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a file without permissions: %v", err)
		}
		if err := f.WriteFile("pre-commit", nil, 0o644); errors.As(err, &v) || os.Geteuid() != 0 && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("a file without permissions, to write, has the reason of another: %v", err)
		}
		denied(f.WriteFile(".git/hooks/pre-commit", nil, 0o755), "create", "pre-commit")
		if _, err := f.ReadFile("absent"); errors.As(err, &v) || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("an absent file: %v", err)
		}
		must(0, s.Pause())
		must(0, s.Resume())
		denied(f.WriteFile("sub/.profile", nil, 0o644), "create", ".profile")
		if text := fmt.Sprint(s.Report().Violations); !strings.Contains(text, "pre-commit") || !strings.Contains(text, ".profile") {
			t.Errorf("after another start of the server the report has %s", text)
		}
	})
}
