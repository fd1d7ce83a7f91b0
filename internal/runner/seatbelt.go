package runner

import (
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// This file is the pure half of a run on macOS; its words are tested on every system.

// trialError is a trial's outcome as New's or Start's error.
func trialError(t darwin.Trial, status int, stderr []byte) error {
	said := strings.TrimSpace(errtext.Shorten(string(stderr)))
	switch t {
	case darwin.Applied:
		return nil
	case darwin.Nested:
		return &policy.UnsupportedError{Bound: policy.BoundFiles, What: "no profile can be applied", Reason: "the harness runs inside a sandbox itself, and macOS does not nest them: " + said,
			Remedy: "start the harness outside of it"}
	case darwin.Refused:
		return &StartError{Step: "apply the profile", In: "stage", Err: fmt.Errorf("sandbox-exec refuses it: %s", said)}
	}
	return &StartError{Step: "apply the profile", In: "stage", Err: fmt.Errorf("sandbox-exec ended with status %d: %s", status, said)}
}

// ProfileEvidence is what can be said of a run on macOS for which sandbox-exec has been executed. Nothing is
// read back from the tool: there is no call for it without the system's C library. settings are the limits
// that were set, withheld the number of variables that were not passed (-1: the caller chose them), deadline
// milliseconds, and proxied what the harness serves of the network.
func ProfileEvidence(settings []rlimit.Setting, withheld int, deadline int64, proxied string) *Evidence {
	return &Evidence{profile: true, settings: settings, withheld: withheld, deadline: deadline, proxied: proxied}
}

// inferred is what can be said of a mechanism on macOS.
func (e *Evidence) inferred(m plan.Mechanism) string {
	switch m {
	case plan.Seatbelt:
		return "sandbox-exec, which executes nothing unless the profile is applied; the same profile was tried before; not read back from the tool"
	case plan.EgressProxy:
		if e.proxied == "" {
			return ""
		}
		if !strings.Contains(e.proxied, ProxyNames[0]) { // an agent alone
			return e.proxied
		}
		return e.proxied + "; the proxies ask for the run's key, and the profile lets nothing else be connected to, which is inferred from it and not read back from the tool"
	case plan.ProcessGroup:
		return "killed when the tool ends; a process that leaves it is not"
	case plan.Rlimits:
		return fmt.Sprintf("%d limits set before sandbox-exec; not read back", len(e.settings))
	case plan.EnvFilter:
		if e.withheld < 0 {
			return "the command's own Env as it was given (Env.AsGiven)"
		}
		return fmt.Sprintf("%d variables withheld", e.withheld)
	case plan.Deadline:
		return fmt.Sprintf("%d ms, by the harness's clock", e.deadline)
	}
	return ""
}
