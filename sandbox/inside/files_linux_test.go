package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// served returns files whose server is a goroutine of the test.
func served(t testing.TB, serve func(socket int) error) *Files {
	return servedIn(t, serve, func() string { return "" })
}

// servedIn has a working directory for relative names.
func servedIn(t testing.TB, serve func(socket int) error, dir func() string) *Files {
	return New(func(_ context.Context, socket *os.File) (func(), <-chan struct{}, error) {
		defer socket.Close()
		fd, err := unix.FcntlInt(socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, nil, err
		}
		gone := make(chan struct{})
		go func() {
			serve(fd)
			unix.Close(fd)
			close(gone)
		}()
		return func() { unix.Shutdown(fd, unix.SHUT_RDWR) }, gone, nil
	}, func() error { return nil }, dir, func(bool, ...string) error { return nil })
}

// TestFilesAreAsThoseOfPackageOS: each act, here and by package os in a directory alike.
func TestFilesAreAsThoseOfPackageOS(t *testing.T) {
	files := served(t, serve)
	ours, theirs := t.TempDir(), t.TempDir()
	long := strings.Repeat("n", 256)
	looks := func(i fs.FileInfo, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		size := i.Size()
		if i.IsDir() {
			size = 0
		}
		return fmt.Sprint(i.Name(), " ", i.Mode(), " ", size), nil
	}
	lists := func(list []fs.DirEntry, err error) (any, error) {
		var names []string
		for _, e := range list {
			names = append(names, fs.FormatDirEntry(e))
		}
		return names, err
	}
	reads := func(f *os.File, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		defer f.Close()
		b, err := io.ReadAll(f)
		return string(b), err
	}
	for _, test := range []struct {
		name      string
		here, std func(dir string) (any, error)
	}{
		{"write", func(d string) (any, error) { return nil, files.WriteFile(d+"/file", []byte("text"), 0o640) }, func(d string) (any, error) { return nil, os.WriteFile(d+"/file", []byte("text"), 0o640) }},
		{"write where no directory is", func(d string) (any, error) { return nil, files.WriteFile(d+"/no/file", nil, 0o600) }, func(d string) (any, error) { return nil, os.WriteFile(d+"/no/file", nil, 0o600) }},
		{"write to a directory", func(d string) (any, error) { return nil, files.WriteFile(d, nil, 0o600) }, func(d string) (any, error) { return nil, os.WriteFile(d, nil, 0o600) }},
		{"read", func(d string) (any, error) { return files.ReadFile(d + "/file") }, func(d string) (any, error) { return os.ReadFile(d + "/file") }},
		{"read nothing", func(d string) (any, error) { return files.ReadFile(d + "/none") }, func(d string) (any, error) { return os.ReadFile(d + "/none") }},
		{"read a directory", func(d string) (any, error) { return files.ReadFile(d) }, func(d string) (any, error) { return os.ReadFile(d) }},
		{"read below a file", func(d string) (any, error) { return files.ReadFile(d + "/file/x") }, func(d string) (any, error) { return os.ReadFile(d + "/file/x") }},
		{"a name with a NUL", func(d string) (any, error) { return files.ReadFile(d + "/a\x00b") }, func(d string) (any, error) { return os.ReadFile(d + "/a\x00b") }},
		{"make a name with a NUL", func(d string) (any, error) { return nil, files.Mkdir(d+"/a\x00b", 0o700) }, func(d string) (any, error) { return nil, os.Mkdir(d+"/a\x00b", 0o700) }},
		{"a name that is long", func(d string) (any, error) { return nil, files.WriteFile(d+"/"+long, nil, 0o600) }, func(d string) (any, error) { return nil, os.WriteFile(d+"/"+long, nil, 0o600) }},
		{"a path that is long", func(d string) (any, error) { return files.ReadFile(strings.Repeat("/name", 1000)) }, func(d string) (any, error) { return os.ReadFile(strings.Repeat("/name", 1000)) }},
		{"no name", func(d string) (any, error) { return files.ReadFile("") }, func(d string) (any, error) { return os.ReadFile("") }},
		{"a name with an end of line", func(d string) (any, error) { return nil, files.WriteFile(d+"/a\nb \xff", nil, 0o600) }, func(d string) (any, error) { return nil, os.WriteFile(d+"/a\nb \xff", nil, 0o600) }},
		{"append", func(d string) (any, error) {
			f, err := files.OpenFile(d+"/file", os.O_WRONLY|os.O_APPEND, 0)
			fmt.Fprint(f, " more")
			f.Close()
			return nil, err
		}, func(d string) (any, error) {
			f, err := os.OpenFile(d+"/file", os.O_WRONLY|os.O_APPEND, 0)
			fmt.Fprint(f, " more")
			f.Close()
			return nil, err
		}},
		{"open", func(d string) (any, error) { return reads(files.OpenFile(d+"/file", os.O_RDWR, 0)) }, func(d string) (any, error) { return reads(os.OpenFile(d+"/file", os.O_RDWR, 0)) }},
		{"open for writing, read", func(d string) (any, error) { return reads(files.OpenFile(d+"/file", os.O_WRONLY, 0)) }, func(d string) (any, error) { return reads(os.OpenFile(d+"/file", os.O_WRONLY, 0)) }},
		{"make what is there", func(d string) (any, error) {
			return reads(files.OpenFile(d+"/file", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0))
		}, func(d string) (any, error) { return reads(os.OpenFile(d+"/file", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0)) }},
		{"symlink", func(d string) (any, error) { return nil, files.Symlink("file", d+"/link") }, func(d string) (any, error) { return nil, os.Symlink("file", d+"/link") }},
		{"a link in a ring", func(d string) (any, error) { return nil, files.Symlink("ring", d+"/ring") }, func(d string) (any, error) { return nil, os.Symlink("ring", d+"/ring") }},
		{"read a ring", func(d string) (any, error) { return files.ReadFile(d + "/ring") }, func(d string) (any, error) { return os.ReadFile(d + "/ring") }},
		{"readlink", func(d string) (any, error) { return files.Readlink(d + "/link") }, func(d string) (any, error) { return os.Readlink(d + "/link") }},
		{"readlink of a file", func(d string) (any, error) { return files.Readlink(d + "/file") }, func(d string) (any, error) { return os.Readlink(d + "/file") }},
		{"readlink of nothing", func(d string) (any, error) { return files.Readlink(d + "/none") }, func(d string) (any, error) { return os.Readlink(d + "/none") }},
		{"stat", func(d string) (any, error) { return looks(files.Stat(d + "/link")) }, func(d string) (any, error) { return looks(os.Stat(d + "/link")) }},
		{"lstat", func(d string) (any, error) { return looks(files.Lstat(d + "/link")) }, func(d string) (any, error) { return looks(os.Lstat(d + "/link")) }},
		{"stat nothing", func(d string) (any, error) { return looks(files.Stat(d + "/none")) }, func(d string) (any, error) { return looks(os.Stat(d + "/none")) }},
		{"lstat nothing", func(d string) (any, error) { return looks(files.Lstat(d + "/none")) }, func(d string) (any, error) { return looks(os.Lstat(d + "/none")) }},
		{"mkdir", func(d string) (any, error) { return nil, files.Mkdir(d+"/dir", 0o1750) }, func(d string) (any, error) { return nil, os.Mkdir(d+"/dir", 0o1750) }},
		{"mkdir, sticky", func(d string) (any, error) { return nil, files.Mkdir(d+"/sticky", 0o700|fs.ModeSticky) }, func(d string) (any, error) { return nil, os.Mkdir(d+"/sticky", 0o700|fs.ModeSticky) }},
		{"stat of it", func(d string) (any, error) { return looks(files.Stat(d + "/sticky")) }, func(d string) (any, error) { return looks(os.Stat(d + "/sticky")) }},
		{"mkdirall", func(d string) (any, error) { return nil, files.MkdirAll(d+"/dir/a/b/c", 0o700) }, func(d string) (any, error) { return nil, os.MkdirAll(d+"/dir/a/b/c", 0o700) }},
		{"mkdirall below a file", func(d string) (any, error) { return nil, files.MkdirAll(d+"/file/a/b", 0o700) }, func(d string) (any, error) { return nil, os.MkdirAll(d+"/file/a/b", 0o700) }},
		{"readdir", func(d string) (any, error) { return lists(files.ReadDir(d)) }, func(d string) (any, error) { return lists(os.ReadDir(d)) }},
		{"readdir of a file", func(d string) (any, error) { return lists(files.ReadDir(d + "/file")) }, func(d string) (any, error) { return lists(os.ReadDir(d + "/file")) }},
		{"readdir of nothing", func(d string) (any, error) { return lists(files.ReadDir(d + "/none")) }, func(d string) (any, error) { return lists(os.ReadDir(d + "/none")) }},
		{"glob", func(d string) (any, error) { return files.Glob(d + "/*[!k]") }, func(d string) (any, error) { return filepath.Glob(d + "/*[!k]") }},
		{"glob at the root", func(d string) (any, error) { return files.Glob("/*") }, func(d string) (any, error) { return filepath.Glob("/*") }},
		{"a glob of one's own directory", func(d string) (any, error) { return files.Glob("*.go") }, func(d string) (any, error) { return filepath.Glob("*.go") }},
		{"a glob above it", func(d string) (any, error) { return files.Glob("../*/*.go") }, func(d string) (any, error) { return filepath.Glob("../*/*.go") }},
		{"a bad glob", func(d string) (any, error) { return files.Glob("[") }, func(d string) (any, error) { return filepath.Glob("[") }},
		{"rename", func(d string) (any, error) { return nil, files.Rename(d+"/file", d+"/dir/file") }, func(d string) (any, error) { return nil, os.Rename(d+"/file", d+"/dir/file") }},
		{"rename of nothing", func(d string) (any, error) { return nil, files.Rename(d+"/file", d+"/other") }, func(d string) (any, error) { return nil, os.Rename(d+"/file", d+"/other") }},
		{"rename over a directory", func(d string) (any, error) { return nil, files.Rename(d+"/dir/file", d+"/dir") }, func(d string) (any, error) { return nil, os.Rename(d+"/dir/file", d+"/dir") }},
		{"remove what is not empty", func(d string) (any, error) { return nil, files.Remove(d + "/dir") }, func(d string) (any, error) { return nil, os.Remove(d + "/dir") }},
		{"remove", func(d string) (any, error) { return nil, files.Remove(d + "/link") }, func(d string) (any, error) { return nil, os.Remove(d + "/link") }},
		{"remove nothing", func(d string) (any, error) { return nil, files.Remove(d + "/link") }, func(d string) (any, error) { return nil, os.Remove(d + "/link") }},
		{"removeall", func(d string) (any, error) { return nil, files.RemoveAll(d + "/dir") }, func(d string) (any, error) { return nil, os.RemoveAll(d + "/dir") }},
		{"removeall of a dot", func(d string) (any, error) { return nil, files.RemoveAll(d + "/.") }, func(d string) (any, error) { return nil, os.RemoveAll(d + "/.") }},
		{"what is left", func(d string) (any, error) { return lists(files.ReadDir(d)) }, func(d string) (any, error) { return lists(os.ReadDir(d)) }},
	} {
		got, gotErr := test.here(ours)
		want, wantErr := test.std(theirs)
		if g, w := told(got, gotErr, ours), told(want, wantErr, theirs); g != w {
			t.Errorf("%s:\n%s, not\n%s", test.name, g, w)
		}
	}
}

// told is a result with the directory's name taken out.
func told(result any, err error, dir string) string {
	return strings.ReplaceAll(fmt.Sprintf("%q %v %v %v", result, reflect.TypeOf(err), err, errors.Is(err, fs.ErrNotExist)), dir, "DIR")
}

func TestReplaceIsOneStep(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	os.WriteFile(dir+"/file", []byte("old"), 0o751)
	os.Chmod(dir+"/file", 0o751)
	os.Symlink("file", dir+"/link")
	os.Symlink(dir+"/link", dir+"/other")
	old, _ := os.Open(dir + "/file")
	defer old.Close()
	if err := files.Replace(dir+"/other", []byte("new")); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(dir + "/file")
	was, _ := io.ReadAll(old)
	info, err := os.Lstat(dir + "/link")
	if string(text) != "new" || string(was) != "old" || err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("%q %q %v %v", text, was, info, err)
	}
	if info, _ := os.Stat(dir + "/file"); info.Mode() != 0o751 {
		t.Error(info.Mode())
	}
	long := t.TempDir() + "/" + strings.Repeat("n", 255)
	if err := errors.Join(os.WriteFile(long, nil, 0o600), files.Replace(long, []byte("new"))); err != nil {
		t.Error(err)
	}
	os.Symlink("ring", dir+"/ring")
	unix.Mkfifo(dir+"/fifo", 0o600)
	for name, want := range map[string]error{"none": fs.ErrNotExist, "ring": unix.ELOOP, "fifo": ErrNotRegular, ".": ErrNotRegular} {
		if err := files.Replace(dir+"/"+name, nil); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 5 {
		t.Errorf("left: %v", list)
	}
}

func TestFSIsAnFS(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	os.MkdirAll(dir+"/a/b", 0o700)
	os.Mkdir(dir+"/empty", 0o700)
	var expected []string
	for _, name := range []string{"file", "a/file", "a/b/file", "a/ä b"} {
		os.WriteFile(dir+"/"+name, []byte(name), 0o600)
		expected = append(expected, name)
	}
	os.Symlink("file", dir+"/link")
	below, err := fs.Sub(files.FS(), strings.TrimPrefix(dir, "/"))
	if err == nil {
		err = fstest.TestFS(below, append(expected, "empty", "link")...)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestFilesThatAreNoneAreRefused and hold nothing up.
func TestFilesThatAreNoneAreRefused(t *testing.T) {
	files, dir := served(t, serve), t.TempDir()
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		err = unix.Bind(l, &unix.SockaddrUnix{Name: dir + "/socket"})
		defer unix.Close(l)
	}
	if err != nil {
		t.Fatal(err)
	}
	os.Symlink("/dev/zero", dir+"/zero")
	for _, name := range []string{"fifo", "zero"} {
		if _, err := files.ReadFile(dir + "/" + name); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := files.OpenFile(dir+"/"+name, os.O_RDWR, 0); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s to write: %v", name, err)
		}
	}
	if err := files.WriteFile(dir+"/fifo", nil, 0); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a FIFO that is not read: %v", err)
	}
	if _, err := files.ReadFile(dir + "/socket"); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a socket: %v", err)
	}
	for name, want := range map[string]fs.FileMode{"fifo": fs.ModeNamedPipe, "socket": fs.ModeSocket, "zero": fs.ModeDevice | fs.ModeCharDevice} {
		if info, err := files.Stat(dir + "/" + name); err != nil || info.Mode().Type() != want {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if err := os.Truncate(dir+"/large", 0); err == nil {
		t.Error("there")
	}
	os.WriteFile(dir+"/large", nil, 0o600)
	os.Truncate(dir+"/large", 1<<40)
	if _, err := files.ReadFile(dir + "/large"); !errors.Is(err, unix.EFBIG) {
		t.Errorf("a file of 1 TiB: %v", err)
	}
	if _, err := files.OpenFile(dir, os.O_RDONLY, 0); !errors.Is(err, unix.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

func TestALargeDirectoryIsReadWhole(t *testing.T) {
	files, dir, n := served(t, serve), t.TempDir(), kerneltest.Amount(t, 1000, 10_000, 50_000)
	for i := range n {
		if err := os.WriteFile(fmt.Sprint(dir, "/", i), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := files.ReadDir(dir); err != nil || len(list) != n {
		t.Errorf("%d: %v", len(list), err)
	}
}

// TestAHostileServerIsAnError, and no more: whatever it answers.
func TestAHostileServerIsAnError(t *testing.T) {
	dir := t.TempDir()
	os.WriteFile(dir+"/file", []byte("text"), 0o600)
	unix.Mkfifo(dir+"/fifo", 0o600)
	open := func(name string, flags int) []int {
		fd, err := unix.Open(dir+"/"+name, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		return []int{fd}
	}
	fine := answer{}.encode()
	event, _ := unix.Eventfd(0, unix.EFD_CLOEXEC)
	for _, test := range []struct {
		name string
		data []byte
		fds  []int
		want string
	}{
		{"a file", fine, open("file", unix.O_RDONLY), ""},
		{"no file", fine, nil, "malformed"},
		{"a file with an error", answer{errno: 2}.encode(), open("file", unix.O_RDONLY), "malformed"},
		{"two files", fine, append(open("file", unix.O_RDONLY), open("file", unix.O_RDONLY)...), "malformed"},
		{"a hundred files", fine, func() (all []int) {
			for range 100 {
				all = append(all, open("file", unix.O_RDONLY)...)
			}
			return all
		}(), "malformed"},
		{"a FIFO", fine, open("fifo", unix.O_RDONLY), "not a regular file"},
		{"an event", fine, []int{event}, "not a regular file"},
		{"a name only", fine, open("file", unix.O_PATH), "open for something else"},
		{"one to write", fine, open("file", unix.O_WRONLY), "open for something else"},
		{"one to read and write", fine, open("file", unix.O_RDWR), "open for something else"},
		{"a directory", fine, open(".", unix.O_RDONLY|unix.O_DIRECTORY), "is a directory"},
		{"nothing", []byte{}, nil, "has ended"},
		{"a byte", []byte{1}, nil, "malformed"},
		{"too much", make([]byte, maxMessage+1), nil, "malformed"},
		{"an error that is none", answer{errno: 1 << 20}.encode(), nil, "malformed"},
		{"an operation's name with controls", answer{errno: 1, op: "\x1b[2J"}.encode(), nil, "malformed"},
	} {
		files := served(t, func(socket int) error {
			return hostile(socket, func(conn int) {
				unix.Sendmsg(conn, test.data, rights(test.fds), nil, unix.MSG_NOSIGNAL)
			})
		})
		before := descriptors(t)
		_, err := files.ReadFile(dir + "/name")
		if got := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(got, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		for _, fd := range test.fds {
			unix.Close(fd)
		}
		files.client.drop(files.client.server2())
		if now := descriptors(t); now > before-len(test.fds)+4 {
			t.Errorf("%s: %d descriptors, %d before", test.name, now, before)
		}
	}
}

func rights(fds []int) []byte {
	if len(fds) == 0 {
		return nil
	}
	return unix.UnixRights(fds...)
}

// server2 is the server that runs, or one to drop.
func (c *client) server2() *server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return c.server
	}
	return &server{kill: func() {}}
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// hostile takes one connection, and answers its first request.
func hostile(socket int, answers func(conn int)) error {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, 0)
	if err != nil {
		return err
	}
	conn := onlyDescriptor(oob[:n])
	defer unix.Close(conn)
	if _, _, err := unix.Recvfrom(conn, make([]byte, maxMessage), 0); err == nil {
		answers(conn)
		unix.Recvfrom(conn, make([]byte, 1), 0) // till the client lets go: the end of a server can be seen before its answer
	}
	return nil
}
