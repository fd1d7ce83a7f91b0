package gitobeyed

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// within fails a test whose search does not end.
func within(t *testing.T, dir string) Found {
	t.Helper()
	done := make(chan Found, 1)
	go func() { done <- In(dir, shown) }()
	select {
	case found := <-done:
		return found
	case <-time.After(time.Minute):
		t.Fatal("the search does not end")
	}
	return Found{}
}

// TestEachFileIsFollowedOnce: what a tool leaves may include itself, two hundred times, by many names.
func TestEachFileIsFollowedOnce(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	dir := t.TempDir()
	var text strings.Builder
	text.WriteString("[include]\n")
	for i := range 200 {
		fmt.Fprintf(&text, "path = %sconfig\n", strings.Repeat("../x/", i%7))
	}
	write(t, dir+"/x/HEAD", "x", false)
	write(t, dir+"/x/config", text.String(), false)
	if found := within(t, dir); found.Problem != "" || !slices.Equal(found.Paths, []string{dir + "/x/config"}) {
		t.Errorf("%+v", found)
	}
}

// TestIncludesAreRelativeToEachDirectory by which a file is reached: a link of a tool's to a configuration takes nothing from it.
func TestIncludesAreRelativeToEachDirectory(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	dir := t.TempDir()
	write(t, dir+"/a/HEAD", "x", false)
	write(t, dir+"/a/config", "->../lib/config", false)
	write(t, dir+"/lib/HEAD", "x", false)
	write(t, dir+"/lib/config", "[include]\npath = local\n", false)
	if found := within(t, dir); !slices.Equal(found.Paths, []string{dir + "/a/local", dir + "/lib/local"}) {
		t.Errorf("%+v", found)
	}
}

// TestASearchHasAnEnd, and says what it went to: when that is removed, all is found again.
func TestASearchHasAnEnd(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	for name, plant := range map[string]func(dir string){
		"/x/config": func(dir string) {
			write(t, dir+"/x/config", "[core]\n"+strings.Repeat("hooksPath = a/b/c/d/e/f/g\n", 40000), false)
		},
		"/x/config ": func(dir string) { // links that the kernel follows
			step := strings.Repeat("../x/", 800)
			for i := range 39 {
				write(t, fmt.Sprint(dir, "/x/l", i), fmt.Sprint("->", step, "l", i+1), false)
			}
			write(t, dir+"/x/config", "[include]\n"+strings.Repeat("path = l0\n", 1000), false)
		},
		"/x/config   ": func(dir string) {
			var words strings.Builder
			for i := range 100 {
				fmt.Fprintf(&words, "a/%d ", i)
			}
			write(t, dir+"/x/config", "[core]\n"+strings.Repeat("pager = "+words.String()+"\n", 2000), false)
		},
		"/x/config  ": func(dir string) { write(t, dir+"/x/config", strings.Repeat("# large\n", largest/8+1), false) },
	} {
		dir := t.TempDir()
		write(t, dir+"/.git/HEAD", "x", false)
		write(t, dir+"/.git/config", "[core]\nhooksPath=h\n", false)
		write(t, dir+"/x/HEAD", "x", false)
		plant(dir)
		if found := within(t, dir); found.Problem == "" || found.By != dir+strings.TrimSpace(name) {
			t.Errorf("by %q: %s", found.By, found.Problem)
		}
		if err := os.RemoveAll(dir + "/x"); err != nil {
			t.Fatal(err)
		}
		if found := within(t, dir); found.Problem != "" || !slices.Equal(found.Paths, []string{dir + "/.git/h", dir + "/h"}) {
			t.Errorf("afterwards %+v", found)
		}
	}
}

// TestWorktreesAreVisitedOnce, and not once for each of them.
func TestWorktreesAreVisitedOnce(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	dir := t.TempDir()
	write(t, dir+"/.git/HEAD", "x", false)
	for i := range 500 {
		at := fmt.Sprint(dir, "/.git/worktrees/", i)
		write(t, at+"/HEAD", "x", false)
		write(t, at+"/commondir", "../..", false)
		write(t, at+"/gitdir", fmt.Sprint(dir, "/trees/", i, "/.git"), false)
	}
	if found := within(t, dir); found.Problem != "" {
		t.Errorf("%s %s", found.By, found.Problem)
	}
}

// TestNothingButAFileIsOpened: an open alone can have an effect.
func TestNothingButAFileIsOpened(t *testing.T) {
	t.Setenv("HOME", "/nowhere")
	dir, out := t.TempDir(), t.TempDir()
	if err := unix.Mkfifo(out+"/fifo", 0o600); err != nil { // stands for /dev/watchdog
		t.Fatal(err)
	}
	for _, name := range []string{"config", "commondir", "config.worktree"} {
		write(t, dir+"/x/"+name, "->"+out+"/fifo", false)
	}
	write(t, dir+"/x/HEAD", "x", false)
	write(t, dir+"/.git", "->"+out+"/fifo", false)
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, out+"/fifo", unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	within(t, dir)
	if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
		t.Error("it was opened:", n, err)
	}
}
