package compile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

func nestedTree(entries ...resolve.Entry) resolve.Tree {
	return resolve.Tree{Entries: append(entries, resolve.Entry{Path: "/usr", Kind: pathrule.Read, Dir: true})}
}

// TestNestedTakesNoRuleThatAToolWithMountsCanLeave: what the supervisor would have to hold, and what a rename takes out of a mount.
func TestNestedTakesNoRuleThatAToolWithMountsCanLeave(t *testing.T) {
	entry := func(p string, kind pathrule.Kind) resolve.Entry { return resolve.Entry{Path: p, Kind: kind, Dir: true} }
	tests := []struct {
		name  string
		files policy.Files
		tree  resolve.Tree
		value string // of the error; "-": there is none
	}{
		{"nothing is writable", policy.Files{}, nestedTree(), "-"},
		{"a copy", policy.Files{}, nestedTree(entry("/home/w", pathrule.CopyOnWrite)), "-"},
		{"a private directory", policy.Files{}, nestedTree(entry("/tmp", pathrule.Private)), "-"},
		{"hidden in what can be read", policy.Files{}, nestedTree(entry("/etc", pathrule.Read), entry("/etc/keys", pathrule.Hide)), "-"},
		{"to be read in a copy", policy.Files{}, nestedTree(entry("/home/w", pathrule.CopyOnWrite), entry("/home/w/x", pathrule.Read)), "-"},
		{"a tree without protected names", policy.Files{Protect: policy.Protect{Off: true}}, nestedTree(entry("/home/w", pathrule.Write)), "-"},
		{"a tree in that", policy.Files{Protect: policy.Protect{Off: true}}, nestedTree(entry("/home/w", pathrule.Write), entry("/home/w/x", pathrule.Write)), "-"},
		{"protected names", policy.Files{}, nestedTree(entry("/home/w", pathrule.Write)), ""},
		{"hidden in a tree", policy.Files{Protect: policy.Protect{Off: true}}, nestedTree(entry("/home/w", pathrule.Write), entry("/home/w/x", pathrule.Hide)), "/home/w/x"},
		{"to be read in a tree", policy.Files{Protect: policy.Protect{Off: true}}, nestedTree(entry("/home/w", pathrule.Write), entry("/home/w/x", pathrule.Read)), "/home/w/x"},
		{"a copy in a tree", policy.Files{Protect: policy.Protect{Off: true}}, nestedTree(entry("/home/w", pathrule.Write), entry("/home/w/x", pathrule.CopyOnWrite)), "/home/w/x"},
		{"hidden in a copy", policy.Files{}, nestedTree(entry("/home/w", pathrule.CopyOnWrite), entry("/home/w/x", pathrule.Hide)), "/home/w/x"},
		{"hidden in what is read in a copy", policy.Files{}, nestedTree(entry("/home/w", pathrule.CopyOnWrite), entry("/home/w/x", pathrule.Read), entry("/home/w/x/y", pathrule.Hide)), "/home/w/x/y"},
		{"private in a copy", policy.Files{}, nestedTree(entry("/home/w", pathrule.CopyOnWrite), entry("/home/w/x", pathrule.Private)), "/home/w/x"},
		{"the root", policy.Files{Protect: policy.Protect{Off: true}}, resolve.Tree{Entries: []resolve.Entry{entry("/", pathrule.Write)}}, "/"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, notify := range []host.Answer{host.Yes, host.No} {
				facts := fixture.Host()
				facts.Notify.Answer = notify
				p, err := Plan(inputOf(test.tree, facts, policy.Policy{Nested: true, Files: test.files}))
				var e *policy.PolicyError
				switch {
				case test.value != "-" && (!errors.As(err, &e) || e.Field != "Nested" || e.Value != test.value || e.Remedy == ""):
					t.Errorf("%v", err)
				case test.value == "-" && err != nil:
					t.Error(err)
				case test.value == "-" && (p.Uses(plan.Supervisor) || p.Uses(plan.Landlock) || !p.Uses(plan.LandlockScope)):
					t.Errorf("a supervisor, a ruleset on files, or no scopes:\n%v", p)
				}
			}
		})
	}
}

// TestNestedPlan: the scopes handle no file access, which would refuse mounts; the quotas leave no cgroup namespace; /proc has no covers.
func TestNestedPlan(t *testing.T) {
	p, err := Plan(inputOf(nestedTree(), fixture.Host(), policy.Policy{Nested: true}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range p.Steps {
		switch do := s.Do.(type) {
		case plan.Proc:
			if seen++; !do.Uncovered || do.Quotas.Users != 1+mostNested || do.Quotas.Others != 1+mostNested {
				t.Errorf("%+v", do)
			}
		case plan.RestrictFiles:
			if seen++; do.Ruleset.UnhandledFS == 0 || len(do.Ruleset.Paths) > 0 || do.Ruleset.Scoped() == 0 {
				t.Errorf("%+v", do)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d steps", seen)
	}
	if p, err := Plan(inputOf(nestedTree(), fixture.Host(), policy.Policy{})); err != nil || strings.Contains(p.String(), "another kind") {
		t.Errorf("without Nested: %v\n%v", err, p)
	}
}

// TestNestedProfile: namespaces and mounts, and nothing else that the default profile refuses.
func TestNestedProfile(t *testing.T) {
	opened := []string{"clone", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree", "mount_setattr", "sethostname", "setdomainname", "openat2"}
	for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
		programs := map[bool]seccomp.Program{}
		for _, nested := range []bool{false, true} {
			in := inputOf(nestedTree(), fixture.Host(), policy.Policy{Nested: nested})
			in.Arch = arch
			p, err := Plan(in)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Steps {
				if f, ok := s.Do.(plan.LoadFilter); ok {
					programs[nested] = f.Program
				}
			}
		}
		judge := func(nested bool, name string, args ...uint64) seccomp.Action {
			call, err := seccomp.NewCall(arch, name, args...)
			if err != nil {
				return seccomp.Errno(errNoSys)
			}
			a, err := programs[nested].Evaluate(call)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		for _, name := range []string{"bpf", "perf_event_open", "keyctl", "add_key", "request_key", "init_module", "finit_module", "kexec_load", "io_uring_setup", "userfaultfd",
			"open_by_handle_at", "fanotify_init", "swapon", "reboot", "clone3", "open_tree_attr", "quotactl", "syslog"} {
			if a := judge(true, name); a == seccomp.Allow {
				t.Errorf("%v: %s is allowed", arch, name)
			}
		}
		for _, name := range opened {
			if judge(true, name, 0x7e020011) != seccomp.Allow || judge(false, name, 0x7e020011) == seccomp.Allow {
				t.Errorf("%v: %s: %v, and without Nested %v", arch, name, judge(true, name, 0x7e020011), judge(false, name, 0x7e020011))
			}
		}
		for _, c := range []struct {
			args    []uint64
			allowed bool
		}{
			{[]uint64{3, 0, 64}, false}, {[]uint64{3, 0, 65}, false}, {[]uint64{3, 0, 96}, false}, {[]uint64{3, 0, 128}, false}, {[]uint64{3, 41, 64}, false}, {[]uint64{3, 1 << 32, 1<<32 | 64}, false},
			{[]uint64{3, 1, 65}, true}, {[]uint64{3, 41, 67}, true}, {[]uint64{3, 0, 10}, true}, {[]uint64{3, 6, 64}, true},
		} {
			if a := judge(true, "setsockopt", c.args...); (a == seccomp.Allow) != c.allowed {
				t.Errorf("%v: setsockopt(%v): %v", arch, c.args, a)
			}
		}
		if a := judge(true, "fchmodat", 3, 1, 0o4755); a == seccomp.Allow {
			t.Errorf("%v: setuid files can be made", arch)
		}
	}
	in := inputOf(nestedTree(resolve.Entry{Path: "/home/w", Kind: pathrule.Write, Dir: true}), fixture.Host(), policy.Policy{Nested: true, Files: policy.Files{Protect: policy.Protect{Off: true}}})
	p, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { _, ok := s.Do.(plan.LoadFilter); return ok })
	call, _ := seccomp.NewCall(in.Arch, "openat2")
	if a, err := p.Steps[i].Do.(plan.LoadFilter).Program.Evaluate(call); err != nil || a != seccomp.Errno(errNoSys) {
		t.Errorf("openat2 where the host can be written: %v %v", a, err)
	}
}

// chrooted is a host that refuses pivot_root(2).
func chrooted(f *host.Facts) { f.Chroot = true }

// TestARootByChrootIsSaidAndNeedsThatNoToolUnmountsIt: the report says that the harness's root lies beneath. Root that keeps its capabilities takes
// the sandbox's off, and a sandbox built inside would lie on it: without May, and in spite of May, New refuses.
func TestARootByChrootIsSaidAndNeedsThatNoToolUnmountsIt(t *testing.T) {
	open := policy.Policy{Open: []policy.Bound{policy.BoundPrivileges}}
	for _, test := range []struct {
		name    string
		change  func(*host.Facts)
		policy  policy.Policy
		refused policy.Bound
	}{
		{"the default", chrooted, policy.Policy{}, ""},
		{"root without a user namespace", both(chrooted, rootWithoutUserNS), policy.Policy{}, ""},
		{"capabilities in a user namespace of the tool's", chrooted, open, ""},
		{"root's own capabilities", both(chrooted, rootWithoutUserNS), open, policy.BoundFiles},
		{"a sandbox inside", chrooted, policy.Policy{Nested: true, May: plan.Bounds()}, policy.BoundProcesses},
	} {
		t.Run(test.name, func(t *testing.T) {
			facts := fixture.Host()
			test.change(&facts)
			p, err := Plan(inputOf(fixture.ReadOnlyTree(), facts, test.policy))
			var no *policy.UnsupportedError
			if errors.As(err, &no); test.refused != "" {
				if no == nil || no.Bound != test.refused || no.Needed != test.policy.Nested || no.Remedy == "" {
					t.Errorf("%+v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if position(p, func(a plan.Action) bool { return a == plan.Action(plan.Pivot{Chroot: true}) }) < 0 || position(p, func(a plan.Action) bool { return a == plan.Action(plan.Pivot{}) }) >= 0 {
				t.Error(p.Steps)
			}
			if notes := p.Holdings[0].Notes; p.Holdings[0].Bound != policy.BoundFiles || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "lie beneath") }) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// TestALoopbackOfAnotherUserNamespaceHasNoSettings: root without CAP_NET_ADMIN does not write them, and the report says what does not work then.
func TestALoopbackOfAnotherUserNamespaceHasNoSettings(t *testing.T) {
	for _, apart := range []bool{false, true} {
		facts := fixture.Host()
		rootWithoutUserNS(&facts)
		facts.NetApart = apart
		p, err := Plan(inputOf(fixture.ReadOnlyTree(), facts, policy.Policy{}))
		if err != nil {
			t.Fatal(err)
		}
		i := position(p, is[plan.Loopback])
		said := slices.ContainsFunc(p.Holdings, func(h plan.Holding) bool {
			return h.Bound == policy.BoundNetwork && len(h.Lost) == 0 && slices.ContainsFunc(h.Notes, func(n string) bool { return strings.Contains(n, "below 1024") })
		})
		if i < 0 || said != apart {
			t.Fatalf("apart %v: said %v: %v", apart, said, p.Steps)
		}
		if l := p.Steps[i].Do.(plan.Loopback); l.Apart != apart || l.Free == apart {
			t.Errorf("%+v", l)
		}
	}
}
