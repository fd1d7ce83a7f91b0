package darwin

import (
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A Profile is a policy's evaluator, from which a profile of macOS's sandbox is made.
type Profile struct{ *verdict.Evaluator }

// A Run is what one run adds to the profile of its policy.
type Run struct {
	Tag     string
	Own     string // the run's own directory; "": it has none
	Proxies []int  // the ports at which the harness serves it
}

// Grants is the policy as package emit takes it, for one run.
func (m Profile) Grants(run Run) emit.Grants {
	open := func(b policy.Bound) bool { return slices.Contains(m.Policy.Open, b) }
	sockets, _ := verdict.AllowsAddress(m.Policy, verdict.Access{Op: verdict.OpConnect, Network: "unix"})
	g := emit.Grants{
		Network: emit.Network{All: m.Policy.Network.Host || open(policy.BoundNetwork), Sockets: sockets},
		PTY:     true, AllProcesses: open(policy.BoundProcesses), Tag: run.Tag,
	}
	if !g.Network.All {
		g.Network.Ports = m.ports(run.Proxies)
	}
	g.Tools.TLS = g.Network.All || m.trustsSystem()
	if open(policy.BoundFiles) {
		g.AllFiles = true
		return g
	}
	for _, p := range slices.SortedFunc(maps.Keys(m.Entries), pathrule.TreeOrder) {
		kind, ok := kinds[m.Entries[p].Kind]
		if pathrule.Within(p, "/dev") {
			kind, ok = emit.Device, kind == emit.Write
		}
		if ok {
			g.Rules = append(g.Rules, emit.Rule{Path: p, Kind: kind, Field: m.Fields[p]})
		}
	}
	g.Rules = append(g.Rules, m.ownRules(run.Own)...)
	g.Roots = m.Roots
	for _, n := range m.Names.Rules {
		g.Names = append(g.Names, emit.Name{Path: n.Name, Kind: nameKind(n), Field: n.Field})
	}
	if m.ReadOnly("/usr/bin") { // the system's own programs, of which some are shims
		g.Tools.Git, g.Tools.Node, g.Tools.Python = true, true, true
	}
	return g
}

// kinds says what each kind of rule becomes. Nothing is mounted: what
// would be a directory of the run's own is the host's, so it is hidden, and what
// would be a copy can be read alone. A file of Make is not there.
var kinds = map[pathrule.Kind]emit.Kind{
	pathrule.Read: emit.Read, pathrule.Write: emit.Write, pathrule.Hide: emit.Hide, pathrule.Private: emit.Hide, pathrule.CopyOnWrite: emit.Read,
	pathrule.Socket: emit.Socket,
}

func nameKind(n verdict.NameRule) emit.NameKind {
	switch {
	case n.Hides:
		return emit.Hidden
	case n.Kind == protected.GitFile:
		return emit.Directory
	case n.Kind == protected.Whole, n.Kind == protected.Ever:
		return emit.Whole
	}
	return emit.File
}

// loseEntries notes what of the policy's paths takes mounts.
func (m Profile) loseEntries(lose func(b policy.Bound, what, why, remedy string, absent bool)) {
	const noMounts = "macOS: nothing is mounted for one process"
	for _, path := range slices.SortedFunc(maps.Keys(m.Entries), pathrule.TreeOrder) {
		switch m.Entries[path].Kind {
		case pathrule.Private:
			lose(policy.BoundFiles, path+" cannot be private; TMPDIR and HOME name a directory of the run's own instead", noMounts, "leave it out of Files.Private", false)
		case pathrule.CopyOnWrite:
			lose(policy.BoundFiles, path+" cannot be written", noMounts, "name it in Files.Read or Files.Write", false)
		case pathrule.Make:
			lose(policy.BoundFiles, path+" cannot be made; what belongs in HOME is in the run's own", noMounts, "leave it out of Files.Make", false)
		}
	}
	for _, dir := range m.Policy.Files.MayShare {
		lose(policy.BoundFiles, dir+" is shared: what other programs keep there can be read and changed", noMounts, "leave it out of Files.MayShare", false)
	}
}

// Holdings is what a profile promises of each bound, and what of it is lost
// on macOS.
func (m Profile) Holdings() (holdings []plan.Holding) {
	p, lost := m.Policy, map[policy.Bound][]plan.Loss{}
	open := func(b policy.Bound) bool { return slices.Contains(p.Open, b) }
	lose := func(b policy.Bound, what, why, remedy string, absent bool) {
		if !open(b) {
			lost[b] = append(lost[b], plan.Loss{What: what, Why: why, Remedy: remedy, Absent: absent})
		}
	}
	m.loseEntries(lose)
	if p.Files.Protect.NoNewRepositories {
		lose(policy.BoundFiles, "git directories with another name than .git can be made", "macOS: a profile's rules know paths, not what a directory holds", "leave Protect.NoNewRepositories false", false)
	}
	if p.Files.Decide != nil {
		lose(policy.BoundFiles, "Files.Decide is not asked", "macOS: no process can be asked about an open", "leave Files.Decide out", false)
	}
	lose(policy.BoundFiles, "metadata of all files can be read", "macOS: programs ask for that of every directory above theirs", "none", false)
	if slices.Contains(p.Files.ProtectedPatterns(), ".git") {
		lose(policy.BoundFiles, "a git directory is known by the name .git alone, and inside it only the names that git is known to obey are closed",
			"macOS: a profile's rules know paths, not what a directory holds", "none", false)
	}
	lose(policy.BoundProcesses, "other processes can be seen, and what leaves the process group outlives the run", "macOS has no pid namespaces", "none", false)
	if !p.Syscalls.IsOff() {
		lose(policy.BoundSyscalls, "system calls are not bounded", "macOS has no seccomp", "seccomp.Off(), or open the bound", true)
	}
	by := map[policy.Bound][]plan.Mechanism{
		policy.BoundFiles: {plan.Seatbelt}, policy.BoundNetwork: {plan.Seatbelt}, policy.BoundProcesses: {plan.Seatbelt, plan.ProcessGroup}, policy.BoundPrivileges: {plan.Seatbelt},
		policy.BoundResources: {plan.Rlimits}, policy.BoundEnvironment: {plan.EnvFilter}, policy.BoundTime: {plan.Deadline},
	}
	if p.Limits.WallClock == 0 {
		by[policy.BoundTime] = nil
	}
	if p.Network.Host {
		by[policy.BoundNetwork] = nil
	}
	if w := NetConfig(p.Network); w.Proxied || w.SSHAgent {
		by[policy.BoundNetwork] = append(by[policy.BoundNetwork], plan.EgressProxy)
	}
	if m.trustsSystem() {
		lose(policy.BoundNetwork, "trustd fetches what a certificate names that a tool has it check, past the proxies", "macOS: programs let a service check certificates", "take network out of May", false)
	}
	notes := map[policy.Bound][]string{policy.BoundNetwork: m.networkNotes()}
	for _, b := range plan.Bounds() {
		h := plan.Holding{Bound: b, Lost: lost[b], Notes: notes[b]}
		if !open(b) {
			h.By = by[b]
		}
		holdings = append(holdings, h)
	}
	return holdings
}
