package sandbox

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/seatbelt/emit"
	"github.com/holdfast-dev/holdfast/internal/verdict"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestTheStagesArgumentsComeBackAsTheyWere(t *testing.T) {
	limits := []rlimit.Setting{{Resource: rlimit.Core}, {Resource: rlimit.NoFile, Soft: 10, Hard: rlimit.Unlimited}}
	argv := profileArgs(sandboxExec, emit.Emission{Profile: "(version 1)\n", Params: []emit.Param{{Name: "PATH0", Value: "/a b\n\"c\"=d"}}}, "/bin/echo", []string{"-n", "", "--", "x,y:z"})
	if want := []string{sandboxExec, "-p", "(version 1)\n", "-D", "PATH0=/a b\n\"c\"=d", "--", "/bin/echo", "-n", "", "--", "x,y:z"}; !slices.Equal(argv, want) {
		t.Errorf("%q", argv)
	}
	for _, l := range [][]rlimit.Setting{limits, nil} {
		pipe, gotLimits, gotArgv, err := parseStage(stageArgs(7, l, argv))
		if err != nil || pipe != 7 || !slices.Equal(gotLimits, l) || !slices.Equal(gotArgv, argv) {
			t.Errorf("%d %v %q %v", pipe, gotLimits, gotArgv, err)
		}
	}
	for _, args := range [][]string{
		nil, {stageWord}, {stageWord, "3", ""}, {"sh", "3", "", "/bin/sh"}, {stageWord, "x", "", "/bin/sh"}, {stageWord, "2", "", "/bin/sh"},
		{stageWord, "3", "1:2", "/bin/sh"}, {stageWord, "3", "99:2:3", "/bin/sh"}, {stageWord, "3", "a:b:c", "/bin/sh"}, {stageWord, "3", "-1:2:3", "/bin/sh"},
	} {
		if _, _, _, err := parseStage(args); err == nil {
			t.Errorf("%q is taken", args)
		}
	}
}

// TestATrialSaysWhatSandboxExecMadeOfTheProfile: the words are those that others
// have seen; see docs/seatbelt-on-a-mac.md.
func TestATrialSaysWhatSandboxExecMadeOfTheProfile(t *testing.T) {
	var unsupported *UnsupportedError
	var start *StartError
	for _, test := range []struct {
		name   string
		status int
		stderr string
		want   trial
		as     any
	}{
		{"a program that ran", 0, "", applied, nil},
		{"a program that the profile does not let be executed", 71, "sandbox-exec: execvp() of '/usr/bin/true' failed: Operation not permitted\n", applied, nil},
		{"a sandbox in a sandbox", 71, "sandbox-exec: sandbox_apply: Operation not permitted\n", nested, &unsupported},
		{"a profile with a mistake", 65, "sandbox-exec: unbound variable: setenv at <input string>, line 5\n", refusedProfile, &start},
		{"a loader that was starved", 134, "", unclear, &start},
		{"a status that says nothing", 71, "", unclear, &start},
	} {
		got := judgeTrial(test.status, []byte(test.stderr))
		err := got.err(test.status, []byte(test.stderr))
		if got != test.want || (err == nil) != (test.as == nil) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
		if test.as != nil && !errors.As(err, test.as) {
			t.Errorf("%s: %T %v", test.name, err, err)
		}
		if err != nil && test.stderr != "" && !strings.Contains(err.Error(), strings.TrimSpace(test.stderr)) {
			t.Errorf("%s: the error lacks what was said: %v", test.name, err)
		}
	}
	if !errors.Is(nested.err(71, nil), errors.ErrUnsupported) {
		t.Error("a sandbox in a sandbox is not unsupported")
	}
}

func TestDenialsAreReadFromTheLogByTheirTag(t *testing.T) {
	const tag = "holdfast-0123456789abcdef"
	text := strings.Join([]string{
		`Filtering the log data using "sender == \"Sandbox\""`,
		`{"timestamp":"2026-11-21 16:00:00.123456-0800","eventMessage":"Sandbox: cat(812) deny(1) file-read-data \/private\/etc\/master.passwd\nholdfast-0123456789abcdef"}`,
		`{"timestamp":"2026-11-21 16:00:00.123457-0800","eventMessage":"3 duplicate reports for Sandbox: cat(812) deny(1) file-read-data \/private\/etc\/master.passwd\nholdfast-0123456789abcdef"}`,
		`{"timestamp":"2026-11-21 16:00:01.000000-0800","eventMessage":"Sandbox: Google Chrome He(9) deny(1) mach-lookup com.apple.coreservices.launchservicesd holdfast-0123456789abcdef"}`,
		`{"timestamp":"2026-11-21 16:00:02.000000-0800","eventMessage":"Sandbox: sh(10) deny(1) process-fork\nholdfast-0123456789abcdef"}`,
		`{"timestamp":"2026-11-21 16:00:03.000000-0800","eventMessage":"Sandbox: sh(10) deny(1) file-write-create /ws/a\nb\nholdfast-0123456789abcdef"}`,
		`{"timestamp":"2026-11-21 16:00:04.000000-0800","eventMessage":"Sandbox: sh(10) deny(1) file-write-create /ws/other\nholdfast-ffffffffffffffff"}`,
		`{"timestamp":"2026-11-21 16:00:05.000000-0800","eventMessage":"holdfast-0123456789abcdef"}`,
		`{"eventMessage":7}`, `{`, ``,
	}, "\n")
	at := time.Date(2026, 11, 21, 16, 0, 0, 123456000, time.FixedZone("", -8*3600))
	want := []Denial{
		{at, "cat", 812, "file-read-data", "/private/etc/master.passwd", 4},
		{at.Add(876544 * time.Microsecond), "Google Chrome He", 9, "mach-lookup", "com.apple.coreservices.launchservicesd", 1},
		{at.Add(1876544 * time.Microsecond), "sh", 10, "process-fork", "", 1},
		{at.Add(2876544 * time.Microsecond), "sh", 10, "file-write-create", "/ws/a\\nb", 1},
	}
	got := parseDenials([]byte(text), tag)
	for i := range got {
		if i < len(want) && got[i].Time.Equal(want[i].Time) {
			got[i].Time = want[i].Time
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if got := parseDenials([]byte(text), ""); got != nil {
		t.Errorf("an empty tag finds %v", got)
	}
	if p := logPredicate(tag); p != `sender == "Sandbox" AND eventMessage ENDSWITH "holdfast-0123456789abcdef"` {
		t.Error(p)
	}
	if args := logArgs(tag, at); args[0] != "show" || !slices.Contains(args, "2026-11-21 15:59:59") {
		t.Errorf("%q", args)
	}
}

// TestAReportFromMacOSClaimsNoMoreThanIsKnown: a bound with a loss is never held,
// one without a mechanism is absent, and before the start all is a promise.
func TestAReportFromMacOSClaimsNoMoreThanIsKnown(t *testing.T) {
	p := Policy{
		Files: Files{Read: []string{"/usr"}, Write: []string{"/ws"}, Private: []string{"/tmp"}, CopyOnWrite: []string{"/cache"}, Make: []policy.File{{Path: "/tmp/f"}}},
		Open:  []Bound{policy.BoundPrivileges},
	}
	m, err := verdict.New(p)
	if err != nil {
		t.Fatal(err)
	}
	states := func(started bool) map[Bound]State {
		out := map[Bound]State{}
		for _, h := range (darwin.Profile{Evaluator: m}).Holdings() {
			open := slices.Contains(p.Open, h.Bound) || h.Bound == policy.BoundTime
			line := judgeProfile(h, open, started, func(mechanism string) string { return profileEvidence(mechanism, nil, 3, 0, "") })
			out[h.Bound] = line.State
			for _, r := range line.Mechanisms {
				if r.Held != started || started && r.Evidence == "" {
					t.Errorf("%s: %+v", h.Bound, r)
				}
			}
		}
		return out
	}
	want := map[Bound]State{
		policy.BoundFiles: Weaker, policy.BoundNetwork: Held, policy.BoundProcesses: Weaker, policy.BoundSyscalls: Absent, policy.BoundPrivileges: Open, policy.BoundResources: Held, policy.BoundEnvironment: Held, policy.BoundTime: Open,
	}
	if got := states(true); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	for b, s := range states(false) {
		if s != Promised && s != Absent && s != Open {
			t.Errorf("%s is %s before the start", b, s)
		}
	}
	var lost []string
	for _, h := range (darwin.Profile{Evaluator: m}).Holdings() {
		if h.Bound == policy.BoundFiles {
			for _, l := range h.Lost {
				lost = append(lost, l.What)
			}
		}
	}
	if got := strings.Join(lost, "; "); !strings.Contains(got, "/cache cannot be written; /tmp cannot be private") || !strings.Contains(got, "/tmp/f cannot be made") {
		t.Error(got)
	}
	for _, mechanism := range []plan.Mechanism{plan.Seatbelt, plan.ProcessGroup, plan.Rlimits, plan.EnvFilter, plan.Deadline, plan.EgressProxy} {
		if profileEvidence(string(mechanism), nil, -1, 1, "HTTP") == "" {
			t.Errorf("%s has no evidence", mechanism)
		}
	}
}
