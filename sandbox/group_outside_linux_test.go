package sandbox

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelAProcessGroupFromOutside has a harness in a pid namespace to which its process group and session came from outside, as where an engine's
// runtime executes it in a container: both have the number 0 there. A filter keeps the tool from the sandbox's processes by their numbers.
func TestKernelAProcessGroupFromOutside(t *testing.T) {
	const within = "GROUP_OUTSIDE"
	if os.Getenv(within) == "" {
		kerneltest.Need(t, kerneltest.HasUserNamespaces)
		c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		c.Env = append(os.Environ(), within+"=1")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		t.Fatal(err)
	}
	if group := unix.Getpgrp(); group != 0 {
		t.Fatalf("the process group is %d", group)
	}
	w := unscoped[0]
	s, err := New(attackPolicy(t, "", w))
	if err != nil {
		t.Fatal(err)
	}
	fixture.WithoutNamespaces(&s.facts)
	s.facts.Landlock.Value = w.abi
	if err := s.compile(); err != nil || !strings.Contains(s.Explain(), "filter keepers") {
		t.Fatal(err, s.Explain())
	}
	c := s.Command("/bin/sh", "-c", `kill -0 $PPID 2>/dev/null && echo REACHED; { sh -c 'kill -TERM $$'; } 2>/dev/null; echo $?; kill -KILL -1 2>/dev/null || echo refused`)
	c.Dir = "/"
	if out, err := c.CombinedOutput(); err != nil || string(out) != "143\nrefused\n" {
		t.Errorf("%v\n%s\n%v", err, out, c.Report())
	}
}
