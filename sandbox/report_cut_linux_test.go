package sandbox

import (
	"context"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/runner"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// said is the report of a run whose stage has sent these messages and died.
func said(t *testing.T, p plan.Plan, messages ...wire.Message) *Report {
	t.Helper()
	control, err := stage.NewControl()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(context.Background(), &Sandbox{ready: &runner.Sandbox{Plan: p}}, nil)
	r.newExecCmd()
	r.tool = func() string { return "tool" }
	r.control = control
	for _, m := range messages {
		if _, err := control.ChildEnd().Write((*[unsafe.Sizeof(m)]byte)(unsafe.Pointer(&m))[:]); err != nil {
			t.Fatal(err)
		}
	}
	r.watch()
	<-r.empty
	return r.report()
}

// TestARunThatWasCutShortIsNotSaidToHaveNoBounds: what nobody has read is
// neither held nor absent.
func TestARunThatWasCutShortIsNotSaidToHaveNoBounds(t *testing.T) {
	p := plan.Plan{Holdings: []plan.Holding{
		{Bound: policy.BoundFiles, By: []plan.Mechanism{plan.MountNamespace, plan.Landlock}},
		{Bound: policy.BoundEnvironment, By: []plan.Mechanism{plan.EnvFilter}},
		{Bound: policy.BoundNetwork, Lost: []plan.Loss{{What: "the network is reachable", Absent: true}}},
	}}
	held := wire.Message{Kind: wire.MsgHeld}
	empty := wire.Message{Kind: wire.MsgEvidence} // init has sent it and could read nothing
	failed := wire.Message{Kind: wire.MsgFailed, Where: wire.InInit, Errno: 1}
	tests := []struct {
		name     string
		messages []wire.Message
		status   string
		files    State
		environ  State
	}{
		{"killed before it had said anything", nil, "ended, before its evidence was read", Unread, Unread},
		{"killed after it had said that the tool was held", []wire.Message{held}, "ended, before its evidence was read", Unread, Unread},
		{"the evidence shows nothing", []wire.Message{held, empty}, "ended", Absent, Held},
		{"the tool was not executed", []wire.Message{failed}, "not started", Promised, Promised},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := said(t, p, test.messages...)
			if r.Status != test.status || r.Held() {
				t.Errorf("status %q, want %q; held: %v", r.Status, test.status, r.Held())
			}
			for b, want := range map[Bound]State{policy.BoundFiles: test.files, policy.BoundEnvironment: test.environ, policy.BoundNetwork: Absent} {
				if got := r.Bound(b).State; got != want {
					t.Errorf("%s is %s, want %s", b, got, want)
				}
			}
			if unread := test.files == Unread; unread && (strings.Contains(r.String(), "NOT") || !strings.Contains(r.String(), "landlock (not read)")) {
				t.Errorf("it prints\n%s", r)
			}
		})
	}
}
