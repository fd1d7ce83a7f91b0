package runner

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestATrialSaysWhatSandboxExecMadeOfTheProfile: the words are those that others
// have seen; see docs/seatbelt-on-a-mac.md.
func TestATrialSaysWhatSandboxExecMadeOfTheProfile(t *testing.T) {
	var unsupported *policy.UnsupportedError
	var start *StartError
	for _, test := range []struct {
		name   string
		status int
		stderr string
		want   darwin.Trial
		as     any
	}{
		{"a program that ran", 0, "", darwin.Applied, nil},
		{"a program that the profile does not let be executed", 71, "sandbox-exec: execvp() of '/usr/bin/true' failed: Operation not permitted\n", darwin.Applied, nil},
		{"a sandbox in a sandbox", 71, "sandbox-exec: sandbox_apply: Operation not permitted\n", darwin.Nested, &unsupported},
		{"a profile with a mistake", 65, "sandbox-exec: unbound variable: setenv at <input string>, line 5\n", darwin.Refused, &start},
		{"a loader that was starved", 134, "", darwin.Unclear, &start},
		{"a status that says nothing", 71, "", darwin.Unclear, &start},
	} {
		got := darwin.JudgeTrial(test.status, []byte(test.stderr))
		err := trialError(got, test.status, []byte(test.stderr))
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
	if !errors.Is(trialError(darwin.Nested, 71, nil), errors.ErrUnsupported) {
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
