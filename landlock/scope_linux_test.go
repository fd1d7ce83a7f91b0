//go:build linux && (amd64 || arm64)

package landlock

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

func TestKernelScopesCloseTheWaysOut(t *testing.T) {
	needABI(t, 6)
	name := fmt.Sprintf("@landlock-test-%d", os.Getpid())
	l, err := net.Listen("unix", name)
	must(t, err)
	defer l.Close()
	for title, tt := range map[string]struct {
		unscoped     Scope
		socket, kill string
	}{
		"both scopes":            {0, "EPERM", "EPERM"},
		"signals alone":          {ScopeAbstractUnixSocket, "ok", "EPERM"},
		"abstract sockets alone": {ScopeSignal, "EPERM", "ok"},
	} {
		t.Run(title, func(t *testing.T) {
			r := ScopesOnly()
			r.Unscoped = tt.unscoped
			for _, u := range users(t) {
				target := exec.Command("sleep", "600") // of the same user, outside the domain
				target.SysProcAttr = &syscall.SysProcAttr{Credential: u.cred, Pdeathsig: syscall.SIGKILL}
				must(t, target.Start())
				j := job{Acts: []act{{Do: "connect unix", A: name}, {Do: "signal", N: target.Process.Pid}}}
				for i, got := range run(t, u, j) {
					if got != "ok" {
						t.Errorf("%s, unrestricted, %v: %s", u.name, j.Acts[i], got)
					}
				}
				j.Rulesets = []Ruleset{r}
				for i, got := range run(t, u, j) {
					if want := []string{tt.socket, tt.kill}[i]; got != want {
						t.Errorf("%s, restricted, %v: %s, want %s", u.name, j.Acts[i], got, want)
					}
				}
				target.Process.Kill()
				target.Wait()
			}
		})
	}
}

// The shape of a sandbox: one domain with the file rules for the process that minds the tool,
// and a second layer with the scopes alone for the tool itself. The minder reaches the tool,
// and never the other way round.
func TestKernelTheInnerDomainCannotReachTheOuterOne(t *testing.T) {
	needABI(t, 6)
	for _, u := range users(t) {
		t.Run(u.name, func(t *testing.T) {
			dir := fixture(t)
			outer := Ruleset{Unscoped: ScopeAll, UnhandledNet: NetAll, Paths: []PathRule{
				{"/", FSReadExecute}, {dir + "/in", FSReadWrite | FSRefer},
			}}
			inner := func(acts ...act) *job { return &job{Rulesets: []Ruleset{ScopesOnly()}, Acts: acts} }
			acts := []check{
				{act{Do: "signal child", Job: inner()}, "ok"},
				{act{Do: "ptrace child", Job: inner()}, "ok"},
				{act{Do: "child", Job: inner(act{Do: "signal"})}, "EPERM"},
				{act{Do: "child", Job: inner(act{Do: "ptrace"})}, "EPERM"},
				{act{Do: "child", Job: &job{Acts: []act{{Do: "signal"}, {Do: "ptrace"}}}}, "ok"}, // without the second layer it can
				{act{Do: "child", Job: inner(act{Do: "write", A: dir + "/out/file"})}, "EACCES"}, // the first still holds
				{act{Do: "child", Job: inner(act{Do: "rename", A: dir + "/in/file", B: dir + "/in/sub/moved"})}, "ok"},
				{act{Do: "child", Job: inner(act{Do: "signal child", Job: &job{}})}, "ok"}, // within the domain all is as it was
			}
			j := job{Rulesets: []Ruleset{outer}}
			for _, c := range acts {
				j.Acts = append(j.Acts, c.act)
			}
			for i, got := range run(t, u, j) {
				if got != acts[i].want {
					t.Errorf("act %d, %v %+v: %s, want %s", i, acts[i].act, acts[i].act.Job.Acts, got, acts[i].want)
				}
			}
		})
	}
}

// The check that a restriction is in force: "/" cannot be listed through a descriptor that names it, if no rule grants it.
func TestKernelSelfCheckSeesWhetherARestrictionIsInForce(t *testing.T) {
	needABI(t, 1)
	checks(t, func(dir string) []Ruleset { return []Ruleset{{Paths: []PathRule{{dir, FSReadWrite}}}} },
		func(dir string) []check {
			return []check{{act{Do: "opath then list", A: "/"}, "EACCES"}, {act{Do: "opath then list", A: dir + "/in"}, "ok"}}
		})
}

func TestKernelSelfCheckOnADetachedMount(t *testing.T) {
	needABI(t, 1)
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	namespaced := func(c *exec.Cmd) {
		c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 65534, Size: 1}}
		c.SysProcAttr.Credential = &syscall.Credential{Uid: 0, Gid: 0, NoSetGroups: true}
	}
	if os.Getuid() != 0 {
		namespaced = func(c *exec.Cmd) {
			c.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
	}
	dir := fixture(t)
	for name, tt := range map[string]struct {
		r    Ruleset
		want string
	}{
		"the tree is not granted":                     {Ruleset{Paths: []PathRule{{dir + "/out", FSRead}}}, "EACCES"},
		"a directory above the tree is granted":       {Ruleset{Paths: []PathRule{{dir, FSRead}}}, "EACCES"},
		"the tree's own root is granted where it was": {Ruleset{Paths: []PathRule{{dir + "/in", FSRead}}}, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			j := job{Acts: []act{{Do: "detached then restrict", A: dir + "/in", Job: &job{Rulesets: []Ruleset{tt.r}}}}}
			if got := run(t, user{}, j, namespaced); got[0] != tt.want {
				t.Errorf("%s, want %s", got[0], tt.want)
			}
		})
	}
}
