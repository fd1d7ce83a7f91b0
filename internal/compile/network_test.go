package compile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/sandbox/rootfs"
)

// networked is an input whose policy has a network, wired as New would.
func networked(n policy.Network, change func(in *Input)) Input {
	in := inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{Network: policy.Network{Host: n.Host}})
	in.NetConfig = NewNetConfig(n)
	if in.NetConfig.HasFiles() {
		in.NetConfig.Dir = in.OwnDir()
	}
	if change != nil {
		change(&in)
	}
	return in
}

func factOf(answer bool, name string) host.Fact {
	if answer {
		return fixture.Yes(name)
	}
	return fixture.No(name)
}

func steps(t *testing.T, in Input) []string {
	t.Helper()
	p, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range p.Steps {
		list = append(list, s.Do.String())
	}
	return list
}

func TestCompileMakesTheWaysOutOfTheNamespace(t *testing.T) {
	capture := func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }
	for _, tt := range []struct {
		name    string
		network policy.Network
		tun     bool
		want    string
	}{
		{"nothing", policy.Network{}, false, ""},
		{"hosts", policy.Network{Hosts: []string{"a.example"}}, false, "tcp4 127.0.0.1:3128, tcp4 127.0.0.1:1080"},
		{"an observer alone", policy.Network{Observe: func(policy.Connection) {}}, false, "tcp4 127.0.0.1:3128, tcp4 127.0.0.1:1080"},
		{"the harness's ports", policy.Network{Loopback: []uint16{5432, 6379}}, false, "tcp4 127.0.0.1:5432, tcp4 127.0.0.1:6379"},
		{"ports that the proxies have", policy.Network{Hosts: []string{"a.example"}, Loopback: []uint16{3128}, Listen: []uint16{1080, 1081, 3129}}, false,
			"tcp4 127.0.0.1:3130, tcp4 127.0.0.1:1082, tcp4 127.0.0.1:3128"},
		{"a capture", policy.Network{Capture: capture}, true, "tcp4 127.0.0.1:3128, tcp4 127.0.0.1:1080, udp4 127.0.0.1:53, tcp4 127.0.0.1:53, udp4 127.0.0.53:53, tcp4 127.0.0.53:53"},
		{"a capture without a device", policy.Network{Capture: capture}, false, "tcp4 127.0.0.1:3128, tcp4 127.0.0.1:1080"},
		{"the ssh agent", policy.Network{SSHAgent: true}, false, "/run/holdfast/ssh-agent"},
		{"the ssh agent on a shared network", policy.Network{Host: true, SSHAgent: true}, false, "/run/holdfast/ssh-agent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := networked(tt.network, func(in *Input) { in.Facts.TUN = factOf(tt.tun, "TUN") })
			var got []string
			for _, s := range steps(t, in) {
				if s, ok := strings.CutPrefix(s, "listen at "); ok {
					got = append(got, strings.TrimSuffix(s, " inside, for the harness"))
				}
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCompileListensBeforeItLocks(t *testing.T) {
	list := steps(t, networked(policy.Network{Hosts: []string{"a.example"}, SSHAgent: true, Requests: []policy.RequestRule{{}}}, nil))
	at := func(prefix string) int {
		i := slices.IndexFunc(list, func(s string) bool { return strings.HasPrefix(s, prefix) })
		if i < 0 {
			t.Fatalf("no step %q in %q", prefix, list)
		}
		return i
	}
	order := []int{at(plan.Loopback{}.String()), at("listen at tcp4"), at(plan.Pivot{}.String()), at(plan.SealRoot{}.String()), at("drop all")}
	if !slices.IsSorted(order) || at("write /run/holdfast/ca.pem") > order[2] || at("listen at /run") > order[2] {
		t.Errorf("order %v of\n%s", order, strings.Join(list, "\n"))
	}
}

func TestCompileSaysThatNoDatagramIsCarriedWithoutADevice(t *testing.T) {
	capture := func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }
	n := policy.Network{Capture: capture, UDP: []string{"a.example:123"}}
	p, err := Plan(networked(n, func(in *Input) { in.Facts.TUN = factOf(false, "TUN") }))
	if err != nil {
		t.Fatal(err)
	}
	said := false
	for _, h := range p.Holdings {
		for _, note := range h.Notes {
			said = said || h.Bound == policy.BoundNetwork && strings.Contains(note, "no datagram of Network.UDP is carried")
		}
	}
	if !said {
		t.Errorf("%+v", p.Holdings)
	}
}

func TestCompileShowsSSHItsConfiguration(t *testing.T) {
	relayed := func(files ...SSHConfig) Input {
		return networked(policy.Network{Hosts: []string{"a.example"}}, func(in *Input) {
			in.NetConfig.Relay, in.NetConfig.Dir, in.NetConfig.SSH = "/usr/bin/harness", DefaultDir, files
		})
	}
	told := func(in Input) string {
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range p.Holdings {
			if h.Bound == policy.BoundNetwork {
				return strings.Join(h.Notes, "\n")
			}
		}
		return ""
	}
	covered, made := relayed(SSHConfig{At: "/etc/ssh/ssh_config", Text: "x"}), relayed(SSHConfig{At: "/etc/ssh/ssh_config", Text: "x", Made: true})
	for name, in := range map[string]Input{"in the place of the system's": covered, "where there is none": made} {
		list := steps(t, in)
		pivot := slices.Index(list, plan.Pivot{}.String())
		last := plan.Cover{Path: "/etc/ssh/ssh_config", By: DefaultDir + "/ssh_config.0"}.String()
		if name == "where there is none" {
			last = plan.MakeFile{Path: "/etc/ssh/ssh_config", Mode: 0o444, Data: "x"}.String()
		}
		if at := slices.Index(list, last); at < 0 || at > pivot {
			t.Errorf("%s: no %q before the root is sealed in\n%s", name, last, strings.Join(list, "\n"))
		}
		if note := told(in); note != "" {
			t.Errorf("%s: noted %q", name, note)
		}
	}
	if rules := (&compilation{Input: made}).ownRules(); !slices.ContainsFunc(rules, func(r landlock.PathRule) bool {
		return r.Path == "/etc/ssh/ssh_config" && r.Access == landlock.FSReadFile
	}) {
		t.Errorf("Landlock lets nobody read it: %v", rules)
	}
	if note := told(relayed()); !strings.Contains(note, "git's ssh alone") {
		t.Errorf("without any: noted %q", note)
	}
}

func TestCompileSaysWhatIsNotCaptured(t *testing.T) {
	capture := func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }
	for _, tun := range []bool{false, true} {
		p, err := Plan(networked(policy.Network{Capture: capture}, func(in *Input) { in.Facts.TUN = factOf(tun, "TUN") }))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range p.Holdings {
			if h.Bound == policy.BoundNetwork && (len(h.Notes) == 0) != tun {
				t.Errorf("tun %t: %q", tun, h.Notes)
			}
			if h.Bound == policy.BoundNetwork && len(h.Lost) > 0 {
				t.Errorf("tun %t: nothing of the bound is lost, but %v", tun, h.Lost)
			}
		}
	}
}

// TestTheSandboxsOwnPlaceIsNotTheHosts: nothing may be made in a tree of the host.
func TestTheSandboxsOwnPlaceIsNotTheHosts(t *testing.T) {
	files := func(list ...resolve.Entry) Input {
		return Input{Tree: resolve.Tree{Entries: list}, Facts: fixture.Host()}
	}
	puts := func(list ...plan.Action) Input {
		in := Input{Policy: policy.Policy{Root: &rootfs.Layout{Entries: []rootfs.Entry{}}}, Facts: fixture.Host()}
		for _, do := range list {
			in.Mounts = append(in.Mounts, resolve.MountEntry{Action: do})
		}
		return in
	}
	dir := func(p string, k pathrule.Kind) resolve.Entry { return resolve.Entry{Path: p, Kind: k, Dir: true} }
	for _, tt := range []struct {
		name string
		in   Input
		want string
	}{
		{"where nothing is shown", files(dir("/usr", pathrule.Read)), "/run/holdfast"},
		{"beside something of /run", files(dir("/run/user", pathrule.Read)), "/run/holdfast"},
		{"in a private /run", files(dir("/run", pathrule.Private)), "/run/holdfast"},
		{"with the host's /run", files(dir("/run", pathrule.Read), dir("/tmp", pathrule.Private)), "/tmp/.holdfast"},
		{"with a copy of the host's /run", files(dir("/run", pathrule.CopyOnWrite)), ""},
		{"with the whole host", files(dir("/", pathrule.Read)), ""},
		{"with the whole host and a private /tmp", files(dir("/", pathrule.Read), dir("/tmp", pathrule.Private)), "/tmp/.holdfast"},
		{"in a private directory that shows something", files(dir("/", pathrule.Read), dir("/tmp", pathrule.Private), dir("/tmp/ws", pathrule.Write)), "/tmp/.holdfast"},
		{"in an empty layout", puts(), "/run/holdfast"},
		{"in a layout of the host", puts(plan.PutBind{At: "/", Dir: true}), ""},
		{"in a layout of the host with a tmpfs", puts(plan.PutBind{At: "/", Dir: true}, plan.PutTmpfs{At: "/tmp"}), "/tmp/.holdfast"},
		{"in a tmpfs that is covered", puts(plan.PutTmpfs{At: "/run"}, plan.PutBind{At: "/run", Dir: true}), ""},
		{"in a tmpfs that covers", puts(plan.PutBind{At: "/run", Dir: true}, plan.PutTmpfs{At: "/run"}), "/run/holdfast"},
	} {
		if got := tt.in.OwnDir(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestASocketIsGrantedByItself(t *testing.T) {
	in := networked(policy.Network{}, func(in *Input) {
		in.Facts.Landlock.Value = 9 // the first that rules on sockets
		in.Tree.Entries = append(in.Tree.Entries, resolve.Entry{Path: "/x/a.sock", Kind: pathrule.Socket}, resolve.Entry{Path: "/ws/b.sock", Kind: pathrule.Socket, Shown: true})
	})
	p, err := Plan(in)
	if err != nil {
		t.Fatal(err)
	}
	binds, rules := map[string]bool{}, map[string]landlock.AccessFS{}
	for _, s := range p.Steps {
		switch do := s.Do.(type) {
		case plan.Bind:
			binds[do.At] = true
		case plan.RestrictFiles:
			for _, r := range do.Ruleset.Paths {
				rules[r.Path] = r.Access
			}
		}
	}
	if !binds["/x/a.sock"] || binds["/ws/b.sock"] {
		t.Errorf("bound: %v", binds)
	}
	for _, s := range []string{"/x/a.sock", "/ws/b.sock"} {
		if rules[s] != landlock.FSResolveUnix {
			t.Errorf("%s: %v", s, rules[s])
		}
	}
	in.Facts.Landlock.Value = 7
	if _, err := Plan(in); err != nil {
		t.Errorf("with a Landlock that has no such right: %v", err)
	}
}

// TestWithoutANamespaceTheProxiesAreAllThatIsReached, by the supervisor and by Landlock.
func TestWithoutANamespaceTheProxiesAreAllThatIsReached(t *testing.T) {
	bare := func(n policy.Network, may ...policy.Bound) Input {
		return networked(n, func(in *Input) {
			in.Facts.Namespaces = fixture.No("namespaces")
			in.Policy.May = append([]policy.Bound{policy.BoundFiles, policy.BoundProcesses}, may...)
		})
	}
	p, err := Plan(bare(policy.Network{Hosts: []string{"a.example"}, Loopback: []uint16{5432}}))
	if err != nil {
		t.Fatal(err)
	}
	text := p.String()
	for _, want := range []string{"and of connections, which may go to [127.0.0.1:5432 127.0.0.1:1 127.0.0.1:2] alone", "tool   landlock: 0 port rules"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	p, err = Plan(bare(policy.Network{Listen: []uint16{80}}))
	if err != nil || !strings.Contains(p.String(), "connections, which may go to [] alone") {
		t.Errorf("the supervisor makes no servers: %v\n%s", err, p)
	}
	for name, n := range map[string]policy.Network{
		"a server's use":   {Listen: []uint16{80}},
		"an agent":         {SSHAgent: true},
		"a capture of TCP": {Capture: func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }},
		"a proxy's use":    {Hosts: []string{"a.example"}},
	} {
		in := bare(n)
		if strings.HasSuffix(name, "'s use") { // of a supervisor
			in.Facts.Notify = fixture.No("notify")
			in.Policy.Files.Protect.Off = true
		}
		if _, err := Plan(in); fixture.UnsupportedBounds(t, err) != "network" {
			t.Errorf("%s: %v", name, err)
		}
		in.Policy.May = append(in.Policy.May, policy.BoundNetwork)
		p, err := Plan(in)
		if err != nil {
			t.Errorf("%s, although it may be missing: %v", name, err)
		}
		for _, h := range p.Holdings {
			if h.Bound == policy.BoundNetwork && len(h.Notes) == 0 {
				t.Errorf("%s: nothing says that it is missing", name)
			}
		}
	}
}

// TestAnEmptyListOfHostsIsNone: CVE-2025-66479 was an empty list that left the
// isolation out.
func TestAnEmptyListOfHostsIsNone(t *testing.T) {
	for name, n := range map[string]policy.Network{"nil": {}, "empty": {Hosts: []string{}}} {
		p, err := Plan(inputOf(fixture.WorkspaceTree(), fixture.Host(), policy.Policy{Network: n}))
		if err != nil || !p.Namespaces.Net || n.Proxied() {
			t.Errorf("%s: net %t, gated %t, %v", name, p.Namespaces.Net, n.Proxied(), err)
		}
	}
}
