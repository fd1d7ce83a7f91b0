//go:build unix

package gitobeyed

import (
	"slices"
	"syscall"
	"testing"
)

func TestAPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/.git/HEAD", "x", false)
	write(t, dir+"/.git/config", "[include]\n\tpath = ../pipe\n", false)
	if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	if got := In(dir, shown).Paths; !slices.Equal(got, []string{dir + "/pipe"}) {
		t.Errorf("found %q", got)
	}
}
