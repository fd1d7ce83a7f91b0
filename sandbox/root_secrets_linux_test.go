package sandbox

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

// TestKernelRootsSecretsInUsrLocal: what root alone can read below /usr/local and /opt is hidden from the tool of a root harness, whatever PATH has,
// and whenever it was made, closed or removed. The home is one below /home.
func TestKernelRootsSecretsInUsrLocal(t *testing.T) {
	kerneltest.InChild(t, kerneltest.Child{As: kerneltest.Root}, func(t *testing.T) {
		do := func(errs ...error) {
			t.Helper()
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
		}
		do(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		for _, dir := range []string{"/usr/local/etc", "/opt", "/home"} {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0755"); err != nil {
				t.Skipf("needs a directory %s to mount on: %v", dir, err)
			}
		}
		const ws = "/home/agent/src/p"
		do(os.MkdirAll(ws, 0o755))
		t.Setenv("HOME", "/home/agent")
		write := func(name string, mode os.FileMode) {
			t.Helper()
			do(os.WriteFile(name, []byte("SECRET\n"), mode), os.Chmod(name, mode))
		}
		for _, dir := range []string{"/usr/local/etc/x", "/opt/app/secrets", "/opt/app/bin", "/opt/own/bin", "/opt/own/lib"} {
			do(os.MkdirAll(dir, 0o755))
		}
		write("/usr/local/etc/x/key", 0o644)
		write("/opt/app/secrets/key", 0o644)
		do(os.Chmod("/usr/local/etc/x", 0o700), os.Chmod("/opt/app/secrets", 0o700))
		write("/usr/local/etc/open", 0o644)
		do(os.Chmod("/opt/own", 0o700), os.WriteFile("/opt/own/bin/own-tool", []byte("#!/bin/sh\ncat /opt/own/lib/text\n"), 0o700), os.Chmod("/opt/own/lib", 0o700),
			os.WriteFile("/opt/own/lib/text", []byte("own\n"), 0o644))
		run := func(script string) (string, error) {
			s := must(New(Workspace(ws)))
			out, err := s.Command("sh", "-c", script).CombinedOutput()
			return string(out), err
		}
		const all = "cat /usr/local/etc/x/key /opt/app/secrets/key /usr/local/etc/later.env /usr/local/etc/closed; cat /usr/local/etc/x/late; exit 0"
		for _, path := range []string{"/usr/bin:/bin", "/usr/local/bin:/usr/bin", "/usr/sbin:/bin", "/opt/app/bin:/usr/bin", "/opt/own/bin:/bin:/usr/bin"} {
			t.Setenv("PATH", path)
			if out, err := run(all); err != nil || strings.Contains(out, "SECRET") {
				t.Errorf("PATH=%s: %q, %v", path, out, err)
			}
			if out, err := run("cat /usr/local/etc/open"); err != nil || out != "SECRET\n" {
				t.Errorf("PATH=%s, what all may read: %q, %v", path, out, err)
			}
		}
		if out, err := run("own-tool"); err != nil || out != "own\n" {
			t.Errorf("root's own tool: %q, %v", out, err)
		}
		write("/usr/local/etc/closed", 0o644)
		if out, _ := run(all); strings.Count(out, "SECRET") != 1 {
			t.Errorf("what all may read: %q", out)
		}
		do(os.Chmod("/usr/local/etc/closed", 0o600)) // which changes nothing in the directory
		write("/usr/local/etc/later.env", 0o600)
		if out, err := run(all); err != nil || strings.Contains(out, "SECRET") {
			t.Errorf("made and closed since: %q, %v", out, err)
		}
		s := must(New(Workspace(ws)))
		do(os.Remove("/usr/local/etc/later.env"))
		out, err := s.Command("sh", "-c", all).CombinedOutput()
		if err != nil || strings.Contains(string(out), "SECRET") {
			t.Errorf("a secret is gone since New: %q, %v", out, err)
		}
		write("/usr/local/etc/later.env", 0o600)
		if out, err = s.Command("sh", "-c", all).CombinedOutput(); err != nil || strings.Contains(string(out), "SECRET") {
			t.Errorf("and back: %q, %v", out, err)
		}
		n := must(s.Open(t.Context()))
		defer n.Close()
		if out, err = n.Command("sh", "-c", all).CombinedOutput(); err != nil || strings.Contains(string(out), "SECRET") {
			t.Errorf("in a session: %q, %v", out, err)
		}
	})
}
