package runner

import (
	"context"
	"os"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
)

// said is the account of a run whose stage has sent these messages and died.
func said(t *testing.T, messages ...wire.Message) Account {
	t.Helper()
	control, err := stage.NewControl()
	if err != nil {
		t.Fatal(err)
	}
	r := New(context.Background(), &Sandbox{}, nil, func() Tool { return Tool{Path: "tool"} })
	r.Command()
	r.control = control
	if r.cmd.Process, err = os.FindProcess(os.Getpid()); err != nil { // for the stage, which has not ended
		t.Fatal(err)
	}
	for _, m := range messages {
		if _, err := control.Child.Write((*[unsafe.Sizeof(m)]byte)(unsafe.Pointer(&m))[:]); err != nil {
			t.Fatal(err)
		}
	}
	r.watch()
	<-r.empty
	return r.Account()
}

// TestTheAccountOfARunThatWasCutShort: what was not read shows neither that a mechanism holds, nor that
// it does not.
func TestTheAccountOfARunThatWasCutShort(t *testing.T) {
	held := wire.Message{Kind: wire.MsgStarted}
	empty := wire.Message{Kind: wire.MsgEvidence} // init has sent it and could read nothing
	failed := wire.Message{Kind: wire.MsgFailed, Where: wire.InInit, Errno: 1}
	for _, test := range []struct {
		name             string
		messages         []wire.Message
		status           string
		executed, unread bool
	}{
		{"killed before it had said anything", nil, "ended, before its evidence was read", true, true},
		{"killed after it had said that the tool was held", []wire.Message{held}, "ended, before its evidence was read", true, true},
		{"the evidence shows nothing", []wire.Message{held, empty}, "ended", true, false},
		{"the tool was not executed", []wire.Message{failed}, "not started", false, false},
	} {
		a := said(t, test.messages...)
		if e := a.Evidence; a.Status != test.status || (e != nil) != test.executed || e != nil && e.Unread != test.unread {
			t.Errorf("%s: status %q, want %q; evidence %+v", test.name, a.Status, test.status, e)
		}
		if a.Evidence == nil {
			continue
		}
		if shown, _ := a.Evidence.Holds(plan.Landlock); shown {
			t.Errorf("%s: Landlock is shown", test.name)
		}
	}
}
