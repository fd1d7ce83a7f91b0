package egress

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// inHosts is set in the child that has an /etc/hosts of its own.
const inHosts = "EGRESS_TEST_HOSTS"

// TestKernelNamesOfEtcHostsAreFound: the C library's resolver misses all of them when there is
// a final dot, and Go's those of one label. A search domain makes no name of another one.
func TestKernelNamesOfEtcHostsAreFound(t *testing.T) {
	if os.Getenv(inHosts) != "" {
		for name, want := range map[string]string{"registry.corp.test": "192.0.2.7", "build7": "192.0.2.8", "absent": "", "registry": ""} {
			got := ""
			addrs, err := lookupAbsolute(t.Context(), name)
			if len(addrs) > 0 {
				got = addrs[0].Unmap().String()
			}
			if got != want {
				t.Errorf("%s: %v, %v, want %q", name, addrs, err, want)
			}
		}
		return
	}
	for _, resolver := range []string{"", "cgo", "go"} {
		t.Run("netdns="+resolver, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.Command("mount"))
					withHosts(t, "192.0.2.7 registry.corp.test\n192.0.2.8 build7\n", resolver)
				})
			})
		})
	}
}

// withHosts runs the test once more, in namespaces in which /etc/hosts has a text and
// no name server answers.
func withHosts(t *testing.T, hosts, resolver string) {
	t.Helper()
	dir := t.TempDir()
	script := ""
	for name, text := range map[string]string{"hosts": hosts, "resolv.conf": "search corp.test\nnameserver 127.0.0.1\n", "nsswitch.conf": "hosts: files dns\n"} {
		own := filepath.Join(dir, name)
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat("/etc/" + name); err == nil { // else there is nothing to put it over, nor to be misled by
			script += "mount --bind " + own + " /etc/" + name + " && "
		}
	}
	cmd := exec.Command("/bin/sh", "-c", script+`exec /proc/self/fd/3 -test.run '^TestKernelNamesOfEtcHostsAreFound$'`)
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	cmd.ExtraFiles = []*os.File{exe}
	cmd.Env = append(os.Environ(), inHosts+"=1", "GODEBUG=netdns="+resolver, "PATH=/usr/sbin:/usr/bin:/sbin:/bin")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}
