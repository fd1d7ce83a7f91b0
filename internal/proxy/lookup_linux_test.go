package proxy

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// TestKernelNamesOfEtcHostsAreFound: the C library's resolver misses all of them when there is
// a final dot, and Go's those of one label. A search domain makes no name of another one.
func TestKernelNamesOfEtcHostsAreFound(t *testing.T) {
	if os.Getenv(inNamespaces) != "" {
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
			script += "mount --bind " + own + " /etc/" + name + "\n"
		}
	}
	again(t, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS|syscall.CLONE_NEWNET, script, "GODEBUG=netdns="+resolver)
}
