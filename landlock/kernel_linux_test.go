//go:build linux && (amd64 || arm64)

package landlock

import (
	"net"
	"os"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// fsActs is what is tried on in/, where all is granted, and on out/, where nothing is. need is the ABI that can refuse it.
var fsActs = []struct {
	act    act
	need   int
	refuse string
	root   bool // unrestricted, only root can
}{
	{act{Do: "read", A: "@/file"}, 1, "EACCES", false},
	{act{Do: "list", A: "@/sub"}, 1, "EACCES", false},
	{act{Do: "opath then list", A: "@/sub"}, 1, "EACCES", false},
	{act{Do: "write", A: "@/file"}, 1, "EACCES", false},
	{act{Do: "truncate", A: "@/file"}, 3, "EACCES", false},
	{act{Do: "exec", A: "@/exe"}, 1, "EACCES", false},
	{act{Do: "create", A: "@/new"}, 1, "EACCES", false},
	{act{Do: "mkdir", A: "@/newdir"}, 1, "EACCES", false},
	{act{Do: "rmdir", A: "@/empty"}, 1, "EACCES", false},
	{act{Do: "unlink", A: "@/full/x"}, 1, "EACCES", false},
	{act{Do: "symlink", A: "@/sym"}, 1, "EACCES", false},
	{act{Do: "mkfifo", A: "@/fifo"}, 1, "EACCES", false},
	{act{Do: "mksock", A: "@/sock"}, 1, "EACCES", false},
	{act{Do: "mkchar", A: "@/char"}, 1, "EACCES", false},
	{act{Do: "mkblock", A: "@/block"}, 1, "EACCES", true},
	{act{Do: "link", A: "@/file", B: "@/link"}, 1, "EACCES", false},
	{act{Do: "rename", A: "@/file", B: "@/renamed"}, 1, "EACCES", false},
	{act{Do: "rename", A: "@/renamed", B: "@/sub/moved"}, 1, "EACCES", false},
	// What Landlock leaves alone, as doc.go says.
	{act{Do: "stat", A: "@/sub"}, LatestABI + 1, "", false},
	{act{Do: "chmod", A: "@/sub"}, LatestABI + 1, "", false},
}

func TestKernelGrantsBeneathARuleAndRefusesElsewhere(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	abi := needABI(t, 1)
	for _, u := range users(t) {
		t.Run(u.name, func(t *testing.T) {
			for _, where := range []string{"in", "out"} {
				dir := fixture(t)
				r := Ruleset{Paths: append(loaderRules(), PathRule{dir + "/in", FSReadWrite | FSMakeDevice | FSRefer})}
				var j job
				for _, a := range fsActs {
					a.act.A = strings.Replace(a.act.A, "@", dir+"/"+where, 1)
					a.act.B = strings.Replace(a.act.B, "@", dir+"/"+where, 1)
					j.Acts = append(j.Acts, a.act)
				}
				control := run(t, u, j)
				dir2 := fixture(t)
				j.Rulesets = []Ruleset{r}
				j = move(j, dir, dir2)
				got := run(t, u, j)
				for i, a := range fsActs {
					ordinary := "ok"
					if a.root && (u.cred != nil || os.Getuid() != 0) {
						ordinary = "EPERM"
					}
					if control[i] != ordinary {
						t.Errorf("unrestricted, %v: %s, want %s", a.act, control[i], ordinary)
					}
					want := ordinary
					if where == "out" && abi >= a.need {
						want = a.refuse
					}
					if where == "in" && a.act.Do == "rename" && a.act.B == "@/sub/moved" && abi < 2 {
						want = "EXDEV"
					}
					if a.act.A == "@/renamed" && where == "out" {
						want = "ENOENT" // the rename before it was refused
					}
					if got[i] != want && !(want == "EPERM" && got[i] == "EACCES") {
						t.Errorf("restricted, in %s, %v: %s, want %s", where, a.act, got[i], want)
					}
				}
			}
		})
	}
}

// loaderRules let the test binary, where cgo made it dynamic, find its loader and libraries.
func loaderRules() []PathRule {
	var rules []PathRule
	for _, dir := range []string{"/usr/lib", "/usr/lib64", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil {
			rules = append(rules, PathRule{dir, FSReadExecute})
		}
	}
	return rules
}

// move returns j with every path beneath from beneath to.
func move(j job, from, to string) job {
	var out job
	for _, a := range j.Acts {
		a.A, a.B = strings.Replace(a.A, from, to, 1), strings.Replace(a.B, from, to, 1)
		out.Acts = append(out.Acts, a)
	}
	for _, r := range j.Rulesets {
		var paths []PathRule
		for _, p := range r.Paths {
			paths = append(paths, PathRule{strings.Replace(p.Path, from, to, 1), p.Access})
		}
		r.Paths = paths
		out.Rulesets = append(out.Rulesets, r)
	}
	return out
}

// check is one act and its outcome under a ruleset.
type check struct {
	act  act
	want string
}

// checks runs acts under rulesets as every user, each user on a fresh tree, and without them to show that they work at all.
func checks(t *testing.T, rulesets func(dir string) []Ruleset, list func(dir string) []check) {
	t.Helper()
	for _, u := range users(t) {
		t.Run(u.name, func(t *testing.T) {
			for _, restricted := range []bool{false, true} {
				dir := fixture(t)
				var j job
				if restricted {
					j.Rulesets = rulesets(dir)
				}
				for _, c := range list(dir) {
					j.Acts = append(j.Acts, c.act)
				}
				got := run(t, u, j)
				for i, c := range list(dir) {
					if want := c.want; restricted && got[i] != want {
						t.Errorf("restricted, %v: %s, want %s", c.act, got[i], want)
					} else if !restricted && got[i] != "ok" {
						t.Errorf("unrestricted, %v: %s, want ok", c.act, got[i])
					}
				}
			}
		})
	}
}

func TestKernelRenamesAndLinksBetweenDirectoriesNeedRefer(t *testing.T) {
	needABI(t, 2)
	for name, tt := range map[string]struct {
		access AccessFS
		want   string
	}{"without refer": {FSReadWrite, "EXDEV"}, "with refer": {FSReadWrite | FSRefer, "ok"}} {
		t.Run(name, func(t *testing.T) {
			checks(t, func(dir string) []Ruleset {
				return []Ruleset{{Paths: []PathRule{{dir, tt.access}}}}
			}, func(dir string) []check {
				return []check{
					{act{Do: "rename", A: dir + "/in/file", B: dir + "/in/same"}, "ok"},
					{act{Do: "link", A: dir + "/in/same", B: dir + "/in/link"}, "ok"},
					{act{Do: "link", A: dir + "/in/same", B: dir + "/out/link"}, tt.want},
					{act{Do: "rename", A: dir + "/in/same", B: dir + "/out/moved"}, tt.want},
				}
			})
		})
	}
}

func TestKernelReferNeverWidensWhatAFileMayDo(t *testing.T) {
	needABI(t, 2)
	checks(t, func(dir string) []Ruleset {
		return []Ruleset{{Paths: []PathRule{
			{dir + "/in", FSRead | FSWrite | FSRefer}, {dir + "/out", FSReadWrite | FSRefer},
		}}}
	}, func(dir string) []check {
		return []check{
			{act{Do: "link", A: dir + "/in/exe", B: dir + "/out/exe2"}, "EXDEV"}, // it could be executed there
			{act{Do: "rename", A: dir + "/out/file", B: dir + "/in/file2"}, "ok"},
		}
	})
}

func TestKernelARuleOnAFileHoldsForThatFileAlone(t *testing.T) {
	needABI(t, 1)
	checks(t, func(dir string) []Ruleset {
		return []Ruleset{{Paths: []PathRule{{dir + "/in/file", FSReadWrite | FSRefer}}}}
	}, func(dir string) []check {
		return []check{
			{act{Do: "read", A: dir + "/in/file"}, "ok"},
			{act{Do: "write", A: dir + "/in/file"}, "ok"},
			{act{Do: "truncate", A: dir + "/in/file"}, "ok"},
			{act{Do: "read", A: dir + "/in/exe"}, "EACCES"},
			{act{Do: "list", A: dir + "/in"}, "EACCES"},
			{act{Do: "unlink", A: dir + "/in/file"}, "EACCES"},
		}
	})
}

func TestKernelIoctlOnDevices(t *testing.T) {
	needABI(t, 5)
	for name, tt := range map[string]struct {
		access AccessFS
		want   string
	}{"without ioctl_dev": {FSReadWrite, "EACCES"}, "with ioctl_dev": {FSReadWrite | FSIoctlDev, "ok"}} {
		t.Run(name, func(t *testing.T) {
			checks(t, func(string) []Ruleset { return []Ruleset{{Paths: []PathRule{{"/dev", tt.access}}}} },
				func(string) []check { return []check{{act{Do: "ioctl", A: "/dev/ptmx"}, tt.want}} })
		})
	}
}

func TestKernelTCPPorts(t *testing.T) {
	needABI(t, 4)
	var ports [2]int
	for i := range ports {
		l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		must(t, err)
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	acts := func(bind, connect, other string) func(string) []check {
		return func(string) []check {
			return []check{{act{Do: "bind", N: 0}, bind}, {act{Do: "connect", N: ports[0]}, connect}, {act{Do: "connect", N: ports[1]}, other}}
		}
	}
	for name, tt := range map[string]struct {
		r     Ruleset
		wants [3]string
	}{
		"nothing granted":        {Ruleset{}, [3]string{"EACCES", "EACCES", "EACCES"}},
		"one port to connect to": {Ruleset{Ports: []PortRule{{uint16(ports[0]), NetConnectTCP}}}, [3]string{"EACCES", "ok", "EACCES"}},
		"the ephemeral range":    {Ruleset{Ports: []PortRule{{0, NetBindTCP}}}, [3]string{"ok", "EACCES", "EACCES"}},
		"left unhandled":         {Ruleset{UnhandledNet: NetAll}, [3]string{"ok", "ok", "ok"}},
	} {
		t.Run(name, func(t *testing.T) {
			checks(t, func(string) []Ruleset { return []Ruleset{tt.r} }, acts(tt.wants[0], tt.wants[1], tt.wants[2]))
		})
	}
}
