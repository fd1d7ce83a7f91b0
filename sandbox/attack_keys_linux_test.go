package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

var _, _, _ = offer(attacks, "keys", keyActs), offer(programs, "harness without keys", harnessWithoutKeys), offer(programs, "the user's keys", readUsersKeys)

// secretKey is a key in the harness's session keyring.
const secretKey = "holdfast-secret"

// keyActs use the session keyring, whichever it is.
var keyActs = []act{
	{name: "search the session keyring", tame: true, try: func(ground) error {
		_, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", secretKey, 0)
		return err
	}},
	{name: "read the session keyring", tame: true, try: func(ground) error {
		_, err := unix.KeyctlBuffer(unix.KEYCTL_READ, unix.KEY_SPEC_SESSION_KEYRING, make([]byte, 64), 0)
		return err
	}},
	{name: "request a key", tame: true, try: func(ground) error {
		_, err := unix.RequestKey("user", secretKey, "", 0)
		return err
	}},
	{name: "change a key", tame: true, try: func(ground) error { // which takes no room
		_, err := unix.AddKey("user", secretKey, []byte("changed"), unix.KEY_SPEC_SESSION_KEYRING)
		return err
	}},
}

// harnessWithoutKeys uses up its user's quota of keys and runs the acts on keys
// under the default profile, or another. It says what came of it.
func harnessWithoutKeys(args []string) {
	if err := fillKeys(); err != nil {
		fmt.Println(err)
		return
	}
	w := walls{}
	for _, s := range allSets {
		if s.name == args[0] {
			w = s
		}
	}
	t := new(testing.T)
	p := attackPolicy(t, "", w)
	switch args[1] {
	case "another profile":
		p.Syscalls = seccomp.Default().With(seccomp.Rule{Names: []string{"keyctl"}, Action: seccomp.Allow, Reason: "a profile of the caller's own"})
	case "no profile":
		p.Syscalls = seccomp.Off()
	}
	tryAll("keys", "/", "all") // plainly: the quota does not stand in their way
	c := hostile(t, attackSandbox(t, p, w), "keys", "/", "all")
	c.Stdout = os.Stdout
	err := c.Run()
	var failed *StartError
	fmt.Printf("ended: %v, by quota: %v, start error: %v\n", err, errors.Is(err, unix.EDQUOT), errors.As(err, &failed))
	report := c.Report()
	fmt.Printf("privileges %s, held %v\n", report.Bound(policy.BoundPrivileges).State, report.Held())
}

// fillKeys makes keys in a new session keyring until the user may have no more.
func fillKeys() error {
	if _, err := unix.KeyctlJoinSessionKeyring("holdfast-attack"); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if _, err := unix.AddKey("user", secretKey, []byte("original"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		return fmt.Errorf("add: %w", err)
	}
	for i := 0; ; i++ {
		_, err := unix.AddKey("user", fmt.Sprint("k", i), []byte("x"), unix.KEY_SPEC_SESSION_KEYRING)
		if errors.Is(err, unix.EDQUOT) {
			break
		}
		if err != nil {
			return fmt.Errorf("add the %dth: %w", i, err)
		}
	}
	if _, err := unix.KeyctlJoinSessionKeyring("further"); !errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("with the quota used up another keyring was joined: %v", err)
	}
	return nil
}

// lastUser is the made-up user of the last run. Each run has one of its own, since
// keys are freed some time after they are let go.
var lastUser = 1<<20 + uint32(os.Getpid())<<4

// A user whose quota of keys is used up still gets a tool, which keeps the
// harness's session keyring and cannot use it; the report says so. Where the
// profile allows keys nothing runs.
func TestKernelAttackSessionKeyringWithoutQuota(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.IsRoot)
	t.Setenv("ATTACK_COPY", copyOfThis(t))
	for _, w := range []walls{allSets[0], allSets[1], allSets[3]} {
		for profile, want := range map[string]string{
			"the default profile": "ended: <nil>, by quota: false, start error: false\nprivileges weaker, held false\n",
			"another profile":     "by quota: true, start error: true\nprivileges promised, held false\n",
			"no profile":          "ended: <nil>, by quota: false, start error: false\nprivileges weaker, held false\n",
		} {
			lastUser++
			t.Run(w.name+", "+profile, func(t *testing.T) {
				kerneltest.InChild(t, kerneltest.Child{Without: w.without, Env: []string{fmt.Sprint("ATTACK_UID=", lastUser)}}, func(t *testing.T) {
					if !Probe().Keyring.Yes() {
						t.Skip("needs keyrings")
					}
					c := exec.Command(os.Getenv("ATTACK_COPY"))
					c.Args = []string{attackTool, "harness without keys", w.name, profile}
					c.Dir = "/"
					c.Env = append(os.Environ(), "TMPDIR=/tmp") // the child's is closed to other users
					c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid(t), Gid: uid(t)}}
					out, err := c.CombinedOutput()
					plainly, inside, _ := strings.Cut(string(out), fmt.Sprintf("%d\tsucceeded\n", len(keyActs)-1))
					if err != nil || strings.Count(plainly, "\tsucceeded\n") != len(keyActs)-1 {
						t.Fatalf("without walls not every act succeeds: %v\n%s", err, out)
					}
					tried := 0
					if profile != "another profile" {
						tried = len(keyActs)
					}
					if got := strings.Count(inside, "\toperation not permitted\n") + strings.Count(inside, "\t"+syscall.ENOSYS.Error()+"\n"); got != tried || strings.Contains(inside, "succeeded") {
						t.Errorf("ESCAPE: of %d acts %d were refused\n%s", tried, got, inside)
					}
					if !strings.HasSuffix(inside, want) {
						t.Errorf("got\n%s\nwant the end\n%s", inside, want)
					}
				})
			})
		}
	}
}

// copyOfThis copies this program to where every user can run it.
func copyOfThis(t *testing.T) string {
	t.Helper()
	if made := os.Getenv("ATTACK_COPY"); made != "" {
		return made // in a child, whose own directories are closed to other users
	}
	dir, err := os.MkdirTemp("", "copy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	at := filepath.Join(dir, "tool")
	to, err := os.OpenFile(at, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close(), os.Chmod(dir, 0o755), os.Chmod(at, 0o755)); err != nil {
		t.Fatal(err)
	}
	return at
}

// uid is the made-up user that this child is to use.
func uid(t *testing.T) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("ATTACK_UID"), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// readUsersKeys reads a key of the user's own keyring, whose number it is given; it could find that by trying all.
func readUsersKeys(args []string) {
	ring, _ := strconv.Atoi(args[0])
	_, err := unix.KeyctlJoinSessionKeyring("holdfast-attack")
	if err == nil {
		_, err = unix.KeyctlInt(unix.KEYCTL_LINK, ring, unix.KEY_SPEC_SESSION_KEYRING, 0, 0)
	}
	id := 0
	if err == nil {
		id, err = unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", secretKey, 0)
	}
	b, n := make([]byte, 64), 0
	if err == nil {
		n, err = unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
	}
	fmt.Printf("%q, %v\n", b[:max(n, 0)], err)
}

// TestKernelAttackTheUsersKeys: they are in no namespace, and no session keyring of the tool's own keeps it from them.
func TestKernelAttackTheUsersKeys(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		if !Probe().Keyring.Yes() {
			t.Skip("needs keyrings")
		}
		ring, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
		if err != nil {
			t.Fatal(err)
		}
		key, err := unix.AddKey("user", secretKey, []byte("original"), ring)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.KeyctlInt(unix.KEYCTL_UNLINK, key, ring, 0, 0)
		if out, err := hostileBare(t, "the user's keys", strconv.Itoa(ring)).CombinedOutput(); string(out) != "\"original\", <nil>\n" {
			t.Fatalf("without walls: %s, %v", out, err)
		}
		p := attackPolicy(t, "", w)
		for name, profile := range map[string]seccomp.Filter{
			"default": p.Syscalls, "none": seccomp.Off(),
			"one of the caller's own": {Default: seccomp.Allow, Rules: []seccomp.Rule{{Names: []string{"bpf"}}}},
		} {
			p.Syscalls = profile
			c := hostile(t, attackSandbox(t, p, w), "the user's keys", strconv.Itoa(ring))
			if out, err := c.CombinedOutput(); string(out) != "\"\", operation not permitted\n" {
				t.Errorf("ESCAPE: profile %s: %s, %v", name, out, err)
			}
		}
	})
}
