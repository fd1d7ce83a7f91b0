package proxy

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// inNamespaces is set in the test process that [again] has started.
const inNamespaces = "EGRESS_TEST_NAMESPACES"

// again runs the running test once more, as root of new namespaces that a shell
// script has prepared: the whole process, since a proxy's goroutines have many threads.
func again(t *testing.T, flags uintptr, script string, env ...string) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	cmd := exec.Command("/bin/sh", "-ec", script+"\nexec /proc/self/fd/3 -test.run '^"+test+"$'")
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = append(os.Environ(), append(env, inNamespaces+"=1", "PATH=/usr/sbin:/usr/bin:/sbin:/bin")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if flags&syscall.CLONE_NEWUSER != 0 {
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}
