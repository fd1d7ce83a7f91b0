package gitobeyed

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestNoRepositoryIsLeftOut among so many files as a tool can make in the top of its tree: what a repository names would be open to the next tool.
func TestNoRepositoryIsLeftOut(t *testing.T) {
	kerneltest.Long(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir+"/home")
	for i := range 80_000 {
		write(t, fmt.Sprint(dir, "/file", i), "", false)
	}
	const repositories = 30 // the file system has them anywhere among the files
	for i := range repositories {
		repo := fmt.Sprint(dir, "/repository", i)
		write(t, repo+"/.git/HEAD", "x", false)
		write(t, repo+"/.git/config", "[core]\nhooksPath=h", false)
	}
	found := In(dir, shown).Paths
	for i := range repositories {
		if hooks := fmt.Sprint(dir, "/repository", i, "/h"); !slices.Contains(found, hooks) {
			t.Errorf("%s was not found", hooks)
		}
	}
}

// TestManyWorktreesTakeLinearTime: while each was looked for anew from each, this took some minutes.
func TestManyWorktreesTakeLinearTime(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir+"/home")
	write(t, dir+"/.git/HEAD", "x", false)
	write(t, dir+"/.git/config", "[core]\nhooksPath=h", false)
	const worktrees = 3000
	for i := range worktrees {
		git := fmt.Sprint(dir, "/.git/worktrees/", i)
		write(t, git+"/HEAD", "x", false)
		write(t, git+"/commondir", "../..", false)
		write(t, git+"/gitdir", fmt.Sprint(dir, "/w", i, "/.git"), false)
		if err := os.Mkdir(fmt.Sprint(dir, "/w", i), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	found := In(dir, shown).Paths
	if took := time.Since(began); took > time.Minute {
		t.Errorf("%d worktrees took %v", worktrees, took)
	}
	if hooks := fmt.Sprint(dir, "/w", worktrees-1, "/h"); !slices.Contains(found, hooks) {
		t.Errorf("%s was not found among %d", hooks, len(found))
	}
}
