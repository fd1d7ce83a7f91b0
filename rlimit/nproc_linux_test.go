//go:build linux && (amd64 || arm64)

package rlimit

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// The machine's root is never held by NProc, not even inside a user namespace: only a cgroup bounds its processes.
func TestKernelProcessesOfTheMachinesRootAreNotLimited(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	if os.Getuid() != 0 {
		t.Skip("this test process is not root")
	}
	for name, change := range map[string]func(*exec.Cmd){
		"as root": func(c *exec.Cmd) { c.SysProcAttr.Credential = nil },
		"as root in a user namespace": func(c *exec.Cmd) {
			c.SysProcAttr.Credential = nil
			c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 0, Size: 1}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := child(t, "fork", Limits{NProc: At(1)}, change); got != "ok" {
				t.Errorf("fork: %s; the package's Limits section says that it works", got)
			}
		})
	}
}

// In a user namespace of its own a user's threads outside do not count (Linux 5.14).
func TestKernelAUserNamespaceHasACountOfItsOwn(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	uid := os.Getuid()
	if uid == 0 {
		uid = 65534
	}
	var other *exec.Cmd
	for range 20 { // more threads of the user than the limit, outside
		other = exec.Command("sleep", "600")
		other.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if os.Getuid() == 0 {
			other.SysProcAttr.Credential = nobody
		}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer func(c *exec.Cmd) { c.Process.Kill(); c.Wait() }(other)
	}
	namespace := func(c *exec.Cmd) {
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: uid, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 1000, HostID: 65534, Size: 1}}
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 1000, Gid: 1000, NoSetGroups: true}
		if os.Getuid() != 0 {
			c.SysProcAttr.GidMappings[0].HostID = os.Getgid()
		}
	}
	limit := Limits{NProc: At(20)}
	if got, s := child(t, "fork", limit); !refusedFork(got, s) {
		t.Errorf("beside 20 processes of the user: %s", got)
	}
	if got, _ := child(t, "fork", limit, namespace); got != "ok" {
		t.Errorf("in a namespace of its own: %s", got)
	}
	if got, s := child(t, "fork", Limits{NProc: At(1)}, namespace); !refusedFork(got, s) {
		t.Errorf("in a namespace of its own, at its limit: %s", got)
	}
}
