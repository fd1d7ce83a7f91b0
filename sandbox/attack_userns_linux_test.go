package sandbox

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "a user namespace", enterUserNamespace), offer(programs, "mount the control group", mountControlGroup)

// enterUserNamespace is uid 0 without capabilities, and has some in a user namespace of its own, in which it has no uid.
func enterUserNamespace([]string) {
	c := exec.Command("/proc/self/exe")
	c.Args = []string{attackTool, "mount the control group"}
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}}
	out, err := c.Output()
	fmt.Printf("%s%v\n", out, err)
}

// mountControlGroup mounts the control group that the harness is in, too, and opens what moves its processes.
func mountControlGroup([]string) {
	err := unix.Mount("x", "/tmp", "cgroup2", 0, "")
	if err == nil {
		_, err = unix.Open("/tmp/cgroup.procs", unix.O_WRONLY, 0)
	}
	fmt.Printf("control group: %v, ", err)
}

// TestKernelAttackAUserNamespaceOfRoots: where root makes its namespaces without a user namespace, whose quota would say so, and the profile lets the tool make
// one, it has rights there over mounts of its own.
func TestKernelAttackAUserNamespaceOfRoots(t *testing.T) {
	for _, without := range [][]kerneltest.Feature{{kerneltest.WholeProc, kerneltest.Landlock}, {kerneltest.WholeProc}, {kerneltest.Landlock}} {
		t.Run(fmt.Sprint(without), func(t *testing.T) {
			kerneltest.Root.Wanted(t)
			kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root, Without: without}, func(t *testing.T) {
				kerneltest.Need(t, kerneltest.HasUserNamespaces)
				w := walls{noCalls: true, may: sharedPIDs.may}
				s := attackSandbox(t, attackPolicy(t, "", w), w)
				out, err := hostile(t, s, "a user namespace").CombinedOutput()
				if said := string(out); err != nil || !strings.HasSuffix(said, unix.EPERM.Error()+"\n") && !strings.HasSuffix(said, unix.ENOSPC.Error()+"\n") {
					t.Errorf("ESCAPE: %s, %v", out, err)
				}
			})
		})
	}
}
