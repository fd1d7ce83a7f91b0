package inside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// listing is a tree in words: types, permissions, contents.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		text := ""
		switch {
		case info.Mode().IsRegular():
			data, _ := os.ReadFile(p)
			text = string(data)
		case info.Mode()&fs.ModeSymlink != 0:
			text, _ = os.Readlink(p)
			fmt.Fprintf(&b, "%s link %q\n", name, text)
			return nil
		}
		fmt.Fprintf(&b, "%s %v %q\n", name, info.Mode(), text)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

// planted makes a tree with one of each kind.
func planted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(dir+"/sub/deep", 0o750), os.Chmod(dir+"/sub/deep", 0o750), os.WriteFile(dir+"/sub/deep/file", []byte("deep"), 0o600),
		os.WriteFile(dir+"/program", []byte("#!/bin/sh\n"), 0o755), os.Chmod(dir+"/program", 0o755), os.WriteFile(dir+"/read only", nil, 0o444), os.Chmod(dir+"/read only", 0o444),
		os.Symlink("/etc/passwd", dir+"/to passwd"), os.Symlink("sub", dir+"/to sub"), os.Symlink("nowhere", dir+"/dangling"),
		unix.Mkfifo(dir+"/fifo", 0o666), unix.Mkfifo(dir+"/sub/fifo", 0o666),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestATreeIsCopied whole, links as links and without FIFOs, in both directions and over what is there.
func TestATreeIsCopied(t *testing.T) {
	files := served(t, serve)
	from := planted(t)
	want := listing(t, from)
	for how, copies := range map[string]func(to string) (Copied, error){
		"in":  func(to string) (Copied, error) { return files.CopyIn(t.Context(), from, to) },
		"out": func(to string) (Copied, error) { return files.CopyOut(t.Context(), from, to) },
	} {
		to := t.TempDir()
		if err := errors.Join(os.WriteFile(to+"/program", []byte("old and longer than the new one"), 0o600), os.Symlink("/etc/passwd", to+"/read only"), os.WriteFile(to+"/kept", nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // and over itself
			c, err := copies(to)
			slices.Sort(c.Skipped)
			if err != nil || c.Entries != 8 || c.Bytes != 14 || !slices.Equal(c.Skipped, []string{"fifo", "sub/fifo"}) {
				t.Errorf("%s: %+v, %v", how, c, err)
			}
		}
		os.Remove(to + "/kept")
		got := listing(t, to)
		var expected []string
		for line := range strings.Lines(want) {
			if !strings.Contains(line, "fifo") {
				expected = append(expected, line)
			}
		}
		if got != strings.Join(expected, "") {
			t.Errorf("%s:\n%swant\n%s", how, got, strings.Join(expected, ""))
		}
	}
}

// TestCopyOutFollowsNoLinkOutside that a tool has planted where the copy goes, and writes nothing beside.
func TestCopyOutFollowsNoLinkOutside(t *testing.T) {
	files := served(t, serve)
	from, to, beside := t.TempDir(), t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Mkdir(from+"/sub", 0o755), os.WriteFile(from+"/sub/hook", []byte("planted"), 0o755), os.WriteFile(from+"/file", []byte("planted"), 0o755),
		os.Mkdir(to+"/.git", 0o755), os.WriteFile(to+"/.git/file", []byte("own"), 0o644), os.WriteFile(beside+"/file", []byte("own"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, target := range []string{".git", beside, "../" + filepath.Base(beside)} {
		if err := os.Symlink(target, to+"/sub"); err != nil {
			t.Fatal(err)
		}
		os.Remove(to + "/file")
		os.Symlink(target+"/file", to+"/file")
		if _, err := files.CopyOut(t.Context(), from, to); err == nil {
			t.Errorf("a directory in whose place is a link to %s", target)
		}
		if names, _ := os.ReadDir(beside); len(names) != 1 {
			t.Errorf("%s: %v", target, names)
		}
		for _, own := range []string{to + "/.git/file", beside + "/file"} {
			if text, _ := os.ReadFile(own); string(text) != "own" {
				t.Errorf("%s: %s has %q", target, own, text)
			}
		}
		if _, err := os.Lstat(to + "/.git/hook"); err == nil {
			t.Errorf("%s: it was followed", target)
		}
		os.Remove(to + "/sub")
	}
}

// TestACopyWhileLinksAreSwapped reads and writes nothing beside the tree: what is a directory in one moment is a link in the next.
func TestACopyWhileLinksAreSwapped(t *testing.T) {
	files := served(t, serve)
	from, to, beside := t.TempDir(), t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Mkdir(from+"/sub", 0o755), os.WriteFile(from+"/sub/file", []byte("fair"), 0o644), os.WriteFile(beside+"/file", []byte("secret"), 0o644),
		os.Symlink(beside, from+"/link"), os.Mkdir(to+"/sub", 0o755), os.Mkdir(to+"/protected", 0o755), os.Symlink("protected", to+"/link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var over atomic.Bool
	swapped := make(chan struct{})
	swap := func(dir string) {
		unix.Renameat2(unix.AT_FDCWD, dir+"/sub", unix.AT_FDCWD, dir+"/link", unix.RENAME_EXCHANGE)
	}
	go func() {
		defer close(swapped)
		for !over.Load() {
			swap(from)
			swap(to)
		}
	}()
	for range 100 {
		inside := t.TempDir()
		files.CopyIn(t.Context(), from, inside)
		for _, name := range []string{"/sub/file", "/link/file"} {
			if info, err := os.Lstat(inside + filepath.Dir(name)); err == nil && info.IsDir() {
				if text, err := os.ReadFile(inside + name); err == nil && string(text) == "secret" {
					t.Fatal("a file beside the tree was copied in")
				}
			}
		}
		os.RemoveAll(inside)
		out := t.TempDir()
		os.Mkdir(out+"/sub", 0o755)
		os.WriteFile(out+"/sub/planted", nil, 0o644)
		files.CopyOut(t.Context(), out, to)
		if _, err := os.Lstat(to + "/protected/planted"); err == nil {
			t.Fatal("a file was written where a link leads")
		}
	}
	over.Store(true)
	<-swapped
}

// TestACopyHasBounds, and ends with its context.
func TestACopyHasBounds(t *testing.T) {
	files := served(t, serve)
	from, to := t.TempDir(), t.TempDir()
	deep := from
	for range maxDepth + 2 {
		deep += "/d"
	}
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, copies := range []func(context.Context, string, string) (Copied, error){files.CopyIn, files.CopyOut} {
		if _, err := copies(t.Context(), from, to); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("too deep: %v", err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := copies(over, from, to); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if _, err := copies(t.Context(), from+"/none", to); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("no such directory: %v", err)
		}
	}
	big := t.TempDir()
	if err := errors.Join(os.WriteFile(big+"/file", []byte("0123456789"), 0o644)); err != nil {
		t.Fatal(err)
	}
	c := &copying{ctx: t.Context(), done: Copied{Bytes: maxCopied - 5}}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := c.dir(files.below(big), outside{root}, "", 0); !errors.Is(err, syscall.EFBIG) || c.done.Bytes != maxCopied {
		t.Errorf("too much: %+v, %v", c.done, err)
	}
}

// TestCopyInHoldsSomeNamesOfADirectory, and not all, before it finds that there are too many.
func TestCopyInHoldsSomeNamesOfADirectory(t *testing.T) {
	files, from, to := served(t, serve), t.TempDir(), t.TempDir()
	const n = 20 * portion
	long := strings.Repeat("n", 200)
	for i := range n {
		if err := os.Symlink("x", fmt.Sprint(from, "/", long, i)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := &copying{ctx: t.Context(), done: Copied{Entries: maxCopies - 1}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.dir(outside{root}, files.below(to), "", 0)
	runtime.ReadMemStats(&after)
	if made, _ := os.ReadDir(to); !errors.Is(err, syscall.EFBIG) || len(made) != 1 {
		t.Errorf("%v; %d were copied", err, len(made))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > n*uint64(len(long))/4 {
		t.Errorf("%d bytes were allocated for names of %d", took, n*len(long))
	}
	c.done = Copied{}
	if err := c.dir(outside{root}, files.below(to), "", 0); err != nil || c.done.Entries != n {
		t.Errorf("all of them: %+v, %v", c.done, err)
	}
	if made, _ := os.ReadDir(to); len(made) != n {
		t.Errorf("%d were copied", len(made))
	}
}

// TestCopyOutHoldsSomeNamesOfADirectory, too.
func TestCopyOutHoldsSomeNamesOfADirectory(t *testing.T) {
	files, from, to := served(t, serve), t.TempDir(), t.TempDir()
	const n = 20 * portion
	long := strings.Repeat("n", 200)
	for i := range n {
		if err := os.Symlink("x", fmt.Sprint(from, "/", long, i)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	c := &copying{ctx: t.Context(), done: Copied{Entries: maxCopies - 1}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = c.dir(files.below(from), outside{root}, "", 0)
	runtime.ReadMemStats(&after)
	if made, _ := os.ReadDir(to); !errors.Is(err, syscall.EFBIG) || len(made) != 1 {
		t.Errorf("%v; %d were copied", err, len(made))
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > n*uint64(len(long))/4 {
		t.Errorf("%d bytes were allocated for names of %d", took, n*len(long))
	}
	c.done = Copied{}
	if err := c.dir(files.below(from), outside{root}, "", 0); err != nil || c.done.Entries != n {
		t.Errorf("all of them: %+v, %v", c.done, err)
	}
}
