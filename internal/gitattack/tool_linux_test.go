package gitattack

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// toolName is the argv[0] by which the test binary knows that it is the hostile tool.
const toolName = "holdfast-gitattack-tool"

func init() { kerneltest.Programs[toolName] = toolMain }

// toolMain carries out the operations that stand on its input and prints what came of each.
func toolMain() {
	var ops []op
	if err := json.NewDecoder(os.Stdin).Decode(&ops); err != nil {
		fmt.Println("no operations:", err)
		os.Exit(1)
	}
	t := &tool{kept: map[string]int{}}
	t.ws, _ = os.Getwd()
	for _, o := range ops {
		if err := t.act(o); err != nil {
			fmt.Printf("%s: %v\n", o.Do, err)
		} else {
			fmt.Printf("%s: ok\n", o.Do)
		}
	}
}

// A tool is the hostile program's state.
type tool struct {
	ws   string
	kept map[string]int // descriptors kept open, by the path they were opened by
}

func (t *tool) act(o op) error {
	switch o.Do {
	case "mkdir":
		return os.MkdirAll(t.spell(o), os.FileMode(or(o.Mode, 0o755)))
	case "write":
		return t.write(o)
	case "keep":
		fd, err := unix.Open(t.spell(o), o.Flag|unix.O_CLOEXEC, or(o.Mode, 0o644))
		if err == nil {
			t.kept[o.Path] = fd
		}
		return err
	case "put":
		return t.put(o)
	case "map":
		return t.mapped(o)
	case "replace": // written beside, and renamed: how git and editors do it
		return t.replace(o)
	case "rename":
		makeParent(o.To)
		return unix.Renameat2(unix.AT_FDCWD, t.spell(o), unix.AT_FDCWD, o.To, uint(o.Flag))
	case "link":
		makeParent(o.To)
		return unix.Linkat(unix.AT_FDCWD, t.spell(o), unix.AT_FDCWD, o.To, 0)
	case "symlink":
		makeParent(o.Path)
		return unix.Symlinkat(o.To, unix.AT_FDCWD, t.spell(o))
	case "unlink":
		return unix.Unlink(t.spell(o))
	case "rmdir":
		return unix.Rmdir(t.spell(o))
	case "rmall":
		return os.RemoveAll(t.spell(o))
	case "mkfifo":
		makeParent(o.Path)
		return unix.Mknod(t.spell(o), unix.S_IFIFO|0o666, 0)
	case "bind":
		return t.bind(o)
	case "chmod":
		return unix.Chmod(t.spell(o), o.Mode)
	case "truncate":
		return unix.Truncate(t.spell(o), 0)
	case "copy": // a file or tree, to a new place
		return copyTree(t.spell(o), o.To)
	case "chdir":
		return unix.Chdir(t.spell(o))
	case "git":
		return t.git(o)
	}
	return fmt.Errorf("no such operation")
}

// spell writes an operation's path in the way it asks for.
func (t *tool) spell(o op) string {
	dir, base := filepath.Split(o.Path)
	switch o.Via {
	case "absolute":
		return filepath.Join(t.ws, o.Path)
	case "root":
		return "/proc/self/root" + filepath.Join(t.ws, o.Path)
	case "cwd":
		return "/proc/self/cwd/" + o.Path
	case "thread":
		return "/proc/thread-self/cwd/" + o.Path
	case "dots":
		if dir != "" {
			return dir + "../" + filepath.Base(dir) + "/" + base
		}
	case "slashes":
		return strings.ReplaceAll(o.Path, "/", "///")
	case "descriptor":
		if fd, err := unix.Open(or(dir, "."), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			return fmt.Sprintf("/proc/self/fd/%d/%s", fd, base) // stays open: the tool ends soon
		}
	case "link": // through a symbolic link to the directory
		name := fmt.Sprintf("via%d", len(t.kept)+os.Getpid())
		if unix.Symlink(filepath.Join(t.ws, dir), name) == nil {
			return name + "/" + base
		}
	}
	return o.Path
}

func makeParent(p string) { _ = os.MkdirAll(filepath.Dir(p), 0o755) }

// write opens with the operation's flags, by default to create or truncate, and writes.
func (t *tool) write(o op) error {
	makeParent(o.Path)
	flag := o.Flag
	if flag == 0 {
		flag = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	}
	fd, err := unix.Open(t.spell(o), flag|unix.O_CLOEXEC|unix.O_NONBLOCK, or(o.Mode, 0o644))
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, o.Text)
	return err
}

// put writes through a descriptor that was kept.
func (t *tool) put(o op) error {
	fd, open := t.kept[o.Path]
	if !open {
		return unix.EBADF
	}
	_ = unix.Ftruncate(fd, 0)
	_, err := unix.Pwrite(fd, o.Text, 0)
	return err
}

// mapped writes through a mapping.
func (t *tool) mapped(o op) error {
	fd, err := unix.Open(t.spell(o), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, int64(len(o.Text))); err != nil || len(o.Text) == 0 {
		return err
	}
	m, err := unix.Mmap(fd, 0, len(o.Text), unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m, o.Text)
	return unix.Munmap(m)
}

func (t *tool) replace(o op) error {
	makeParent(o.Path)
	beside := or(o.To, o.Path+".lock")
	if err := os.WriteFile(beside, o.Text, os.FileMode(or(o.Mode, 0o644))); err != nil {
		return err
	}
	return unix.Rename(beside, t.spell(o))
}

func (t *tool) bind(o op) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	makeParent(o.Path)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: o.Path})
}

func (t *tool) git(o op) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "git", o.Args...)
	c.Dir = filepath.Join(t.ws, o.Path)
	c.Env = append(os.Environ(), "GIT_EDITOR=true", "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=protocol.file.allow", "GIT_CONFIG_VALUE_0=always")
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.ReplaceAll(string(out), "\n", " "))
	}
	return nil
}

func or[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// copyTree copies a file or a directory with what is in it.
func copyTree(from, to string) error {
	source, _ := filepath.Abs(from)
	target, _ := filepath.Abs(to)
	if rel, err := filepath.Rel(source, target); err == nil && !strings.HasPrefix(rel, "..") {
		return fmt.Errorf("into itself")
	}
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return copyOne(p, filepath.Join(to, rel), info)
	})
}

func copyOne(p, at string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return os.MkdirAll(at, info.Mode().Perm())
	case info.Mode()&fs.ModeSymlink != 0:
		text, err := os.Readlink(p)
		if err != nil {
			return err
		}
		return os.Symlink(text, at)
	case info.Mode().IsRegular():
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(at, text, info.Mode().Perm())
	}
	return nil
}
