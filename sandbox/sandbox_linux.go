package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/pathrule"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// compile resolves the policy on this host and makes the plan and its first
// template, so that whatever is wrong is known before a command is made. What it
// finds on the host is in the input; what follows from that is remembered.
func (s *Sandbox) compile() (err error) {
	r := s.ready
	sockets := r.Policy.Network.Unix
	if r.Policy.Root != nil {
		sockets = nil // they are entries of their own
	}
	resolve.Share(&r.Policy.Files, s.facts.Namespaces.Yes())
	if r.Kept, err = resolve.Keep(&r.Policy, presets.CheckKept); err != nil {
		return err
	}
	runner.Lend(r.Policy.Files)
	links := resolve.GrantWorktrees(&r.Policy, presets.CheckWorkspace, presets.AlwaysHidden)
	if r.Tree, err = resolve.Files(r.Policy.Files, presets.CheckWorkspace, sockets...); err != nil {
		return err
	}
	resolve.NotePath(&r.Policy, r.Tree)
	in := compile.Input{Policy: r.Policy, Tree: r.Tree, Facts: s.facts}
	for _, l := range links {
		if _, ok := r.Tree.Find(l.Repository); !ok {
			return &PolicyError{Field: "Files.Worktrees", Value: l.Written, Problem: "the repository was replaced while the sandbox was made", Remedy: "make it again"}
		}
	}
	if in.Mounts, err = resolve.Root(r.Policy); err != nil {
		return err
	}
	if s.obeyed, err = resolve.ObeyedByGit(r.Policy, r.Tree, in.Mounts, links); err != nil {
		return err
	}
	in.Foreign, in.Obeyed = resolve.Foreign(r.Tree), s.obeyed
	if err := fillNetwork(r, &in, s.sshConfigs); err != nil {
		return err
	}
	// The plan has nothing of these, and variables may be secret. A sandbox that differs in them alone is remembered.
	in.Policy.Env, in.Policy.Dir, in.Policy.Notes = Env{}, "", nil
	if in.Arch, err = seccomp.Native(); err != nil {
		return err
	}
	if in.Rlimits, err = rlimit.Current(); err != nil {
		return fmt.Errorf("sandbox: read the present limits: %w", err)
	}
	in.Running = rlimit.Unlimited
	if !s.facts.Namespaces.Yes() {
		in.Running = host.Threads(s.facts.UID)
	}
	in.Threads = launch.HasThreads()
	in.Inotify = [2]int{setting("fs/inotify/max_user_instances"), setting("fs/inotify/max_user_watches")}
	in.Devices = resolve.PresentDevices()
	if !in.Namespaced() {
		in.List, in.Terminals = listDirectory, resolve.Terminals()
	} else if r.Policy.Root == nil && (s.facts.Landlock.Value < compile.UnixSince || r.Policy.Nested) {
		in.Sockets = resolve.HostSockets(r.Tree)
	}
	c, err := memory.compile(in)
	if err != nil {
		return err
	}
	r.Plan, r.Templates, r.NetConfig = c.plan, c.templates, in.NetConfig
	_, err = r.Template(stage.Identity{UID: os.Geteuid(), GID: os.Getegid()}, false)
	return err
}

func (s *Sandbox) explain() string {
	text, said := s.ready.Plan.String()+explainNetwork(s.ready.Policy.Network, s.ready.NetConfig), errtext.Repeated{}
	for _, h := range s.ready.Plan.Holdings {
		for _, l := range h.Lost {
			text += "not held: " + string(h.Bound) + ": " + said.Shorten(l.String()) + "\n"
		}
		for _, n := range h.Notes {
			text += "note: " + n + "\n"
		}
	}
	for _, n := range s.ready.Policy.Notes {
		if strings.HasPrefix(n.At, "Files.") {
			text += "note: " + n.String() + "\n"
		}
	}
	return text
}

// dropForTest is a mechanism whose steps are not carried out, behind the
// report's back, which keeps the plan that was promised: a test can see it notice.
var dropForTest plan.Mechanism

// listDirectory returns what dir holds.
func listDirectory(dir string) []resolve.Entry {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []resolve.Entry
	for _, n := range names {
		if n.Type()&os.ModeSymlink == 0 { // a link's target has a rule, or it is not granted
			list = append(list, resolve.Entry{Path: pathrule.Join(dir, n.Name()), Kind: pathrule.Read, Dir: n.IsDir()})
		}
	}
	return list
}

// setting reads a number from /proc/sys; 0: it could not.
func setting(name string) int {
	text, _ := os.ReadFile("/proc/sys/" + name)
	n, _ := strconv.Atoi(string(bytes.TrimSpace(text)))
	return n
}

// known is what was found out of the host, once: not for want of descriptors, processes or memory, which a tool can bring about.
type known struct {
	sync.Mutex
	find  func() Host
	facts *Host
}

func (k *known) get() Host {
	k.Lock()
	defer k.Unlock()
	if k.facts != nil {
		return *k.facts
	}
	f := k.find()
	if f.Shortage == nil {
		k.facts = &f
	}
	return f
}

// glance is what can be known of the host without making namespaces. A layout
// cannot be held without them in any case: its commands' Start finds out.
var glance = (&known{find: host.Read}).get

var probed = (&known{find: func() Host { return stage.Try(host.Read()) }}).get

var probedAll = (&known{find: func() Host { return stage.TryTUN(probed()) }}).get

// Probe returns the facts about this host. They are found out once for each
// process: namespaces are really made, and thrown away.
func Probe() Host { return probedAll() }
