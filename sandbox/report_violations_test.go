package sandbox

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/proxy"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestWhatIsDeniedAgainIsOneLine: a client that tries again must not push what else
// was denied out of the report.
func TestWhatIsDeniedAgainIsOneLine(t *testing.T) {
	r := &Report{}
	deny := func(host string) {
		r.Violations = append(r.Violations, Violation{Time: time.Unix(int64(len(r.Violations)), 0), Protocol: "connect", Host: host, Port: 443, Why: "no", Remedy: "nothing does"})
	}
	for range 20 {
		deny("again.example")
	}
	deny("once.example")
	want := "  denied 20 times: connect again.example:443: no (nothing in the policy allows it)\n  denied: connect once.example:443: no (nothing in the policy allows it)\n"
	if text := r.String(); !strings.HasSuffix(text, want) {
		t.Errorf("%s", text)
	}
	for i := range 20 {
		deny(fmt.Sprintf("%d.example", i))
	}
	deny("19.example")
	if text := r.String(); strings.Count(text, "denied") != mostShown+1 || !strings.HasSuffix(text, "  and 13 more were denied\n") {
		t.Errorf("%s", text)
	}
}

func TestDenialsBeyondTheListAreReportedToo(t *testing.T) {
	r := &Report{Bounds: []BoundReport{{Bound: policy.BoundNetwork}}}
	r.addDenials(runner.Summary{Gateway: proxy.Summary{Violations: make([]proxy.Denied, 100), Beyond: 7}})
	if notes := r.Bounds[0].Notes; len(notes) != 1 || notes[0] != "7 denials more than are listed" || len(r.Violations) != 100 {
		t.Errorf("%q, %d", notes, len(r.Violations))
	}
}

// TestAReportSaysNothingToATerminal, whatever a peer or the tool has called itself: in
// what is printed, and in what the report holds of the network.
func TestAReportSaysNothingToATerminal(t *testing.T) {
	const text = "a\x1b[2J\r\nnetwork held\u009b\u202e"
	r := &Report{Tool: text, Status: text, Denials: []Denial{{Process: text, Operation: text, Target: text}}, Notes: []policy.Note{{Why: text}},
		Bounds:     []BoundReport{{Bound: policy.BoundNetwork, State: Weaker, Lost: []string{text}, Notes: []string{text}, Mechanisms: []MechanismReport{{Mechanism: text, Evidence: text}}}},
		Violations: []Violation{runner.ViolationOf(policy.Connection{Protocol: text, Host: text, Method: text, Path: text, Rule: text, Reason: text}), {Why: text, Host: text}}}
	if v := r.Violations[0]; strings.ContainsAny(v.Protocol+v.Host+v.Method+v.Path+v.Rule+v.Why+v.Remedy, "\x1b\r\n\u009b\u202e") {
		t.Errorf("%+q", v)
	}
	for line := range strings.SplitSeq(r.String(), "\n") {
		if strings.ContainsAny(line, "\x1b\r\u009b\u202e") || strings.HasPrefix(line, "network held") {
			t.Errorf("%q", line)
		}
	}
	plain := Violation{Protocol: "https", Host: "bücher.example", Port: 443, Why: "no entry names it", Remedy: "add it"}
	if want := "https bücher.example:443: no entry names it (to allow it: add it)"; plain.String() != want {
		t.Errorf("%q", plain)
	}
}
