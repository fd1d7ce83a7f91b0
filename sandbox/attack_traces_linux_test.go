package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// An empty list forbids as one that is not there (CVE-2025-66479).
func TestEmptyListsForbidAsNilDoes(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	planOf := func(p Policy) any {
		p.May = append(p.May, policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork, policy.BoundSyscalls)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		return []any{s.ready.Plan, p.Env.Environ([]string{"A=1", "B_TOKEN=2"})}
	}
	none := []string{}
	empty := Policy{
		Files: Files{Read: none, Write: none, Hide: none, HideNames: none, Private: none, CopyOnWrite: none, Make: []policy.File{}, Protect: policy.Protect{Add: none, Except: none}},
		Env:   Env{Pass: none, Set: map[string]string{}},
		Open:  []Bound{},
	}
	if zero := planOf(Policy{}); !reflect.DeepEqual(planOf(empty), zero) {
		t.Error("an empty list means something else than none")
	} else if reflect.DeepEqual(planOf(Policy{Files: Files{Read: []string{exe}}}), zero) {
		t.Error("and so does one with an entry: this test shows nothing")
	}
}

// What a run makes in the temporary directory has a name nobody can foresee, and
// is closed to others (CVE-2026-46406). With namespaces it makes nothing there.
func TestKernelTemporaryFilesCannotBeForeseen(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(watch)
		if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
		var seen []string
		for range 3 {
			out, err := commandIn(t, p, `echo "TMPDIR=$TMPDIR"; stat -c %a:%u "${TMPDIR%/tmp}"; true`).Output()
			if err != nil {
				t.Fatal(err)
			}
			names := namesMade(t, watch)
			if w.name == allWalls && len(names) > 0 || w.name == noNamespaces && len(names) != 1 {
				t.Errorf("it makes %q", names)
			}
			for _, n := range names {
				if slices.Contains(seen, n) || len(n) < len("holdfast-")+6 {
					t.Errorf("%q can be foreseen after %q", n, seen)
				}
				if want := fmt.Sprintf("TMPDIR=%s/%s/tmp\n700:%d\n", dir, n, os.Getuid()); string(out) != want {
					t.Errorf("the tool has %q, want %q", out, want)
				}
				if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
					t.Errorf("%s is left", n)
				}
			}
			seen = append(seen, names...)
		}
	})
}

// namesMade reads the names in the events of an inotify descriptor.
func namesMade(t *testing.T, fd int) []string {
	t.Helper()
	buf := make([]byte, 1<<16)
	n, err := unix.Read(fd, buf)
	if err != nil && err != unix.EAGAIN {
		t.Fatal(err)
	}
	var names []string
	for buf = buf[:max(n, 0)]; len(buf) >= unix.SizeofInotifyEvent; {
		event := (*unix.InotifyEvent)(unsafe.Pointer(&buf[0]))
		end := unix.SizeofInotifyEvent + int(event.Len)
		names = append(names, string(bytes.TrimRight(buf[unix.SizeofInotifyEvent:end], "\x00")))
		buf = buf[end:]
	}
	return names
}

// What one command does to its shell's surroundings does not reach the next,
// whose programs would be started by it (CVE-2026-22708).
func TestKernelAttackPoisonDoesNotReachTheNextCommand(t *testing.T) {
	kerneltest.Long(t)
	const poison = `for f in ~/.bashrc ~/.profile ~/.bash_profile; do echo 'echo POISON' >$f; done
		mkdir -p ~/bin ~/.config/git; printf '#!/bin/sh\necho POISON' >~/bin/ls; chmod +x ~/bin/ls
		export PATH=~/bin:$PATH BASH_ENV=~/.bashrc; alias ls='echo POISON'
		echo POISON >/tmp/poison; cp ~/bin/ls /tmp/ls; `
	const look = `bash -ic true; bash -lc true; bash -c true; ls -A ~ /tmp "$TMPDIR"`
	eachWall(t, []walls{allSets[0], allSets[1], allSets[3]}, func(t *testing.T, w walls) {
		p := workspaceHere(t)
		p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		say := func(script string) string {
			c := s.Command("/bin/bash", "-c", script)
			c.Dir = filepath.Join(os.Getenv("HOME"), "ws")
			out, err := c.CombinedOutput()
			if err != nil {
				t.Logf("%v\n%s", err, out)
			}
			return string(out)
		}
		if out := say(poison + look); !strings.Contains(out, "POISON") {
			t.Errorf("in the same command nothing is poisoned either: %s", out)
		}
		if out := say(look); strings.Contains(out, "POISON") || strings.Contains(out, "poison") {
			t.Errorf("ESCAPE: the next command is poisoned: %s", out)
		}
	})
}
