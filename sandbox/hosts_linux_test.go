package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A hostCase is a host from which features have really been taken away, what
// must be found out about it, and what New must say of a workspace there.
type hostCase struct {
	name    string
	without []kerneltest.Feature
	facts   string // those that are not yes, as root and as an ordinary user
	asRoot  string // as root, if different
	userNS  bool   // as root, whether namespaces come with a user namespace
	refused string // the bounds that New refuses, with and without root
	rootMay bool   // as root nothing is refused
	never   bool   // New refuses processes even if May accepts what a container lacks
}

var hostCases = []hostCase{
	{name: "a host with everything", userNS: true},
	{name: "no user namespaces (EPERM)", without: []kerneltest.Feature{kerneltest.UserNamespaces},
		facts: "namespaces overlayfs", asRoot: "overlayfs?", refused: "files processes", rootMay: true},
	{name: "no user namespaces (ENOSYS)", without: []kerneltest.Feature{kerneltest.UserNamespaceCalls},
		facts: "namespaces overlayfs", asRoot: "overlayfs?", refused: "files processes", rootMay: true},
	{name: "no further user namespaces (ENOSPC)", without: []kerneltest.Feature{kerneltest.MoreUserNamespaces},
		facts: "namespaces overlayfs", asRoot: "overlayfs?", refused: "files processes", rootMay: true},
	{name: "no namespaces", without: []kerneltest.Feature{kerneltest.Namespaces}, facts: "namespaces overlayfs", refused: "files processes"},
	{name: "no mounts", without: []kerneltest.Feature{kerneltest.Mounts}, facts: "namespaces overlayfs", refused: "files processes"},
	{name: "no whole /proc", without: []kerneltest.Feature{kerneltest.WholeProc}, asRoot: "overlayfs?", refused: "processes", rootMay: true},
	{name: "no pivot_root", without: []kerneltest.Feature{kerneltest.PivotRoot}, userNS: true},
	{name: "neither pivot_root nor a whole /proc", without: []kerneltest.Feature{kerneltest.PivotRoot, kerneltest.WholeProc}, asRoot: "overlayfs?", refused: "processes", rootMay: true},
	{name: "no mount API", without: []kerneltest.Feature{kerneltest.MountAPI}, facts: "namespaces overlayfs", refused: "files processes"},
	{name: "no mount_setattr", without: []kerneltest.Feature{kerneltest.MountSetattr}, facts: "namespaces overlayfs", refused: "files processes"},
	{name: "no Landlock", without: []kerneltest.Feature{kerneltest.Landlock}, facts: "Landlock", userNS: true},
	{name: "Landlock not turned on", without: []kerneltest.Feature{kerneltest.LandlockAtBoot}, facts: "Landlock", userNS: true},
	{name: "no seccomp listeners", without: []kerneltest.Feature{kerneltest.SeccompListener}, facts: "notification", userNS: true, refused: "files"},
	{name: "seccomp actions that are not told", without: []kerneltest.Feature{kerneltest.SeccompActions}, facts: "notification", userNS: true, refused: "files"},
	{name: "no seccomp filters", without: []kerneltest.Feature{kerneltest.SeccompFilter}, facts: "seccomp notification", userNS: true, refused: "files syscalls"},
	{name: "no statx", without: []kerneltest.Feature{kerneltest.Statx}, facts: "notification", userNS: true, refused: "files"},
	{name: "no faccessat2", without: []kerneltest.Feature{kerneltest.Faccessat2}, facts: "notification", userNS: true, refused: "files"},
	{name: "no openat2", without: []kerneltest.Feature{kerneltest.Openat2}, facts: "namespaces overlayfs Landlock notification", refused: "files processes"},
	{name: "no executable memfds", without: []kerneltest.Feature{kerneltest.MemfdExec}, facts: "image", userNS: true},
	{name: "no keyrings", without: []kerneltest.Feature{kerneltest.Keyrings}, facts: "keyrings", userNS: true},
	{name: "no pidfds", without: []kerneltest.Feature{kerneltest.PidFD}, facts: "namespaces overlayfs take image pidfds", refused: "processes", never: true},
	{name: "neither namespaces nor pidfds", without: []kerneltest.Feature{kerneltest.Namespaces, kerneltest.PidFD}, facts: "namespaces overlayfs take image pidfds", refused: "processes", never: true},
	{name: "no close_range", without: []kerneltest.Feature{kerneltest.CloseRange}, facts: "namespaces overlayfs image calls", refused: "processes", never: true},
	{name: "no memfd_create", without: []kerneltest.Feature{kerneltest.Memfd}, facts: "namespaces overlayfs image calls", refused: "processes", never: true},
	{name: "no calls into other processes", without: []kerneltest.Feature{kerneltest.ProcessCalls}, facts: "take", userNS: true},
	{name: "neither namespaces nor Landlock", without: []kerneltest.Feature{kerneltest.Namespaces, kerneltest.Landlock},
		facts: "namespaces overlayfs Landlock", refused: "files processes"},
}

// missing lists the facts that are not yes by a word of their names.
func missing(f host.Facts) string {
	words := []string{"namespaces", "overlayfs", "Landlock", "seccomp", "notification", "memory", "take", "keyrings", "", "image", "calls", "pidfds"}
	var list []string
	for i, fact := range f.List() {
		if !fact.Yes() && words[i] != "" { // a TUN device takes a module too, and no bound rests on it
			list = append(list, words[i])
		}
	}
	return strings.Join(list, " ")
}

// TestKernelProbe: the facts are right, each that is not so has its reason and
// its remedy, and New names the bounds that cannot be held.
func TestKernelProbe(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for _, test := range hostCases {
		t.Run(test.name, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.LandlockABI(1)) // what is taken away must have been there
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: test.without}, func(t *testing.T) {
					checkProbe(t, test, as)
				})
			})
		})
	}
}

func checkProbe(t *testing.T, test hostCase, as kerneltest.User) {
	f := Probe()
	want, refused := test.facts, test.refused
	if as == kerneltest.Root && test.asRoot != "" {
		want = test.asRoot
	}
	if as == kerneltest.Root && test.rootMay {
		refused = ""
	}
	got := missing(f)
	if !f.KernelAtLeast(6, 6) { // a tmpfs held no user xattrs, which an upper layer needs
		got, want = strings.Join(strings.Fields(strings.ReplaceAll(got, "overlayfs", "")), " "), strings.Join(strings.Fields(strings.ReplaceAll(want, "overlayfs", "")), " ")
		want = strings.TrimSuffix(want, "?")
	}
	if around := strings.Contains(f.Notify.Reason, "refuses listeners"); around != slices.Contains(test.without, kerneltest.SeccompListener) || around && !strings.Contains(f.Notify.Remedy, "security.syscalls.intercept") {
		t.Errorf("%+v", f.Notify)
	}
	if want == "overlayfs?" { // root's own mounts may be of a kind that takes an overlay or not
		got, want = strings.TrimSpace(strings.ReplaceAll(got, "overlayfs", "")), ""
	}
	if got != want {
		t.Errorf("missing: %q, want %q: %+v", got, want, f)
	}
	if as == kerneltest.Root && f.Namespaces.Yes() && f.UserNS != test.userNS {
		t.Errorf("with a user namespace: %v: %+v", f.UserNS, f.Namespaces)
	}
	if why := f.Namespaces.Reason; f.Namespaces.Answer == host.No && f.PIDFD.Yes() && strings.Contains(why, "; without a user namespace: ") != (as == kerneltest.Root) {
		t.Errorf("root, and root alone, has had two ways to namespaces: %s", why)
	}
	for _, fact := range f.List() {
		if fact.Name == "" || fact.Reason == "" || !fact.Yes() && fact.Remedy == "" {
			t.Errorf("a fact without name, reason or remedy: %+v", fact)
		}
	}
	_, err := New(workspaceHere(t))
	if got := fixture.UnsupportedBounds(t, err); got != refused {
		t.Errorf("New refuses %q, want %q: %v", got, refused, err)
	}
	if test.never { // a run, if it were begun, would be killed
		if _, err := New(workspaceHere(t).InContainer()); fixture.UnsupportedBounds(t, err) != "processes" || strings.Contains(err.Error(), "May") {
			t.Errorf("New with May: %v", err)
		}
	}
}

// workspaceHere is the default policy for a new directory in the child's home.
func workspaceHere(t *testing.T) Policy {
	t.Helper()
	dir := filepath.Join(os.Getenv("HOME"), "ws")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Workspace(dir)
}

// weakHosts are the hosts on which a workspace runs only if the policy says
// what may be missing.
var weakHosts = []struct {
	name    string
	without []kerneltest.Feature
	states  string // bounds that are not held
}{
	{"Landlock, seccomp and a subreaper", []kerneltest.Feature{kerneltest.Namespaces}, "files weaker, processes weaker"},
	{"seccomp and a subreaper", []kerneltest.Feature{kerneltest.Namespaces, kerneltest.Landlock}, "files absent, processes absent"},
	{"the same as in Docker", []kerneltest.Feature{kerneltest.Namespaces, kerneltest.ProcessCalls}, "files weaker, processes weaker"},
	{"namespaces, and no calls into other processes", []kerneltest.Feature{kerneltest.ProcessCalls}, ""},
	{"namespaces and seccomp without a listener", []kerneltest.Feature{kerneltest.SeccompListener}, "files weaker"},
	{"namespaces without faccessat2", []kerneltest.Feature{kerneltest.Faccessat2}, "files weaker"},
	{"namespaces without statx", []kerneltest.Feature{kerneltest.Statx}, "files weaker"},
	{"everything but openat2", []kerneltest.Feature{kerneltest.Openat2}, "files absent, processes absent"},
	{"namespaces without filters", []kerneltest.Feature{kerneltest.SeccompFilter}, "files weaker, syscalls absent"},
	{"namespaces without Landlock", []kerneltest.Feature{kerneltest.Landlock}, ""},
	{"everything but executable memfds", []kerneltest.Feature{kerneltest.MemfdExec}, ""},
	{"everything but keyrings", []kerneltest.Feature{kerneltest.Keyrings}, ""},
	{"everything", nil, ""},
}

// TestKernelReportSaysWhatAHostLacks runs a tool in a workspace on each host.
func TestKernelReportSaysWhatAHostLacks(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for _, h := range weakHosts {
		t.Run(h.name, func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as, Without: h.without}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasMountSetattr)
					p := workspaceHere(t).InContainer()
					p.May = append(p.May, policy.BoundSyscalls)
					c := commandIn(t, p, "echo x >written && exit 3")
					var exit interface{ ExitCode() int }
					if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
						t.Fatalf("the tool ended with %v", err)
					}
					r := c.Report()
					if got := weaknesses(r); got != h.states && !(before6(t) && h.states == "files weaker, processes weaker") {
						t.Errorf("not held: %q, want %q\n%s", got, h.states, r)
					}
					for _, b := range r.Bounds {
						if (b.State == Weaker || b.State == Absent) && len(b.Lost) == 0 {
							t.Errorf("%s is %s and nothing says why\n%s", b.Bound, b.State, r)
						}
					}
				})
			})
		})
	}
}

// before6 reports whether this kernel's Landlock has no scopes.
func before6(t *testing.T) bool {
	t.Helper()
	return Probe().Landlock.Yes() && Probe().Landlock.Value < 6
}

// weaknesses lists the bounds that a report shows as neither held nor open.
func weaknesses(r *Report) string {
	var list []string
	for _, b := range r.Bounds {
		if b.State != Held && b.State != Partly && b.State != Open {
			list = append(list, fmt.Sprintf("%s %s", b.Bound, b.State))
		}
	}
	return strings.Join(list, ", ")
}

// commandIn makes a shell command under a policy, in the child's workspace.
func commandIn(t *testing.T, p Policy, script string) *Cmd {
	t.Helper()
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	c := s.Command("/bin/sh", "-c", script)
	c.Dir = filepath.Join(os.Getenv("HOME"), "ws")
	return c
}

// weakly runs a shell script in a workspace of a host without namespaces, or as
// the features say, and returns what it printed.
func weakly(t *testing.T, script string) string {
	t.Helper()
	p := workspaceHere(t)
	p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
	p.Env.Set = map[string]string{"OUTSIDE": os.Getenv("HOME"), "HARNESS": fmt.Sprint(os.Getpid())}
	c := commandIn(t, p, script)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// withoutNamespaces runs body on a host where Landlock and seccomp are all
// there is, as root and as an ordinary user.
func withoutNamespaces(t *testing.T, abi int, body func(t *testing.T)) {
	t.Helper()
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as, Without: []kerneltest.Feature{kerneltest.Namespaces}}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.LandlockABI(abi))
			body(t)
		})
	})
}

func TestKernelLandlockAloneHoldsFiles(t *testing.T) {
	withoutNamespaces(t, 1, func(t *testing.T) {
		outside := filepath.Join(os.Getenv("HOME"), "outside")
		if err := os.WriteFile(outside, []byte("secret"), 0o666); err != nil {
			t.Fatal(err)
		}
		out := weakly(t, `echo inside >file && cat file
			cat $OUTSIDE/outside 2>/dev/null && echo READ
			echo x 2>/dev/null >>$OUTSIDE/outside && echo WROTE
			mkdir $OUTSIDE/new 2>/dev/null && echo MADE
			rm -f $OUTSIDE/outside 2>/dev/null; ln file $OUTSIDE/link 2>/dev/null && echo LINKED
			mv file $OUTSIDE/moved 2>/dev/null && echo MOVED
			true`)
		if out != "inside" {
			t.Errorf("got %q", out)
		}
		if text, err := os.ReadFile(outside); err != nil || string(text) != "secret" {
			t.Errorf("%q, %v", text, err)
		}
	})
}

func TestKernelSeccompAloneHoldsTheNetwork(t *testing.T) {
	withoutNamespaces(t, 1, func(t *testing.T) {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Listen(fd, 1); err != nil {
			t.Fatal(err)
		}
		name, err := syscall.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.May = []Bound{policy.BoundFiles, policy.BoundProcesses}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p.Files.Read = append(p.Files.Read, exe)
		p.Env.Set = map[string]string{dialEnv: fmt.Sprint(name.(*syscall.SockaddrInet4).Port)}
		for _, open := range [][]Bound{nil, {policy.BoundSyscalls}} {
			p.Open = open
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			c := s.Command(exe, "-test.run=^$")
			c.Dir = filepath.Join(os.Getenv("HOME"), "ws")
			if out, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "socket: connection refused\nudp: permission denied\nunix: permission denied" {
				t.Errorf("%v open: %v, %q", open, err, out)
			}
		}
	})
}

// dialEnv makes this program try sockets; see init.
const dialEnv = "HOLDFAST_TEST_DIAL"

func init() {
	port := os.Getenv(dialEnv)
	if port == "" {
		return
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		var n int
		fmt.Sscan(port, &n)
		err = syscall.Connect(fd, &syscall.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}})
	}
	fmt.Println("socket:", err)
	_, err = syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM, 0)
	fmt.Println("udp:", err)
	_, err = syscall.Socket(syscall.AF_UNIX, syscall.SOCK_DGRAM, 0) // those with connections are the supervisor's
	fmt.Println("unix:", err)
	os.Exit(0)
}

func TestKernelLandlockScopeAloneKeepsTheHarnessFromSignals(t *testing.T) {
	withoutNamespaces(t, 6, func(t *testing.T) {
		out := weakly(t, `kill -0 $HARNESS 2>/dev/null && echo HARNESS
			kill -0 $PPID 2>/dev/null && echo INIT
			sleep 100 & kill -0 $! && echo own child; kill $!`)
		if out != "own child" {
			t.Errorf("got %q", out)
		}
	})
}

// TestKernelProtectedNamesStayWithoutNamespaces: the supervisor needs none.
func TestKernelProtectedNamesStayWithoutNamespaces(t *testing.T) {
	withoutNamespaces(t, 1, func(t *testing.T) {
		out := weakly(t, `mkdir -p a/b && echo fine
			(echo x >.bashrc) 2>/dev/null && echo BASHRC
			(echo x >a/b/.bashrc) 2>/dev/null && echo its own
			mkdir .cargo && (echo x >.cargo/config.toml) 2>/dev/null && echo DEEP
			echo x >plain && mv plain .bashrc 2>/dev/null && echo MOVED
			ls -A | sort | tr '\n' ' '`)
		if out != "fine\nits own\n.cargo a plain" {
			t.Errorf("got %q", out)
		}
	})
}

func TestFactsListIsComplete(t *testing.T) {
	names := map[string]bool{}
	for _, f := range Probe().List() {
		names[f.Name] = true
	}
	if len(names) != 12 || slices.Contains([]bool{names[""]}, true) {
		t.Errorf("%v", names)
	}
}
