package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

func yes(name string) host.Fact { return host.Fact{Name: name, Answer: host.Yes} }

func no(name string) host.Fact {
	return host.Fact{Name: name, Answer: host.No, Reason: "there are no " + name, Remedy: "get " + name}
}

// newHost is a made-up host that has everything.
func newHost() host.Facts {
	f := host.Facts{
		Kernel: "6.18.0", UID: 1000, GID: 1000, UserNS: true, Namespaces: yes("namespaces"), Overlay: yes("overlayfs"),
		Landlock: yes("Landlock"), Seccomp: yes("seccomp"), Notify: yes("notify"), Keyring: yes("keyrings"),
	}
	f.Landlock.Value = 7
	return f
}

// workspaceLike has one entry of each kind.
func workspaceLike() resolve.Tree {
	return resolve.Tree{
		Entries: []resolve.Entry{
			{Path: "/home/me", Kind: pathrule.Private, Dir: true},
			{Path: "/home/me/.cache/go", Kind: pathrule.CopyOnWrite, Dir: true},
			{Path: "/home/me/.gitconfig", Kind: pathrule.Make, File: policy.File{Path: "/home/me/.gitconfig", Data: "[user]\n"}},
			{Path: "/tmp", Kind: pathrule.Private, Dir: true},
			{Path: "/usr", Kind: pathrule.Read, Dir: true},
			{Path: "/usr/secret", Kind: pathrule.Hide, Dir: true},
			{Path: "/ws", Kind: pathrule.Write, Dir: true},
		},
		Links: []resolve.Link{{Path: "/bin", Target: "usr/bin"}},
	}
}

// readOnlyLike writes nothing.
func readOnlyLike() resolve.Tree {
	return resolve.Tree{Entries: []resolve.Entry{{Path: "/usr", Kind: pathrule.Read, Dir: true}, {Path: "/ws", Kind: pathrule.Read, Dir: true}}}
}

// inputOf is what New would give compile, for a policy on a made-up host.
func inputOf(l resolve.Tree, facts host.Facts, p Policy) input {
	inherited := rlimit.Values{}
	for r := range inherited {
		inherited[r] = rlimit.Limit{Soft: rlimit.Unlimited, Hard: rlimit.Unlimited}
	}
	return input{
		policy: p, layout: l, facts: facts, devices: []string{"/dev/null", "/dev/tty"}, rlimits: inherited, arch: seccomp.AMD64,
		list: func(string) []resolve.Entry { return nil },
	}
}

// refusals are the bounds of an error's UnsupportedErrors, sorted.
func refusals(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("compile: %v", err)
	}
	var bounds []string
	for _, e := range joined.Unwrap() {
		var u *UnsupportedError
		if !errors.As(e, &u) || !errors.Is(e, errors.ErrUnsupported) {
			t.Fatalf("compile: %v", e)
		}
		if u.What == "" || u.Reason == "" || u.Remedy == "" {
			t.Errorf("an error lacks what, reason or remedy: %#v", u)
		}
		bounds = append(bounds, string(u.Bound))
	}
	slices.Sort(bounds)
	return strings.Join(bounds, " ")
}

func TestCompileRefusesWhatTheHostCannotHold(t *testing.T) {
	tests := []struct {
		name   string
		change func(*host.Facts)
		layout resolve.Tree
		policy Policy
		want   string // bounds
	}{
		{"nothing on a host that has everything", func(*host.Facts) {}, workspaceLike(), Policy{}, ""},
		{"nothing with ABI 2 and namespaces", abi(2), workspaceLike(), Policy{}, ""},
		{"nothing with ABI 1 and namespaces", abi(1), workspaceLike(), Policy{}, ""},
		{"nothing without Landlock and with namespaces", lacksLandlock, workspaceLike(), Policy{}, ""},
		{"nothing without a user namespace for root", rootWithoutUserNS, workspaceLike(), Policy{}, ""},
		{"nothing without overlayfs", func(f *host.Facts) { f.Overlay = no("overlayfs") }, workspaceLike(), Policy{}, ""},
		{"nothing without keyrings", func(f *host.Facts) { f.Keyring = no("keyrings") }, workspaceLike(), Policy{}, ""},
		{"protected names without notifications", lacksNotify, workspaceLike(), Policy{}, "files"},
		{"nothing without notifications where nothing is writable", lacksNotify, readOnlyLike(), Policy{}, ""},
		{"nothing without notifications where nothing is protected", lacksNotify, workspaceLike(), Policy{Files: Files{Protect: policy.Protect{Off: true}}}, ""},
		{"hidden names without notifications", lacksNotify, workspaceLike(), Policy{Files: Files{HideNames: []string{".env"}, Protect: policy.Protect{Off: true}}}, "files"},
		{"system calls without seccomp", lacksSeccomp, readOnlyLike(), Policy{}, "syscalls"},
		{"nothing without seccomp when system calls are open", lacksSeccomp, readOnlyLike(), Policy{Open: []Bound{policy.BoundSyscalls}}, ""},
		{"nothing without seccomp when the profile is off", lacksSeccomp, readOnlyLike(), Policy{Syscalls: seccomp.Off()}, ""},
		{"files and processes without namespaces", lacksNamespaces, workspaceLike(), Policy{}, "files processes"},
		{"the same for a policy that writes nothing", lacksNamespaces, readOnlyLike(), Policy{}, "files processes"},
		{"the same for the zero policy", lacksNamespaces, resolve.Tree{}, Policy{}, "files processes"},
		{"nothing without namespaces that May names", lacksNamespaces, workspaceLike(), Policy{May: []Bound{policy.BoundFiles, policy.BoundProcesses}}, ""},
		{"what May does not name", lacksNamespaces, workspaceLike(), Policy{May: []Bound{policy.BoundFiles}}, "processes"},
		{"nothing without namespaces when files and processes are open", lacksNamespaces, workspaceLike(), Policy{Open: []Bound{policy.BoundFiles, policy.BoundProcesses}}, ""},
		{"all but resources with neither namespaces nor seccomp", both(lacksNamespaces, lacksSeccomp), workspaceLike(), Policy{}, "files network processes syscalls"},
		{"the network with neither, system calls open", both(lacksNamespaces, lacksSeccomp), workspaceLike(), Policy{Open: []Bound{policy.BoundSyscalls}}, "files network processes"},
		{"no network when the host's is shared", both(lacksNamespaces, lacksSeccomp), workspaceLike(), Policy{Network: Network{Host: true}}, "files processes syscalls"},
		{"files and processes with neither namespaces nor Landlock", both(lacksNamespaces, lacksLandlock), workspaceLike(), Policy{}, "files processes"},
		{"processes with ABI 5 alone", both(lacksNamespaces, abi(5)), readOnlyLike(), Policy{May: []Bound{policy.BoundFiles}}, "processes"},
		{"nothing at all when everything is open", both(both(lacksNamespaces, lacksLandlock), lacksSeccomp), resolve.Tree{}, Unconfined(), ""},
		{"what could not be told counts as missing", func(f *host.Facts) {
			f.Seccomp = host.Fact{Name: "seccomp", Reason: "seccomp(2): input/output error", Remedy: "try again"}
		}, workspaceLike(), Policy{}, "syscalls"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			facts := newHost()
			test.change(&facts)
			_, err := compile(inputOf(test.layout, facts, test.policy))
			if got := refusals(t, err); got != test.want {
				t.Errorf("refused: %q, want %q\n%v", got, test.want, err)
			}
		})
	}
}

func abi(n int) func(*host.Facts) {
	return func(f *host.Facts) { f.Landlock.Value = n }
}

func lacksLandlock(f *host.Facts)   { f.Landlock = no("Landlock") }
func lacksNotify(f *host.Facts)     { f.Notify = no("notify") }
func lacksSeccomp(f *host.Facts)    { f.Seccomp, f.Notify = no("seccomp"), no("notify") }
func lacksNamespaces(f *host.Facts) { f.Namespaces, f.Overlay = no("namespaces"), no("overlayfs") }

func rootWithoutUserNS(f *host.Facts) { f.UID, f.GID, f.UserNS = 0, 0, false }

func both(a, b func(*host.Facts)) func(*host.Facts) {
	return func(f *host.Facts) { a(f); b(f) }
}

// held prints a plan's promises: each bound that has any, by what.
func held(p plan.Plan) string {
	var lines []string
	for _, h := range p.Holdings {
		line := string(h.Bound) + ":"
		for _, m := range h.By {
			line += " " + strings.ReplaceAll(string(m), " ", "-")
		}
		if len(h.Lost) > 0 {
			line += fmt.Sprintf(" (%d lost)", len(h.Lost))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestHoldingsFollowTheHost(t *testing.T) {
	const rest = "\nprivileges: no_new_privs no-capabilities session-keyring\nresources: rlimits\nenvironment: environment-filter\ntime:"
	const walled = "\nprivileges: no_new_privs no-capabilities user-namespace session-keyring\nresources: rlimits\nenvironment: environment-filter\ntime:"
	spaces := "processes: pid-namespace ipc-namespace uts-namespace cgroup-namespace"
	may := Policy{May: plan.Bounds()}
	tests := []struct {
		name   string
		change func(*host.Facts)
		layout resolve.Tree
		policy Policy
		want   string
	}{
		{"two mechanisms for each where the kernel has them", func(*host.Facts) {}, workspaceLike(), Policy{},
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled},
		{"no scope before ABI 6", abi(5), workspaceLike(), Policy{},
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + spaces + "\nsyscalls: seccomp" + walled},
		{"namespaces alone without Landlock", lacksLandlock, readOnlyLike(), Policy{},
			"files: mount-namespace\nnetwork: network-namespace seccomp\n" + spaces + "\nsyscalls: seccomp" + walled},
		{"no user namespace for root", rootWithoutUserNS, readOnlyLike(), Policy{},
			"files: mount-namespace landlock\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + rest},
		{"Landlock, seccomp and a subreaper without namespaces", lacksNamespaces, readOnlyLike(), may,
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (1 lost)\nsyscalls: seccomp" + rest},
		{"no TCP rules before ABI 4", both(lacksNamespaces, abi(3)), readOnlyLike(), may,
			"files: landlock (3 lost)\nnetwork: seccomp\nprocesses: subreaper (1 lost)\nsyscalls: seccomp" + rest},
		{"truncation is lost before ABI 3", both(lacksNamespaces, abi(2)), readOnlyLike(), may,
			"files: landlock (4 lost)\nnetwork: seccomp\nprocesses: subreaper (1 lost)\nsyscalls: seccomp" + rest},
		{"next to nothing without the three", both(both(lacksNamespaces, lacksLandlock), lacksSeccomp), readOnlyLike(), may,
			"files: (1 lost)\nnetwork: (1 lost)\nprocesses: subreaper (1 lost)\nsyscalls: (1 lost)" + rest},
		{"a deadline", func(*host.Facts) {}, readOnlyLike(), Policy{Limits: Limits{WallClock: time.Second}},
			"files: mount-namespace landlock\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled + " deadline"},
		{"the host's network", func(*host.Facts) {}, readOnlyLike(), Policy{Network: Network{Host: true}},
			"files: mount-namespace landlock\nnetwork:\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled},
		{"sockets are refused without namespaces when the profile is off", lacksNamespaces, readOnlyLike(),
			Policy{Syscalls: seccomp.Off(), May: []Bound{policy.BoundFiles, policy.BoundProcesses}},
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (1 lost)\nsyscalls:" + rest},
		{"sockets are refused without namespaces when system calls are open", lacksNamespaces, readOnlyLike(),
			Policy{Open: []Bound{policy.BoundSyscalls}, May: []Bound{policy.BoundFiles, policy.BoundProcesses}},
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (1 lost)\nsyscalls:" + rest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			facts := newHost()
			test.change(&facts)
			p, err := compile(inputOf(test.layout, facts, test.policy))
			if err != nil {
				t.Fatal(err)
			}
			if got := held(p); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// position is the index of the first step that f accepts; -1: none.
func position(p plan.Plan, f func(plan.Action) bool) int {
	return slices.IndexFunc(p.Steps, func(s plan.Step) bool { return f(s.Do) })
}

func is[T plan.Action](a plan.Action) bool { _, ok := a.(T); return ok }

func TestStepsComeInTheOrderThatHolds(t *testing.T) {
	orders := []struct {
		name          string
		before, after func(plan.Action) bool
	}{
		{"ids are mapped before anything is mounted", is[plan.MapIDs], is[plan.PrivateMounts]},
		{"mounts are private before any is made", is[plan.PrivateMounts], is[plan.NewRoot]},
		{"a procfs is mounted while the harness's is visible", is[plan.Proc], is[plan.Pivot]},
		{"binds are made before the harness's root is gone", is[plan.Bind], is[plan.Pivot]},
		{"the root is sealed when it is complete", is[plan.Pivot], is[plan.SealRoot]},
		{"rights over the mounts go when all is mounted", is[plan.SealRoot], is[plan.NestUser]},
		{"capabilities go after the mounts", is[plan.SealRoot], is[plan.DropCapabilities]},
		{"no_new_privs comes before Landlock", is[plan.SetNoNewPrivs], is[plan.RestrictFiles]},
		{"capabilities go before Landlock", is[plan.DropCapabilities], is[plan.RestrictFiles]},
		{"the keyring is joined before the filter", is[plan.JoinKeyring], is[plan.LoadFilter]},
		{"Landlock's evidence follows Landlock", is[plan.RestrictFiles], is[plan.CheckRoot]},
		{"the directory is entered under Landlock", is[plan.RestrictFiles], is[plan.Chdir]},
		{"limits are set before the last capability goes", is[plan.SetLimits], is[plan.DropLast]},
		{"signals are restored before the filters", is[plan.RestoreSignals], is[plan.LoadSupervisor]},
		{"the supervisor is loaded before the profile, which may refuse seccomp(2)", is[plan.LoadSupervisor], is[plan.LoadFilter]},
	}
	p, err := compile(inputOf(workspaceLike(), newHost(), Policy{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range orders {
		t.Run(o.name, func(t *testing.T) {
			before, after := position(p, o.before), position(p, o.after)
			if before < 0 || after < 0 || before >= after {
				t.Errorf("steps %d and %d of\n%s", before, after, p)
			}
		})
	}
	if last := p.Steps[len(p.Steps)-1].Do; !is[plan.LoadFilter](last) {
		t.Errorf("the last step is %q", last)
	}
	for i := 1; i < len(p.Steps); i++ {
		if p.Steps[i].In < p.Steps[i-1].In {
			t.Errorf("step %d runs in the %s, after one of the %s", i, p.Steps[i].In, p.Steps[i-1].In)
		}
	}
}

func TestCompileIsPure(t *testing.T) {
	for _, change := range []func(*host.Facts){func(*host.Facts) {}, lacksNamespaces, lacksLandlock, abi(2)} {
		facts := newHost()
		change(&facts)
		one, err1 := compile(inputOf(workspaceLike(), facts, Policy{May: plan.Bounds()}))
		two, err2 := compile(inputOf(workspaceLike(), facts, Policy{May: plan.Bounds()}))
		if err1 != nil || err2 != nil || !reflect.DeepEqual(one, two) {
			t.Errorf("%v, %v\n%s\n%s", err1, err2, one, two)
		}
	}
}

// TestRulesetsFitEveryABI compiles for every ABI: a ruleset that handles
// nothing would restrict nothing, and one with rights that the kernel does not
// know would be refused by it.
func TestRulesetsFitEveryABI(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, change := range []func(*host.Facts){func(*host.Facts) {}, lacksNamespaces} {
			facts := newHost()
			change(&facts)
			facts.Landlock.Value = n
			p, err := compile(inputOf(workspaceLike(), facts, Policy{May: plan.Bounds()}))
			if err != nil {
				t.Fatalf("ABI %d: %v", n, err)
			}
			fs, net, scope, _ := landlock.Supported(n)
			for _, s := range p.Steps {
				if a, ok := s.Do.(plan.RestrictFiles); ok {
					r := a.Ruleset
					if r.HandlesNothing() || r.HandledFS()&^fs != 0 || r.HandledNet()&^net != 0 || r.Scoped()&^scope != 0 {
						t.Errorf("ABI %d: %s", n, s)
					}
				}
			}
		}
	}
}

// TestPlanReadsLikeThis compares a whole plan with the one in testdata.
func TestPlanReadsLikeThis(t *testing.T) {
	p, err := compile(inputOf(workspaceLike(), newHost(), Policy{Limits: Limits{WallClock: time.Minute}}))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plan.golden", p.String())
}

// golden compares a text with a file of testdata. With the variable UPDATE=1
// the file is written instead.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (UPDATE=1 writes it):\n%s", path, got)
	}
}
