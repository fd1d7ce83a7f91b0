package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Probe returns the facts about this host.
func Probe() Host { return host.Read() }

var probed, glance = Probe, Probe

// compile resolves the policy on this host, makes its profile, and tries that.
func (s *Sandbox) compile() (err error) {
	if s.ready.Policy.Nested {
		return &UnsupportedError{Bound: policy.BoundProcesses, What: "no sandbox can be built inside", Reason: "macOS does not nest sandboxes", Remedy: "leave Nested false"}
	}
	if s.ready.Policy.Root != nil {
		return &UnsupportedError{Bound: policy.BoundFiles, What: "a layout", Reason: "macOS has no mount namespaces", Remedy: "use Files"}
	}
	resolve.Share(&s.ready.Policy.Files, false)
	if s.ready.Kept, err = resolve.Keep(&s.ready.Policy, presets.CheckKept); err != nil {
		return err
	}
	runner.Lend(s.ready.Policy.Files)
	if s.ready.Tree, err = resolve.Files(s.ready.Policy.Files, presets.CheckWorkspace, s.ready.Policy.Network.Unix...); err != nil {
		return err
	}
	m := darwin.Profile{Evaluator: s.evaluator()}
	if err := m.LacksNetwork(); err != nil {
		return err
	}
	s.ready.NetConfig = darwin.NetConfig(s.ready.Policy.Network)
	if s.ready.NetConfig.SSHAgent {
		if s.ready.Networks.Outside.SSHAgent, err = resolve.AgentSocket("Network.SSHAgent", os.Getenv("SSH_AUTH_SOCK"), "start an ssh-agent, and the harness with its SSH_AUTH_SOCK"); err != nil {
			return err
		}
	}
	s.ready.Profile = m
	s.ready.Plan.Own = s.ready.NetConfig.HasFiles() && s.ready.NetConfig.Dir == ""
	s.ready.Plan.Holdings, s.ready.Plan.DeadlineMS = m.Holdings(), compile.Milliseconds(s.ready.Policy.Limits.WallClock)
	inherited, err := runner.InheritedLimits()
	if err != nil {
		return err
	}
	if !slices.Contains(s.ready.Policy.Open, policy.BoundResources) {
		asked := s.ready.Policy.Limits.Rlimits.Or(rlimit.Defaults(inherited, rlimit.Unlimited))
		if s.ready.Limits, err = asked.Resolve(inherited); err != nil {
			return policy.RlimitsError(err, "cannot be set by this harness", "lower it, use rlimit.Inherited, or raise the harness's own limit")
		}
		for _, l := range s.ready.Limits {
			if _, ok := runner.KernelResources[l.Resource]; !ok {
				s.loseLimit(l)
			}
		}
		s.ready.Limits = slices.DeleteFunc(s.ready.Limits, func(l rlimit.Setting) bool { _, ok := runner.KernelResources[l.Resource]; return !ok })
	}
	if err := s.refuse(); err != nil {
		return err
	}
	return s.ready.Try()
}

func (s *Sandbox) loseLimit(l rlimit.Setting) {
	for i := range s.ready.Plan.Holdings {
		if h := &s.ready.Plan.Holdings[i]; h.Bound == policy.BoundResources {
			h.Lost = append(h.Lost, plan.Loss{What: l.Resource.String() + " is not limited", Why: "macOS has no such limit", Remedy: "leave it nil"})
		}
	}
}

// refuse turns what is lost and not allowed to be into an error.
func (s *Sandbox) refuse() error {
	return errors.Join(compile.Unheld(s.ready.Policy, s.ready.Plan.Holdings)...)
}

// explain prints what sandbox-exec is given.
func (s *Sandbox) explain() string {
	e, err := s.ready.Emission(darwin.Run{Tag: "holdfast-TAG", Proxies: darwin.StandInPorts})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, l := range s.ready.Limits {
		b.WriteString("stage  limit " + l.String() + "\n")
	}
	b.WriteString("stage  execute " + darwin.SandboxExec + " with this profile and these parameters\n" + e.Profile)
	for _, p := range e.Params {
		b.WriteString("-D " + p.Name + "=" + p.Value + "\n")
	}
	return b.String() + explainNetwork(s.ready.Policy.Network, s.ready.NetConfig)
}
