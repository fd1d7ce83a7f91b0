package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// gpgAgent starts an agent of gpg's with one key, and returns the key's keygrip. The
// harness's gpg finds it.
func gpgAgent(t *testing.T) (grip string) {
	t.Helper()
	home := must(os.MkdirTemp("", "g")) // short: an address holds 107 bytes
	t.Cleanup(func() { os.RemoveAll(home) })
	t.Setenv("GNUPGHOME", home)
	t.Setenv("HOME", home)
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(name, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { exec.Command("gpgconf", "--kill", "gpg-agent").Run() })
	run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "me <me@example.com>", "ed25519", "sign", "never")
	keys := run("gpg", "--batch", "--with-keygrip", "--list-keys")
	found := regexp.MustCompile(`Keygrip = ([0-9A-F]{40})`).FindStringSubmatch(keys)
	if found == nil {
		t.Fatal(keys)
	}
	return found[1]
}

// TestKernelNetworkLetsTheGPGAgentSign: the tool signs, and every command that would
// take, add, change or read a key is refused, in whatever spelling.
func TestKernelNetworkLetsTheGPGAgentSign(t *testing.T) {
	for _, name := range []string{"gpg", "gpg-agent", "gpgconf", "gpg-connect-agent"} {
		kerneltest.Need(t, kerneltest.Command(name))
	}
	eachUser(t, func(t *testing.T) {
		grip := gpgAgent(t)
		s := networkSandbox(t, allSets[0], func(p *Policy) {
			p.Network.GPGAgent = true
			p.Files.Private = append(p.Files.Private, "/home/tool")
			p.Env.Set = map[string]string{"HOME": "/home/tool"}
		})
		ask := func(commands ...string) (string, *Report) {
			c := s.Command(must(exec.LookPath("gpg-connect-agent")), append(append([]string{"--no-autostart", "-S", "/home/tool/.gnupg/S.gpg-agent"}, commands...), "/bye")...)
			c.Dir = "/"
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, c.Report())
			}
			return string(out), c.Report()
		}
		if out, r := ask("KEYINFO --list", "SIGKEY "+grip, "SETHASH --hash=sha256 "+strings.Repeat("ab", 32), "PKSIGN"); !strings.Contains(out, grip) || !strings.Contains(out, "sig-val") {
			t.Errorf("%s\n%s", out, r)
		}
		refused := []string{
			"KEYWRAP_KEY --export", "EXPORT_KEY " + grip, "DELETE_KEY --force " + grip, "delete_key --force " + grip, "Delete_Key\t--force " + grip, "PASSWD " + grip, "GENKEY", "IMPORT_KEY", "PKDECRYPT", "KILLAGENT",
			"RELOADAGENT", "SCD SERIALNO", "LEARN", "CLEAR_PASSPHRASE x", "PRESET_PASSPHRASE " + grip + " -1 00", "GET_PASSPHRASE --no-ask x X X X", "GETINFO socket_name", "GETVAL x", "PUTVAL x y", "UPDATESTARTUPTTY",
			"KEYTOCARD " + grip, "KEYATTR " + grip, "LISTTRUSTED", "MARKTRUSTED x", "ISTRUSTED x", "KEYINFO --ssh-list", "OPTION pinentry-mode=loopback", "OPTION --pinentry-mode = loopback",
		}
		out, r := ask(refused...)
		if n := strings.Count(out, "ERR 67109115"); n != len(refused) {
			t.Errorf("%d of %d are refused\n%s", n, len(refused), out)
		}
		if len(r.Violations) == 0 || r.Violations[0].Protocol != "gpg-agent" {
			t.Errorf("%s", r)
		}
		if out, err := exec.Command("gpg", "--batch", "--list-secret-keys", "--with-keygrip").CombinedOutput(); err != nil || !strings.Contains(string(out), grip) {
			t.Errorf("the key is gone: %v\n%s", err, out)
		}
		p := Policy{Open: []Bound{policy.BoundFiles}, Env: Env{Set: map[string]string{"HOME": t.TempDir()}}, Network: Network{GPGAgent: true}}
		var wrong *PolicyError
		if _, err := New(p); !errors.As(err, &wrong) || wrong.Field != "Network.GPGAgent" {
			t.Errorf("in a home of the host's: %v", err)
		}
		if _, err := os.Stat(filepath.Join("/home/tool", ".gnupg")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket was made on the host: %v", err)
		}
	})
}

// TestGPGConfOfAToolIsNotExecuted: a tool of an earlier run has left a gpgconf in a directory of PATH, here in the harness's own
// directory as well as elsewhere, and by a link.
func TestGPGConfOfAToolIsNotExecuted(t *testing.T) {
	dir := t.TempDir()
	marker := filepath.Join(dir, "executed")
	if err := os.WriteFile(filepath.Join(dir, "gpgconf"), []byte("#!/bin/sh\n: >"+marker+"\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	links := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "gpgconf"), filepath.Join(links, "gpgconf")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, path := range []string{dir, ".", "", links, links + ":" + dir} {
		t.Setenv("PATH", path)
		var wrong *PolicyError
		if _, err := New(Policy{Open: []Bound{policy.BoundFiles}, Network: Network{GPGAgent: true}}); !errors.As(err, &wrong) || wrong.Field != "Network.GPGAgent" {
			t.Errorf("PATH=%s: %v", path, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the tool's program was executed")
	}
}
