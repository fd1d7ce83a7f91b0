package sandbox

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/compile"
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/presets"
	"github.com/holdfast-dev/holdfast/internal/resolve"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// Probe returns the facts about this host.
func Probe() Host { return host.Read() }

var probed, glance = Probe, Probe

// compile resolves the policy on this host, makes its profile, and tries that.
func (s *Sandbox) compile() (err error) {
	if s.ready.Policy.Root != nil {
		return &UnsupportedError{Bound: policy.BoundFiles, What: "a layout", Reason: "macOS has no mount namespaces", Remedy: "use Files"}
	}
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
	s.ready.Plan.Holdings, s.ready.Plan.DeadlineMS = m.Holdings(), compile.Milliseconds(s.ready.Policy.Limits.WallClock)
	inherited, err := inheritedLimits()
	if err != nil {
		return err
	}
	if !slices.Contains(s.ready.Policy.Open, policy.BoundResources) {
		asked := s.ready.Policy.Limits.Rlimits.Or(rlimit.Defaults(inherited, rlimit.Unlimited))
		if s.ready.Limits, err = asked.Resolve(inherited); err != nil {
			return policy.RlimitsError(err, "cannot be set by this harness", "lower it, use rlimit.Inherited, or raise the harness's own limit")
		}
		for _, l := range s.ready.Limits {
			if _, ok := kernelResources[l.Resource]; !ok {
				s.loseLimit(l)
			}
		}
		s.ready.Limits = slices.DeleteFunc(s.ready.Limits, func(l rlimit.Setting) bool { _, ok := kernelResources[l.Resource]; return !ok })
	}
	if err := s.refuse(); err != nil {
		return err
	}
	return s.try(s.ready.Limits)
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

// emission is the profile of one run.
func (s *Sandbox) emission(run darwin.Run) (emit.Emission, error) {
	e, err := emit.Emit(s.ready.Profile.Grants(run))
	if bad := (*emit.Error)(nil); errors.As(err, &bad) {
		return e, &PolicyError{Field: bad.Field, Value: bad.Value, Problem: bad.Problem, Remedy: "no profile can say it: use another name", Err: err}
	}
	return e, err
}

// try has the profile applied to a program that does nothing.
func (s *Sandbox) try(limits []rlimit.Setting) error {
	e, err := s.emission(darwin.Run{Tag: newTag(), Proxies: darwin.StandInPorts})
	if err != nil {
		return err
	}
	argv := profileArgs(sandboxExec, e, "/usr/bin/true", nil)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = []string{}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return &UnsupportedError{Bound: policy.BoundFiles, What: "no profile can be applied", Reason: err.Error(), Remedy: "run on a macOS that has " + sandboxExec}
	}
	status := cmd.ProcessState.ExitCode()
	return judgeTrial(status, stderr.Bytes()).err(status, stderr.Bytes())
}

// newTag is what one run's denials are found by.
func newTag() string {
	var b [8]byte
	rand.Read(b[:])
	return "holdfast-" + hex.EncodeToString(b[:])
}

// explain prints what sandbox-exec is given.
func (s *Sandbox) explain() string {
	e, err := s.emission(darwin.Run{Tag: "holdfast-TAG", Proxies: darwin.StandInPorts})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, l := range s.ready.Limits {
		b.WriteString("stage  limit " + l.String() + "\n")
	}
	b.WriteString("stage  execute " + sandboxExec + " with this profile and these parameters\n" + e.Profile)
	for _, p := range e.Params {
		b.WriteString("-D " + p.Name + "=" + p.Value + "\n")
	}
	return b.String() + explainNetwork(s.ready.Policy.Network, s.ready.NetConfig)
}

// executable is the harness's own file, which is the stage's too.
var executable = sync.OnceValues(os.Executable)
