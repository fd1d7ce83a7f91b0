package sandbox

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A generator makes up policies and acts over a small tree of names, so that
// rules nest, meet and miss each other often.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator { return &generator{rand.New(rand.NewPCG(seed, 4))} }

// treeNames are the names of the made-up host: plain ones, protected ones with
// their neighbours, hidden ones, and some in other letters.
var treeNames = []string{
	"a", "a", "b", "b", "c", "ws", ".git", "hooks", "config", "modules", "worktrees", "w", "commondir", "info", "attributes",
	".bashrc", ".BASHRC", ".hus\u212ay", "con\ufb01g", "caf\u00e9", "caf", ".pro\ufb01le", ".vscode", ".env", ".env.local", "secret", "x",
}

// ruleNames are those that rules are about.
var ruleNames = []string{"a", "b", "c", "ws", ".git", ".claude", "x"}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) path(names []string, least, most int) string {
	p := "/" + pick(g, "a", "b", "ws", "srv")
	for range least + g.IntN(most-least+1) - 1 {
		p = pathrule.Join(p, pick(g, names...))
	}
	return p
}

// policy makes a policy that may be one which New refuses.
func (g *generator) policy() Policy {
	var p Policy
	f := &p.Files
	for _, list := range []*[]string{&f.Read, &f.Write, &f.Hide, &f.Private, &f.CopyOnWrite} {
		for range g.IntN(3) {
			*list = append(*list, g.path(ruleNames, 1, 4))
		}
	}
	if g.IntN(12) == 0 {
		f.Read = append(f.Read, "/")
	} else if g.IntN(12) == 0 {
		f.Write = append(f.Write, "/")
	}
	for range g.IntN(2) {
		f.Make = append(f.Make, policy.File{Path: g.path(ruleNames, 1, 4) + ".made", Mode: pick[fs.FileMode](g, 0, 0o644, 0o755)})
	}
	if g.IntN(3) == 0 {
		f.HideNames = []string{".env", ".env.*"}
	}
	if g.IntN(6) == 0 {
		f.Write = append(f.Write, pick(g, "/dev/kvm", "/dev/null"))
	}
	switch g.IntN(5) {
	case 0:
		f.Protect.Off = true
	case 1:
		f.Protect.Add = []string{pick(g, "secret", "b/x", "c/*", "a/**/x", "se*", "caf\u00e9")}
	case 2:
		f.Protect.Except = []string{pick(g, ".git", ".git/hooks", ".bashrc", ".git/modules/**/config")}
	}
	p.Network.Host = g.IntN(4) == 0
	p.Limits.WallClock = pick(g, 0, time.Second, time.Minute)
	for _, b := range []Bound{policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses, policy.BoundPrivileges} {
		if g.IntN(16) == 0 {
			p.Open = append(p.Open, b)
		}
	}
	return p
}

// hosts are those that rules and acts are about; ports are those of both.
var (
	someHosts     = []string{"example.org", "a.example.org", "b.a.example.org", "example.com", "EXAMPLE.com.", "203.0.113.7", "10.1.2.3", "169.254.169.254", "2001:db8::1", "0x0a010203"}
	hostRules     = []string{"example.org", "*.example.org", "example.com:443", "a.example.org:8000-8100", "203.0.113.7", "10.0.0.0/8:22", "[2001:db8::1]:443", "*"}
	datagramRules = []string{"example.org:80", "*.example.org:443", "example.com:443", "203.0.113.7:80", "10.0.0.0/8:22", "*:8001"}
	ports         = []int{22, 80, 443, 5432, 8001}
)

// network gives a policy a network that may be one which New refuses. It is apart
// from policy, since what a kernel is asked needs sockets that exist.
func (g *generator) network(p *Policy) {
	n := &p.Network
	if !n.Host || g.IntN(8) == 0 {
		for range g.IntN(3) {
			n.Hosts = append(n.Hosts, pick(g, hostRules...))
		}
		for range g.IntN(2) {
			n.Deny = append(n.Deny, pick(g, hostRules...))
		}
		if g.IntN(4) == 0 {
			n.Capture = func(*os.File, policy.CaptureGate) (func(), error) { return nil, nil }
			for range g.IntN(3) {
				n.UDP = append(n.UDP, pick(g, datagramRules...))
			}
			if g.IntN(2) == 0 {
				n.Requests = []policy.RequestRule{{Host: "a.example.org:443"}}
			}
		}
		for range g.IntN(2) {
			n.Loopback = append(n.Loopback, uint16(pick(g, ports...)))
		}
	}
	if g.IntN(16) == 0 { // where nothing is left to be walled
		p.Open = []Bound{policy.BoundFiles, policy.BoundProcesses}
	}
	for range g.IntN(3) {
		n.Unix = append(n.Unix, g.path(ruleNames, 1, 4)+".sock")
	}
}

// places are paths outside of the made-up tree that every sandbox answers for.
var places = []string{"/", "/dev", "/dev/null", "/dev/sda", "/dev/pts", "/dev/pts/0", "/dev/shm", "/dev/shm/a", "/proc", "/proc/self/status", "/proc/kcore", "/dev/kvm", "/srv"}

// near makes a path that has to do with the policy's rules, more often than not.
func (g *generator) near(rules []string) string {
	switch n := g.IntN(10); {
	case n < 6 && len(rules) > 0:
		p := pick(g, rules...)
		for range g.IntN(2) {
			p = path.Dir(p)
		}
		for range g.IntN(4) {
			p = pathrule.Join(p, pick(g, treeNames...))
		}
		return p
	case n < 7:
		return pick(g, places...)
	}
	return g.path(treeNames, 1, 5)
}

func rulePaths(p Policy) []string {
	f := p.Files
	var out []string
	for _, list := range f.Lists() {
		out = append(out, list.Paths...)
	}
	for _, m := range f.Make {
		out = append(out, m.Path)
	}
	return append(out, p.Network.Unix...)
}

var fileOps = []Op{OpRead, OpList, OpStat, OpWrite, OpCreate, OpRemove, OpRename, OpLink, OpSymlink, OpChmod, OpSetXattr, OpExecute}

// act makes an act that a tool could try under p.
func (g *generator) act(rules []string) Access {
	switch g.IntN(14) {
	case 0:
		return Access{Op: pick(g, OpConnect, OpBind), Network: pick(g, "tcp", "udp"), Host: pick(g, append([]string{"127.0.0.1", "localhost", "::1"}, someHosts...)...), Port: pick(g, append(ports, 1+g.IntN(65535))...)}
	case 1:
		return Access{Op: pick(g, OpConnect, OpBind), Network: "unix", Path: g.near(rules)}
	case 2:
		return pick(g, Access{Op: OpSignal}, Access{Op: OpSignal, Outside: true}, Access{Op: OpFork}, Access{Op: OpElevate})
	}
	a := Access{Op: pick(g, fileOps...), Path: g.near(rules), Dir: g.IntN(2) == 0}
	switch a.Op {
	case OpList:
		a.Dir = true
	case OpRead, OpWrite, OpExecute, OpLink, OpSymlink:
		a.Dir = false
	}
	switch a.Op {
	case OpRename, OpLink:
		a.To = g.near(rules)
	case OpSymlink:
		a.To = pick(g, "a", "../b", "/etc/passwd")
	}
	return a
}
