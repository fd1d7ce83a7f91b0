package verdict

import (
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestAnAnswerIsNoGate: what the tool may do with something of the run's own is not allowed to who asks
// about the host's.
func TestAnAnswerIsNoGate(t *testing.T) {
	p := policy.Policy{Files: policy.Files{Read: []string{"/usr"}, Write: []string{"/home/me/ws"}, Private: []string{"/tmp", "/home/me"}, CopyOnWrite: []string{"/home/me/.cache"},
		Make: []policy.File{{Path: "/home/me/.gitconfig"}}}}
	open := policy.Policy{Open: []policy.Bound{policy.BoundFiles}}
	for _, c := range []struct {
		name    string
		p       policy.Policy
		a       Access
		ok      bool // the answer
		private bool
	}{
		{"a key in a private home", p, Access{Op: OpRead, Path: "/home/me/.ssh/id"}, false, true},
		{"a file in a private /tmp", p, Access{Op: OpCreate, Path: "/tmp/x"}, false, true},
		{"the harness's environment", p, Access{Op: OpRead, Path: "/proc/self/environ"}, false, true},
		{"a generated file", p, Access{Op: OpRead, Path: "/home/me/.gitconfig"}, false, true},
		{"a directory that leads to the workspace", p, Access{Op: OpList, Path: "/home"}, false, true},
		{"writing a copy", p, Access{Op: OpWrite, Path: "/home/me/.cache/x"}, false, true},
		{"moving from a private directory", p, Access{Op: OpRename, Path: "/tmp/x", To: "/home/me/ws/x"}, false, true},
		{"moving into a private directory", p, Access{Op: OpRename, Path: "/home/me/ws/x", To: "/tmp/x"}, false, true},
		{"reading a copy", p, Access{Op: OpRead, Path: "/home/me/.cache/x"}, true, false},
		{"the workspace", p, Access{Op: OpWrite, Path: "/home/me/ws/x"}, true, false},
		{"the system", p, Access{Op: OpRead, Path: "/usr/bin/ls"}, true, false},
		{"what is not shown", p, Access{Op: OpRead, Path: "/srv/x"}, false, false},
		{"the sandbox's loopback", p, Access{Op: OpConnect, Network: "tcp", Host: "127.0.0.1", Port: 80}, true, false},
		{"no bound on files", open, Access{Op: OpRead, Path: "/tmp/x"}, true, false},
		{"no bound on files, and a /proc of the sandbox's", open, Access{Op: OpRead, Path: "/proc/self/environ"}, false, true},
	} {
		ok, r := Answer(c.p, c.a)
		if ok != c.ok || r.Private != c.private || r.Why == "" {
			t.Errorf("%s: %t, %+v", c.name, ok, r)
		}
		if may, _ := Allows(c.p, c.a); may != (c.ok || c.private) {
			t.Errorf("%s: the tool may: %t", c.name, may)
		}
	}
}

// TestWhatTakesMountsIsClosedWithoutThem: a host that mounts nothing has no private directory and no copy to write to.
func TestWhatTakesMountsIsClosedWithoutThem(t *testing.T) {
	m, err := New(policy.Policy{Files: policy.Files{Read: []string{"/usr"}, Write: []string{"/home/me/ws"}, Private: []string{"/tmp", "/home/me/ws/scratch"}, CopyOnWrite: []string{"/home/me/.cache", "/usr/lib/go"},
		Make: []policy.File{{Path: "/tmp/made"}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a          Access
		with, bare bool // the tool may
	}{
		{Access{Op: OpCreate, Path: "/tmp/x"}, true, false},
		{Access{Op: OpRead, Path: "/tmp/made"}, true, false},
		{Access{Op: OpRead, Path: "/home/me/.cache/x"}, true, false},
		{Access{Op: OpRead, Path: "/usr/lib/go/x"}, true, true},
		{Access{Op: OpWrite, Path: "/usr/lib/go/x"}, true, false},
		{Access{Op: OpWrite, Path: "/home/me/ws/scratch/x"}, true, true},
		{Access{Op: OpWrite, Path: "/home/me/ws/x"}, true, true},
	} {
		for mounts, want := range map[bool]bool{true: c.with, false: c.bare} {
			if ok, r := m.On(mounts).Answer(c.a); (ok || r.Private) != want || r.Why == "" {
				t.Errorf("%+v with mounts %t: %t, %+v", c.a, mounts, ok, r)
			}
		}
	}
	if ok, r := m.On(false).Answer(Access{Op: OpWrite, Path: "/home/me/ws/scratch/x"}); !ok || r.Private {
		t.Errorf("what lies in the open is the host's: %t, %+v", ok, r)
	}
}
