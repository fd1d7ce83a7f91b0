package agent

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// need skips where a program is not installed.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s: %v", p, err)
		}
	}
}

// filtered serves a socket at path with filter, a connection to real for each.
func filtered(t *testing.T, path, real string, filter func(inside, outside io.ReadWriter) error) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Serve(l, func() (net.Conn, error) { return net.Dial("unix", real) }, filter) }()
	t.Cleanup(func() {
		l.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// tell runs a program with an environment and gives all that it says.
func tell(t *testing.T, stdin string, env []string, name string, arg ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(name, arg...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// short makes a directory whose name leaves room for a socket's.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestTheRealSSHAgentListsAndSignsThroughAFilterAndLosesNoKey(t *testing.T) {
	need(t, "ssh-agent", "ssh-add", "ssh-keygen")
	dir := short(t)
	real, inside := filepath.Join(dir, "real"), filepath.Join(dir, "in")
	agent := exec.Command("ssh-agent", "-D", "-a", real)
	out, _ := agent.StdoutPipe()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	out.Read(make([]byte, 1)) // it says its socket when that listens
	for _, k := range []string{"one", "two"} {
		if out, err := tell(t, "", nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", k, "-f", filepath.Join(dir, k)); err != nil {
			t.Fatal(out)
		}
		if out, err := tell(t, "", []string{"SSH_AUTH_SOCK=" + real}, "ssh-add", filepath.Join(dir, k)); err != nil {
			t.Fatal(out)
		}
	}
	filtered(t, inside, real, func(in, out io.ReadWriter) error { return SSH(in, out, nobody) })

	env := []string{"SSH_AUTH_SOCK=" + inside}
	if out, err := tell(t, "", env, "ssh-add", "-l"); err != nil || strings.Count(out, "\n") != 2 {
		t.Errorf("ssh-add -l: %v: %s", err, out)
	}
	if out, err := tell(t, "commit", env, "ssh-keygen", "-Y", "sign", "-n", "git", "-f", filepath.Join(dir, "one.pub")); err != nil || !strings.Contains(out, "BEGIN SSH SIGNATURE") {
		t.Errorf("signing by the granted key: %v: %s", err, out)
	}
	for name, arg := range map[string][]string{
		"removing all keys": {"-D"}, "removing a key": {"-d", filepath.Join(dir, "one.pub")}, "adding a key": {filepath.Join(dir, "two")}, "locking": {"-x"},
	} {
		if out, err := tell(t, "", append(env, "SSH_ASKPASS=/bin/echo", "SSH_ASKPASS_REQUIRE=force"), "ssh-add", arg...); err == nil {
			t.Errorf("%s passed: %s", name, out)
		}
	}
	if out, err := tell(t, "", []string{"SSH_AUTH_SOCK=" + real}, "ssh-add", "-l"); err != nil || strings.Count(out, "\n") != 2 {
		t.Errorf("the agent has lost a key: %v: %s", err, out)
	}
}

func TestTheRealGPGAgentSignsThroughAFilterAndExportsNothing(t *testing.T) {
	need(t, "gpg", "gpg-agent", "gpgconf", "gpg-connect-agent")
	home, guest := short(t), short(t)
	ours, theirs := []string{"GNUPGHOME=" + home}, []string{"GNUPGHOME=" + guest}
	gpg := func(env []string, stdin string, arg ...string) (string, error) {
		return tell(t, stdin, env, "gpg", append([]string{"--batch", "--no-tty"}, arg...)...)
	}
	t.Cleanup(func() { tell(t, "", ours, "gpgconf", "--kill", "gpg-agent") })
	if out, err := tell(t, "", ours, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "me <me@example.com>", "ed25519", "sign", "never"); err != nil {
		t.Fatal(out)
	}
	public, err := gpg(ours, "", "--armor", "--export")
	if err != nil {
		t.Fatal(public)
	}
	real, err := tell(t, "", ours, "gpgconf", "--list-dirs", "agent-socket")
	if err != nil {
		t.Fatal(real)
	}
	// The guest's home says where its agent is, as libassuan's redirection has it.
	inside := filepath.Join(guest, "filtered")
	theirSocket, _ := tell(t, "", theirs, "gpgconf", "--list-dirs", "agent-socket")
	redirect := "%Assuan%\nsocket=" + inside + "\n"
	if err := os.WriteFile(strings.TrimSpace(theirSocket), []byte(redirect), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(strings.TrimSpace(theirSocket)) })
	var mu sync.Mutex
	var refused []string
	filtered(t, inside, strings.TrimSpace(real), func(in, out io.ReadWriter) error {
		return GPG(in, out, func(s string) { mu.Lock(); refused = append(refused, s); mu.Unlock() })
	})
	if out, err := gpg(theirs, public, "--import"); err != nil {
		t.Fatal(out)
	}
	signed, err := tell(t, "a commit", theirs, "gpg", "--batch", "--no-tty", "--armor", "--detach-sign")
	if err != nil || !strings.Contains(signed, "BEGIN PGP SIGNATURE") {
		t.Errorf("signing: %v: %s, refused %q", err, signed, refused)
	}
	if out, err := gpg(theirs, "", "--armor", "--export-secret-keys"); err == nil && strings.Contains(out, "PRIVATE KEY") {
		t.Errorf("a secret key was exported: %s", out)
	}
	if out, err := tell(t, "", theirs, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", "x <x@example.com>", "ed25519", "sign", "never"); err == nil {
		t.Errorf("a key was generated: %s", out)
	}
	for _, c := range []string{"KILLAGENT", "SCD SERIALNO", "GET_PASSPHRASE --no-ask x X X X", "GETINFO socket_name"} {
		if out, _ := tell(t, "", theirs, "gpg-connect-agent", "--no-autostart", c, "/bye"); !strings.Contains(out, "ERR 67109115") {
			t.Errorf("%s: %s", c, out)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(refused) == 0 {
		t.Error("nothing was said to be refused")
	}
}
