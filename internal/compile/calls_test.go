package compile

import (
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// The kernel counts no processes for uid 0, and a pid namespace's limit is 301 at
// least: a smaller NProc is not held, and the plan says so.
func TestNProcOfRootIsHeldOrLost(t *testing.T) {
	const refused, held = "resources", ""
	for _, tt := range []struct {
		name   string
		change func(*host.Facts)
		nproc  *rlimit.Limit
		want   string
	}{
		{"an ordinary user's", func(*host.Facts) {}, rlimit.At(20), held},
		{"root's, by the pid namespace", rootWithUserNS, rlimit.At(1000), held},
		{"root's, below what a pid namespace can be limited to", rootWithUserNS, rlimit.At(20), refused},
		{"root's, at what a pid namespace can be limited to", rootWithUserNS, rlimit.At(298), held},
		{"root's, before Linux 6.14", func(f *host.Facts) { rootWithUserNS(f); f.Kernel = "6.12.0" }, rlimit.At(1000), refused},
		{"root's that the policy does not name", rootWithUserNS, nil, held},
		{"root's that is unlimited", rootWithUserNS, rlimit.At(rlimit.Unlimited), held},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := fixture.Host()
			tt.change(&facts)
			_, err := Plan(inputOf(fixture.WorkspaceTree(), facts, policy.Policy{Limits: policy.Limits{Rlimits: rlimit.Limits{NProc: tt.nproc}}}))
			if got := fixture.UnsupportedBounds(t, err); got != tt.want {
				t.Errorf("refused %q, want %q: %v", got, tt.want, err)
			}
		})
	}
}

func rootWithUserNS(f *host.Facts) { f.UID, f.GID = 0, 0 }

// PTRACE_O_TRACEEXIT is the supervisor's to allow where it is loaded and no other
// sandbox's processes can be traced; everywhere else the profile refuses it. An errno
// wins over a notification, so there may not be both.
func TestExitStopsAreSupervisedOrRefused(t *testing.T) {
	supervised, refused := seccomp.Allow, seccomp.Errno(errArgument)
	anywhere := policy.Policy{May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}}
	for _, tt := range []struct {
		name   string
		change func(*host.Facts)
		layout resolve.Tree
		policy policy.Policy
		want   seccomp.Action
	}{
		{"with every mechanism", func(*host.Facts) {}, fixture.WorkspaceTree(), policy.Policy{}, supervised},
		{"with pid namespaces and no Landlock", fixture.WithoutLandlock, fixture.WorkspaceTree(), policy.Policy{}, supervised},
		{"with Landlock and no namespaces", fixture.WithoutNamespaces, fixture.WorkspaceTree(), anywhere, supervised},
		{"without namespaces and Landlock", func(f *host.Facts) { fixture.WithoutNamespaces(f); fixture.WithoutLandlock(f) }, fixture.WorkspaceTree(), anywhere, refused},
		{"without a listener", lacksNotify, fixture.WorkspaceTree(), anywhere, refused},
		{"with nothing to write", func(*host.Facts) {}, fixture.ReadOnlyTree(), policy.Policy{}, refused},
		{"with no names protected", func(*host.Facts) {}, fixture.WorkspaceTree(), policy.Policy{Files: policy.Files{Protect: policy.Protect{Off: true}}}, refused},
		{"without a profile", func(*host.Facts) {}, fixture.ReadOnlyTree(), policy.Policy{Syscalls: seccomp.Off()}, refused},
	} {
		for _, arch := range []seccomp.Arch{seccomp.AMD64, seccomp.ARM64} {
			facts := fixture.Host()
			tt.change(&facts)
			in := inputOf(tt.layout, facts, tt.policy)
			in.Arch = arch
			p, err := Plan(in)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			for _, request := range []uint64{ptraceSeize, ptraceSetOptions, ptraceOldSetOptions} {
				call, err := seccomp.NewCall(arch, "ptrace", request, 5, 0, traceExit|1)
				if err != nil {
					t.Fatal(err)
				}
				got := seccomp.Allow
				for _, s := range p.Steps {
					if load, ok := s.Do.(plan.LoadFilter); ok {
						if got, err = load.Program.Evaluate(call); err != nil {
							t.Fatal(err)
						}
					}
				}
				if got != tt.want {
					t.Errorf("%s, %v, request %#x: %v, want %v", tt.name, arch, request, got, tt.want)
				}
			}
		}
	}
}

// Sockets of ping reach other machines, and other processes' answers, where the network is not the sandbox's own.
func TestEchoSocketsOfTheSandboxsNetworkAlone(t *testing.T) {
	anywhere := policy.Policy{May: []policy.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}}
	other := policy.Policy{Syscalls: seccomp.Default().With(seccomp.Rule{Names: []string{"acct"}, Action: seccomp.Errno(errPerm)})}
	for _, tt := range []struct {
		name   string
		change func(*host.Facts)
		policy policy.Policy
		want   bool
	}{
		{"in a network of its own", func(*host.Facts) {}, policy.Policy{}, true},
		{"in the harness's network", func(*host.Facts) {}, policy.Policy{Network: policy.Network{Host: true}}, false},
		{"with the network open", func(*host.Facts) {}, policy.Policy{Open: []policy.Bound{policy.BoundNetwork}}, false},
		{"without namespaces", fixture.WithoutNamespaces, anywhere, false},
		{"under another profile", func(*host.Facts) {}, other, false},
	} {
		facts := fixture.Host()
		tt.change(&facts)
		p, err := Plan(inputOf(fixture.WorkspaceTree(), facts, tt.policy))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		for _, socket := range [][]uint64{{familyInet, typeDgram, protocolICMP}, {familyInet6, typeDgram | 0o2000000, protocolICMP6}} {
			if got := passes(t, p, "socket", socket...); got != tt.want {
				t.Errorf("%s: socket%v passes: %v, want %v", tt.name, socket, got, tt.want)
			}
		}
		for _, socket := range [][]uint64{{familyInet, typeRaw, protocolICMP}, {familyInet, typeDgram, protocolICMP6}, {familyInet6, typeDgram, protocolICMP}, {familyInet, typeDgram, 132}} {
			if passes(t, p, "socket", socket...) && tt.name != "with the network open" {
				t.Errorf("%s: socket%v passes", tt.name, socket)
			}
		}
	}
}

// passes reports whether every filter of a plan lets a call pass.
func passes(t *testing.T, p plan.Plan, name string, args ...uint64) bool {
	t.Helper()
	call, err := seccomp.NewCall(seccomp.AMD64, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	ok := true
	for _, s := range p.Steps {
		if load, is := s.Do.(plan.LoadFilter); is {
			got, err := load.Program.Evaluate(call)
			if err != nil {
				t.Fatal(err)
			}
			ok = ok && got == seccomp.Allow
		}
	}
	return ok
}
