package sandbox

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelAPrivateDirectoryMayBeShared where none can be private: the tool has what the host has there, but not what is protected or hidden by name, and
// no socket of another program's. The run's own directory lies elsewhere, though the harness's TMPDIR names that directory. With namespaces it is private.
func TestKernelAPrivateDirectoryMayBeShared(t *testing.T) {
	for _, c := range []struct {
		name    string
		without []kerneltest.Feature
		says    []string // what the tool prints
		shared  bool
	}{
		{"with namespaces", nil, []string{"mine", "moved", "ran"}, false},
		{"without namespaces", []kerneltest.Feature{kerneltest.Namespaces}, []string{"theirs", "mine", "moved", "ran"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: c.without}, func(t *testing.T) {
					if kerneltest.Need(t, kerneltest.LandlockABI(1)); !c.shared {
						kerneltest.Need(t, kerneltest.HasUserNamespaces)
					}
					testShared(t, c.says, c.shared)
				})
			})
		})
	}
}

func testShared(t *testing.T, says []string, shared bool) {
	kerneltest.Need(t, kerneltest.Command("python3"))
	dir, err := os.MkdirTemp("", "shared") // short: an address holds 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for name, text := range map[string]string{"others": "theirs\n", ".env": "SECRET"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("TMPDIR", dir)
	p := workspaceHere(t).InContainer()
	p.Files.Private, p.Files.MayShare, p.Files.HideNames = append(p.Files.Private, dir), []string{dir}, []string{".env"}
	p.Env.Set = map[string]string{"S": dir}
	c := commandIn(t, p, `cat $S/others
		echo mine >$S/x && cat $S/x && mkdir $S/d && mv $S/x $S/d/x && [ -f $S/d/x ] && echo moved
		printf '#!/bin/sh\necho ran\n' >$S/p && chmod +x $S/p && $S/p
		cat $S/.env; mkdir -p $S/r/.git/hooks; echo evil >$S/r/.git/hooks/pre-commit; echo evil >$S/.envrc
		case $TMPDIR in $S*) echo OWN;; esac
		mkdir -p $TMPDIR/v && echo evil >$TMPDIR/v/.envrc && python3 -c '
import os, socket
s = os.environ["S"]
try: os.rename(os.environ["TMPDIR"] + "/v", s + "/v"); print("RENAMED")
except OSError: pass
try: socket.socket(socket.AF_UNIX).connect(s + "/sock"); print("CONNECTED")
except OSError: pass'`)
	out, err := c.Output()
	got := strings.Fields(string(out))
	if !shared {
		got = got[:min(len(got), len(says))] // what follows is of the run's own directory
		for _, where := range []string{"others", "x", "d", "p", ".envrc"} {
			if _, err := os.Stat(filepath.Join(dir, where)); (err == nil) != (where == "others") {
				t.Errorf("%s outside: %v", where, err)
			}
		}
	} else if text, _ := os.ReadFile(filepath.Join(dir, "d/x")); string(text) != "mine\n" {
		t.Errorf("the harness finds %q", text)
	}
	if err != nil || strings.Join(got, " ") != strings.Join(says, " ") {
		t.Errorf("it printed %q, %v", out, err)
	}
	for _, planted := range []string{".envrc", "v/.envrc", "r/.git/hooks/pre-commit"} {
		if _, err := os.Lstat(filepath.Join(dir, planted)); err == nil {
			t.Errorf("%s is there", planted)
		}
	}
	if said := strings.Contains(c.Report().String(), dir+" is shared"); said != shared {
		t.Errorf("the report says so: %t\n%s", said, c.Report())
	}
}
