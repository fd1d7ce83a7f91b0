package darwin

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// What is executed on macOS, and what the answers mean. package runner does it.
//
//	harness --fork+exec--> stage (the harness's own file) --exec--> sandbox-exec --exec--> tool
//	   |                     | sets limits, says over a pipe             | applies the
//	   | policy -> profile   | what fails, executes                      | profile to itself
//
// The pipe closes by itself when sandbox-exec has been executed. Whether it has
// Applied the profile and executed the tool is not told: its own failures are the
// exit statuses 65 and 71, which a tool may have as well. So the profile is tried
// on /usr/bin/true first, by New, and once more if a run ends with one of the two.

// SandboxExec is what applies a profile. No PATH is asked for it.
const SandboxExec = "/usr/bin/sandbox-exec"

// StageWord is the stage's argv[0].
const StageWord = "holdfast-seatbelt-stage"

// Exit statuses of sandbox-exec (sysexits.h).
const (
	ExitProfile = 65 // EX_DATAERR: it is no profile
	ExitSystem  = 71 // EX_OSERR: it cannot be applied, or the tool not be executed
)

// StageArgs is the stage's argv: the pipe's descriptor, the limits, and what to
// execute.
func StageArgs(pipe int, limits []rlimit.Setting, argv []string) []string {
	var words []string
	for _, s := range limits {
		words = append(words, fmt.Sprintf("%d:%d:%d", s.Resource, s.Soft, s.Hard))
	}
	return append([]string{StageWord, strconv.Itoa(pipe), strings.Join(words, ",")}, argv...)
}

// ParseStage takes StageArgs apart.
func ParseStage(args []string) (pipe int, limits []rlimit.Setting, argv []string, err error) {
	if len(args) < 4 || args[0] != StageWord {
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

// ProfileArgs is sandbox-exec's argv for a tool. The tool's own argv[0] is its
// path: sandbox-exec has no other.
func ProfileArgs(program string, e emit.Emission, tool string, args []string) []string {
	argv := append([]string{program, "-p", e.Profile}, e.Args()...)
	return append(append(argv, "--", tool), args...)
}

// A Trial is what sandbox-exec has made of a profile.
type Trial uint8

// The outcomes of a trial.
const (
	Applied Trial = iota // the profile is in force, whatever became of the program
	Nested               // the harness is in a sandbox itself
	Refused              // the profile is refused
	Unclear
)

// JudgeTrial reads the exit status and the error output of a trial. A program that
// the profile does not let be executed shows that it is applied.
func JudgeTrial(status int, stderr []byte) Trial {
	switch {
	case status == 0:
		return Applied
	case status == ExitSystem && bytes.Contains(stderr, []byte("sandbox_apply")):
		return Nested
	case status == ExitSystem && bytes.Contains(stderr, []byte("execvp() of")):
		return Applied
	case status == ExitProfile:
		return Refused
	}
	return Unclear
}
