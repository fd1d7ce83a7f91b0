package compile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// inputOf is what New would give compile, for a policy on a made-up host.
func inputOf(l resolve.Tree, facts host.Facts, p policy.Policy) Input {
	inherited := rlimit.Values{}
	for r := range inherited {
		inherited[r] = rlimit.Limit{Soft: rlimit.Unlimited, Hard: rlimit.Unlimited}
	}
	return Input{
		Policy: p, Tree: l, Facts: facts, Devices: []string{"/dev/null", "/dev/tty"}, Rlimits: inherited, Arch: seccomp.AMD64,
		List: func(string) []resolve.Entry { return nil },
	}
}

func TestCompileRefusesWhatTheHostCannotHold(t *testing.T) {
	tests := []struct {
		name   string
		change func(*host.Facts)
		layout resolve.Tree
		policy policy.Policy
		want   string // bounds
	}{
		{"nothing on a host that has everything", func(*host.Facts) {}, fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing with ABI 2 and namespaces", abi(2), fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing with ABI 1 and namespaces", abi(1), fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing without Landlock and with namespaces", fixture.WithoutLandlock, fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing without a user namespace for root", rootWithoutUserNS, fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing without overlayfs", func(f *host.Facts) { f.Overlay = fixture.No("overlayfs") }, fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"nothing without keyrings", func(f *host.Facts) { f.Keyring = fixture.No("keyrings") }, fixture.WorkspaceTree(), policy.Policy{}, ""},
		{"protected names without notifications", lacksNotify, fixture.WorkspaceTree(), policy.Policy{}, "files"},
		{"nothing without notifications where nothing is writable", lacksNotify, fixture.ReadOnlyTree(), policy.Policy{}, ""},
		{"nothing without notifications where nothing is protected", lacksNotify, fixture.WorkspaceTree(), policy.Policy{Files: policy.Files{Protect: policy.Protect{Off: true}}}, ""},
		{"hidden names without notifications", lacksNotify, fixture.WorkspaceTree(), policy.Policy{Files: policy.Files{HideNames: []string{".env"}, Protect: policy.Protect{Off: true}}}, "files"},
		{"system calls without seccomp", lacksSeccomp, fixture.ReadOnlyTree(), policy.Policy{}, "syscalls"},
		{"nothing without seccomp when system calls are open", lacksSeccomp, fixture.ReadOnlyTree(), policy.Policy{Open: []policy.Bound{policy.BoundSyscalls}}, ""},
		{"nothing without seccomp when the profile is off", lacksSeccomp, fixture.ReadOnlyTree(), policy.Policy{Syscalls: seccomp.Off()}, ""},
		{"files and processes without namespaces", fixture.WithoutNamespaces, fixture.WorkspaceTree(), policy.Policy{}, "files processes"},
		{"the same for a policy that writes nothing", fixture.WithoutNamespaces, fixture.ReadOnlyTree(), policy.Policy{}, "files processes"},
		{"the same for the zero policy", fixture.WithoutNamespaces, resolve.Tree{}, policy.Policy{}, "files processes"},
		{"nothing without namespaces that May names", fixture.WithoutNamespaces, fixture.WorkspaceTree(), policy.Policy{May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}}, ""},
		{"what May does not name", fixture.WithoutNamespaces, fixture.WorkspaceTree(), policy.Policy{May: []policy.Bound{policy.BoundFiles}}, "processes"},
		{"nothing without namespaces when files and processes are open", fixture.WithoutNamespaces, fixture.WorkspaceTree(), policy.Policy{Open: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}}, ""},
		{"all but resources with neither namespaces nor seccomp", both(fixture.WithoutNamespaces, lacksSeccomp), fixture.WorkspaceTree(), policy.Policy{}, "files network processes syscalls"},
		{"the network with neither, system calls open", both(fixture.WithoutNamespaces, lacksSeccomp), fixture.WorkspaceTree(), policy.Policy{Open: []policy.Bound{policy.BoundSyscalls}}, "files network processes"},
		{"no network when the host's is shared", both(fixture.WithoutNamespaces, lacksSeccomp), fixture.WorkspaceTree(), policy.Policy{Network: policy.Network{Host: true}}, "files processes syscalls"},
		{"files and processes with neither namespaces nor Landlock", both(fixture.WithoutNamespaces, fixture.WithoutLandlock), fixture.WorkspaceTree(), policy.Policy{}, "files processes"},
		{"processes with ABI 5 alone", both(fixture.WithoutNamespaces, abi(5)), fixture.ReadOnlyTree(), policy.Policy{May: []policy.Bound{policy.BoundFiles}}, "processes"},
		{"nothing at all when everything is open", both(both(fixture.WithoutNamespaces, fixture.WithoutLandlock), lacksSeccomp), resolve.Tree{}, policy.Policy{Env: policy.Env{Pass: []string{"*"}}, Open: plan.Bounds()}, ""},
		{"any command without the calls of a start, whatever May and Open name", func(f *host.Facts) { f.Calls = fixture.No("calls") }, resolve.Tree{}, policy.Policy{Env: policy.Env{Pass: []string{"*"}}, Open: plan.Bounds()}, "processes"},
		{"nothing starts without pidfds", func(f *host.Facts) { f.PIDFD = fixture.No("pidfds") }, fixture.WorkspaceTree(), policy.Policy{}, "processes"},
		{"the end of a run without pidfds and namespaces", both(fixture.WithoutNamespaces, func(f *host.Facts) { f.PIDFD = fixture.No("pidfds") }), fixture.WorkspaceTree(), policy.Policy{}.InContainer(), "processes"},
		{"what could not be told counts as missing", func(f *host.Facts) {
			f.Seccomp = host.Fact{Name: "seccomp", Reason: "seccomp(2): input/output error", Remedy: "try again"}
		}, fixture.WorkspaceTree(), policy.Policy{}, "syscalls"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			facts := fixture.Host()
			test.change(&facts)
			_, err := Plan(inputOf(test.layout, facts, test.policy))
			if got := fixture.UnsupportedBounds(t, err); got != test.want {
				t.Errorf("refused: %q, want %q\n%v", got, test.want, err)
			}
		})
	}
}

func abi(n int) func(*host.Facts) {
	return func(f *host.Facts) { f.Landlock.Value = n }
}

func lacksNotify(f *host.Facts)  { f.Notify = fixture.No("notify") }
func lacksSeccomp(f *host.Facts) { f.Seccomp, f.Notify = fixture.No("seccomp"), fixture.No("notify") }

func rootWithoutUserNS(f *host.Facts) { f.UID, f.GID, f.UserNS = 0, 0, false }

func both(a, b func(*host.Facts)) func(*host.Facts) {
	return func(f *host.Facts) { a(f); b(f) }
}

// sharedPIDs is a host on which no /proc can be mounted.
func sharedPIDs(f *host.Facts) {
	f.SharedPIDs, f.Obstacle = true, host.Obstacle{Errno: syscall.EPERM, Mount: true, Proc: true}
	f.Namespaces.Reason, f.Namespaces.Remedy = "they were made, but no pid namespace", "a whole /proc"
}

// TestWithoutAPIDNamespaceProcessesAreHeldAsWithoutAny: by the rules on calls that take a number, and below ABI 6 by the filter around the sandbox's own
// processes; queues and shared memory are those of the ipc namespace. No sandbox can be built inside.
func TestWithoutAPIDNamespaceProcessesAreHeldAsWithoutAny(t *testing.T) {
	facts := fixture.Host()
	sharedPIDs(&facts)
	facts.Landlock.Value = 5
	p, err := Plan(inputOf(fixture.WorkspaceTree(), facts, policy.Policy{May: []policy.Bound{policy.BoundProcesses}}))
	if err != nil {
		t.Fatal(err)
	}
	keepers, shown := false, false
	for _, s := range p.Steps {
		switch do := s.Do.(type) {
		case plan.LoadKeeperFilter:
			keepers = true
		case plan.Proc:
			shown = do.Shared
		case plan.LoadFilter:
			for name, want := range map[string]seccomp.Action{"prlimit64": seccomp.Errno(errPerm), "shmget": seccomp.Allow} {
				call, err := seccomp.NewCall(seccomp.AMD64, name, 7)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := do.Program.Evaluate(call); err != nil || got != want {
					t.Errorf("%s: %v, %v", name, got, err)
				}
			}
		}
	}
	if !keepers || !shown || p.Namespaces.PID || !p.Namespaces.IPC {
		t.Errorf("keepers %v, /proc shown %v: %v", keepers, shown, p.Namespaces)
	}
	var no *policy.UnsupportedError
	if _, err := Plan(inputOf(fixture.ReadOnlyTree(), facts, policy.Policy{Nested: true, May: plan.Bounds()})); !errors.As(err, &no) || !no.Needed {
		t.Errorf("Nested: %v", err)
	}
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
	shared := strings.ReplaceAll(spaces, "pid-namespace ", "")
	may := policy.Policy{May: plan.Bounds()}
	tests := []struct {
		name   string
		change func(*host.Facts)
		layout resolve.Tree
		policy policy.Policy
		want   string
	}{
		{"two mechanisms for each where the kernel has them", func(*host.Facts) {}, fixture.WorkspaceTree(), policy.Policy{},
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled},
		{"no scope before ABI 6", abi(5), fixture.WorkspaceTree(), policy.Policy{},
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + spaces + "\nsyscalls: seccomp" + walled},
		{"namespaces alone without Landlock", fixture.WithoutLandlock, fixture.ReadOnlyTree(), policy.Policy{},
			"files: mount-namespace supervisor\nnetwork: network-namespace seccomp\n" + spaces + "\nsyscalls: seccomp" + walled},
		{"no user namespace for root", rootWithoutUserNS, fixture.ReadOnlyTree(), policy.Policy{},
			"files: mount-namespace landlock\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + rest},
		{"Landlock, seccomp and a subreaper without namespaces", fixture.WithoutNamespaces, fixture.ReadOnlyTree(), may,
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (2 lost)\nsyscalls: seccomp" + rest},
		{"all namespaces but that of processes", sharedPIDs, fixture.WorkspaceTree(), may,
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + shared + " landlock-scope subreaper (2 lost)\nsyscalls: seccomp" + walled},
		{"the same before ABI 6", both(sharedPIDs, abi(5)), fixture.WorkspaceTree(), may,
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + shared + " subreaper (1 lost)\nsyscalls: seccomp" + walled},
		{"the same where processes are open", sharedPIDs, fixture.ReadOnlyTree(), policy.Policy{Open: []policy.Bound{policy.BoundProcesses}},
			"files: mount-namespace landlock\nnetwork: network-namespace seccomp\nprocesses:\nsyscalls: seccomp" + walled},
		{"a root by chroot(2)", chrooted, fixture.WorkspaceTree(), policy.Policy{},
			"files: mount-namespace landlock supervisor\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled},
		{"no TCP rules before ABI 4", both(fixture.WithoutNamespaces, abi(3)), fixture.ReadOnlyTree(), may,
			"files: landlock (3 lost)\nnetwork: seccomp\nprocesses: subreaper (1 lost)\nsyscalls: seccomp" + rest},
		{"truncation is lost before ABI 3", both(fixture.WithoutNamespaces, abi(2)), fixture.ReadOnlyTree(), may,
			"files: landlock (4 lost)\nnetwork: seccomp\nprocesses: subreaper (1 lost)\nsyscalls: seccomp" + rest},
		{"next to nothing without the three", both(both(fixture.WithoutNamespaces, fixture.WithoutLandlock), lacksSeccomp), fixture.ReadOnlyTree(), may,
			"files: (1 lost)\nnetwork: (1 lost)\nprocesses: subreaper (1 lost)\nsyscalls: (1 lost)" + rest},
		{"a deadline", func(*host.Facts) {}, fixture.ReadOnlyTree(), policy.Policy{Limits: policy.Limits{WallClock: time.Second}},
			"files: mount-namespace landlock\nnetwork: network-namespace seccomp\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled + " deadline"},
		{"the host's network", func(*host.Facts) {}, fixture.ReadOnlyTree(), policy.Policy{Network: policy.Network{Host: true}},
			"files: mount-namespace landlock\nnetwork:\n" + spaces + " landlock-scope\nsyscalls: seccomp" + walled},
		{"sockets are refused without namespaces when the profile is off", fixture.WithoutNamespaces, fixture.ReadOnlyTree(),
			policy.Policy{Syscalls: seccomp.Off(), May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}},
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (2 lost)\nsyscalls:" + rest},
		{"sockets are refused without namespaces when system calls are open", fixture.WithoutNamespaces, fixture.ReadOnlyTree(),
			policy.Policy{Open: []policy.Bound{policy.BoundSyscalls}, May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses}},
			"files: landlock (3 lost)\nnetwork: landlock-tcp seccomp\nprocesses: landlock-scope subreaper (2 lost)\nsyscalls:" + rest},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			facts := fixture.Host()
			test.change(&facts)
			p, err := Plan(inputOf(test.layout, facts, test.policy))
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
		{"signals are restored before the filters", is[plan.RestoreSignals], is[plan.LoadFilter]},
		{"the supervisor's filter is loaded after the profile, which it keeps", is[plan.LoadFilter], is[plan.LoadSupervisor]},
	}
	p, err := Plan(inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{}))
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
	if last := p.Steps[len(p.Steps)-1].Do; !is[plan.LoadSupervisor](last) {
		t.Errorf("the last step is %q", last)
	}
	for i := 1; i < len(p.Steps); i++ {
		if p.Steps[i].In < p.Steps[i-1].In {
			t.Errorf("step %d runs in the %s, after one of the %s", i, p.Steps[i].In, p.Steps[i-1].In)
		}
	}
}

func TestCompileIsPure(t *testing.T) {
	for _, change := range []func(*host.Facts){func(*host.Facts) {}, fixture.WithoutNamespaces, fixture.WithoutLandlock, abi(2)} {
		facts := fixture.Host()
		change(&facts)
		one, err1 := Plan(inputOf(fixture.WorkspaceTree(), facts, policy.Policy{May: plan.Bounds()}))
		two, err2 := Plan(inputOf(fixture.WorkspaceTree(), facts, policy.Policy{May: plan.Bounds()}))
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
		for _, change := range []func(*host.Facts){func(*host.Facts) {}, fixture.WithoutNamespaces} {
			facts := fixture.Host()
			change(&facts)
			facts.Landlock.Value = n
			p, err := Plan(inputOf(fixture.WorkspaceTree(), facts, policy.Policy{May: plan.Bounds()}))
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
	p, err := Plan(inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{Limits: policy.Limits{WallClock: time.Minute}}))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Golden(t, "plan.golden", p.String())
}

// A copy that the host cannot make is empty in a directory of the sandbox's own, and as it is in what is shown to read.
func TestCopiesWithoutOverlayfs(t *testing.T) {
	tree := resolve.Tree{Entries: []resolve.Entry{
		{Path: "/home/me", Kind: pathrule.Private, Dir: true}, {Path: "/home/me/cache", Kind: pathrule.CopyOnWrite, Dir: true},
		{Path: "/opt", Kind: pathrule.Read, Dir: true}, {Path: "/opt/shims", Kind: pathrule.CopyOnWrite, Dir: true},
		{Path: "/ws", Kind: pathrule.Write, Dir: true}, {Path: "/ws/copy", Kind: pathrule.CopyOnWrite, Dir: true},
	}}
	kinds := func(overlay host.Fact) string {
		h := fixture.Host()
		h.Overlay = overlay
		p, err := Plan(inputOf(tree, h, policy.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, s := range p.Steps {
			switch a := s.Do.(type) {
			case plan.Overlay:
				out = append(out, "overlay "+a.At)
			case plan.Private:
				if !strings.HasPrefix(a.At, "/dev") {
					out = append(out, "private "+a.At)
				}
			}
		}
		return strings.Join(out, ", ")
	}
	if got, want := kinds(fixture.Yes("overlayfs")), "private /home/me, overlay /home/me/cache, overlay /opt/shims, overlay /ws/copy"; got != want {
		t.Errorf("with overlayfs: %s", got)
	}
	if got, want := kinds(fixture.No("overlayfs")), "private /home/me, private /home/me/cache, private /ws/copy"; got != want {
		t.Errorf("without overlayfs: %s", got)
	}
	if tree.Entries[3].Path != "/opt/shims" {
		t.Error("the tree was changed")
	}
}

// TestWatch: the supervisor is loaded for it even where nothing can be written, and where there is none a note says that it does nothing.
func TestWatch(t *testing.T) {
	for words, test := range map[string]struct {
		change func(*host.Facts)
		watch  bool
		step   bool
		note   string
	}{
		"off":                   {func(*host.Facts) {}, false, false, ""},
		"on":                    {func(*host.Facts) {}, true, true, ""},
		"without notifications": {lacksNotify, true, false, "Files.Watch does nothing"},
		"without namespaces":    {fixture.WithoutNamespaces, true, true, ""},
	} {
		facts := fixture.Host()
		test.change(&facts)
		p, err := Plan(inputOf(fixture.ReadOnlyTree(), facts, policy.Policy{Files: policy.Files{Watch: test.watch}, May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}}))
		if err != nil {
			t.Errorf("%s: %v", words, err)
			continue
		}
		notes := ""
		for _, h := range p.Holdings {
			notes += strings.Join(h.Notes, "\n")
		}
		if p.Uses(plan.Supervisor) {
			t.Errorf("%s: counts as a mechanism, and holds nothing", words)
		}
		if step := p.SupervisorRules() != ""; step != test.step || !strings.Contains(notes, test.note) {
			t.Errorf("%s: loaded: %v; %s", words, step, notes)
		}
	}
}
