package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// This file is the pure half of the engine for macOS: what is executed, and what
// the answers mean. Its words are tested on every system.
//
//	harness --fork+exec--> stage (the harness's own file) --exec--> sandbox-exec --exec--> tool
//	   |                     | sets limits, says over a pipe             | applies the
//	   | policy -> profile   | what fails, executes                      | profile to itself
//
// The pipe closes by itself when sandbox-exec has been executed. Whether it has
// applied the profile and executed the tool is not told: its own failures are the
// exit statuses 65 and 71, which a tool may have as well. So the profile is tried
// on /usr/bin/true first, by New, and once more if a run ends with one of the two.

// sandboxExec is what applies a profile. No PATH is asked for it.
const sandboxExec = "/usr/bin/sandbox-exec"

// stageWord is the stage's argv[0].
const stageWord = "holdfast-seatbelt-stage"

// Exit statuses of sandbox-exec (sysexits.h).
const (
	exitProfile = 65 // EX_DATAERR: it is no profile
	exitSystem  = 71 // EX_OSERR: it cannot be applied, or the tool not be executed
)

// stageArgs is the stage's argv: the pipe's descriptor, the limits, and what to
// execute.
func stageArgs(pipe int, limits []rlimit.Setting, argv []string) []string {
	var words []string
	for _, s := range limits {
		words = append(words, fmt.Sprintf("%d:%d:%d", s.Resource, s.Soft, s.Hard))
	}
	return append([]string{stageWord, strconv.Itoa(pipe), strings.Join(words, ",")}, argv...)
}

// parseStage takes stageArgs apart.
func parseStage(args []string) (pipe int, limits []rlimit.Setting, argv []string, err error) {
	if len(args) < 4 || args[0] != stageWord {
		return 0, nil, nil, fmt.Errorf("sandbox: no stage's arguments")
	}
	if pipe, err = strconv.Atoi(args[1]); err != nil || pipe < 3 {
		return 0, nil, nil, fmt.Errorf("sandbox: stage: no descriptor: %q", args[1])
	}
	for word := range strings.SplitSeq(args[2], ",") {
		if word == "" {
			continue
		}
		var s rlimit.Setting
		if n, err := fmt.Sscanf(word, "%d:%d:%d", &s.Resource, &s.Soft, &s.Hard); n != 3 || err != nil || s.Resource < 0 || int(s.Resource) >= rlimit.NumResources {
			return 0, nil, nil, fmt.Errorf("sandbox: stage: no limit: %q", word)
		}
		limits = append(limits, s)
	}
	return pipe, limits, args[3:], nil
}

// profileArgs is sandbox-exec's argv for a tool. The tool's own argv[0] is its
// path: sandbox-exec has no other.
func profileArgs(program string, e emit.Emission, tool string, args []string) []string {
	argv := append([]string{program, "-p", e.Profile}, e.Args()...)
	return append(append(argv, "--", tool), args...)
}

// A trial is what sandbox-exec has made of a profile.
type trial uint8

// The outcomes of a trial.
const (
	applied        trial = iota // the profile is in force, whatever became of the program
	nested                      // the harness is in a sandbox itself
	refusedProfile              // the profile is refused
	unclear
)

// judgeTrial reads the exit status and the error output of a trial. A program that
// the profile does not let be executed shows that it is applied.
func judgeTrial(status int, stderr []byte) trial {
	switch {
	case status == 0:
		return applied
	case status == exitSystem && bytes.Contains(stderr, []byte("sandbox_apply")):
		return nested
	case status == exitSystem && bytes.Contains(stderr, []byte("execvp() of")):
		return applied
	case status == exitProfile:
		return refusedProfile
	}
	return unclear
}

// err is a trial's outcome as New's or Start's error.
func (t trial) err(status int, stderr []byte) error {
	said := strings.TrimSpace(errtext.Shorten(string(stderr)))
	switch t {
	case applied:
		return nil
	case nested:
		return &UnsupportedError{Bound: policy.BoundFiles, What: "no profile can be applied", Reason: "the harness runs inside a sandbox itself, and macOS does not nest them: " + said,
			Remedy: "start the harness outside of it"}
	case refusedProfile:
		return &StartError{Step: "apply the profile", In: "stage", Err: fmt.Errorf("sandbox-exec refuses it: %s", said)}
	}
	return &StartError{Step: "apply the profile", In: "stage", Err: fmt.Errorf("sandbox-exec ended with status %d: %s", status, said)}
}

// profileEvidence is what can be said of a mechanism on macOS. Nothing is read
// back from the tool: there is no call for it without the system's C library.
func profileEvidence(mechanism string, settings []rlimit.Setting, withheld int, deadline int64, proxied string) string {
	switch mechanism {
	case "seatbelt":
		return "sandbox-exec, which executes nothing unless the profile is applied; the same profile was tried before; not read back from the tool"
	case "egress proxy":
		if proxied == "" {
			return ""
		}
		if !strings.Contains(proxied, runner.ProxyNames[0]) { // an agent alone
			return proxied
		}
		return proxied + "; the proxies ask for the run's key, and the profile lets nothing else be connected to, which is inferred from it and not read back from the tool"
	case "process group":
		return "killed when the tool ends; a process that leaves it is not"
	case "rlimits":
		return fmt.Sprintf("%d limits set before sandbox-exec; not read back", len(settings))
	case "environment filter":
		if withheld < 0 {
			return "the command's own Env as it was given (Env.AsGiven)"
		}
		return fmt.Sprintf("%d variables withheld", withheld)
	case "deadline":
		return fmt.Sprintf("%d ms, by the harness's clock", deadline)
	}
	return ""
}

// judgeProfile makes the line of one bound. A run that has been started is one for
// which sandbox-exec has been executed.
func judgeProfile(h plan.Holding, open, started bool, evidence func(mechanism string) string) BoundReport {
	line := BoundReport{Bound: h.Bound, State: Promised, Notes: slices.Clone(h.Notes)}
	held := 0
	absent := len(h.By) == 0
	for _, m := range h.By {
		r := MechanismReport{Mechanism: string(m), Held: started}
		if started {
			r.Evidence = evidence(string(m))
			r.Held = r.Evidence != ""
		}
		if r.Held {
			held++
		}
		line.Mechanisms = append(line.Mechanisms, r)
	}
	for _, l := range h.Lost {
		line.Lost = append(line.Lost, fmt.Sprintf("%s (%s; remedy: %s)", l.What, l.Why, l.Remedy))
		absent = absent || l.Absent
	}
	switch {
	case open:
		line.State = Open
	case absent:
		line.State = Absent
	case !started:
	case len(h.Lost) > 0 || held < len(h.By):
		line.State = Weaker
	default:
		line.State = Held
	}
	return line
}
