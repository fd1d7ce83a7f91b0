package stage

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/landlock"
	"golang.org/x/sys/unix"
)

// TestABindAddsItsPathsRule by the descriptor it has; every rule is added once,
// to one ruleset, and with the access that the ruleset says.
func TestABindAddsItsPathsRule(t *testing.T) {
	rules := landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/usr", Access: landlock.FSRead}, {Path: "/ws", Access: landlock.FSReadWrite}, {Path: "/proc", Access: landlock.FSReadDir}}}
	p := plan.Plan{Namespaces: plan.Namespaces{Mount: true}}
	for _, a := range []plan.Action{plan.NewRoot{}, plan.Bind{Source: "/usr", At: "/usr", Dir: true}, plan.Bind{Source: "/ws", At: "/elsewhere", Dir: true},
		plan.Bind{Source: "/usr", At: "/usr", Dir: true}, plan.RestrictFiles{Ruleset: rules}} {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	program := compiled(t, p).Program(someRun)
	created, restricted := 0, 0
	var added []landlock.AccessFS
	for _, op := range read[wire.Op](program, headerOf(program).Ops[wire.InInit]) {
		switch op.Nr {
		case unix.SYS_LANDLOCK_CREATE_RULESET:
			created++
		case wire.OpRule:
			added = append(added, landlock.AccessFS(op.Arg[0]))
		case unix.SYS_LANDLOCK_RESTRICT_SELF:
			restricted++
		}
	}
	want := []landlock.AccessFS{landlock.FSRead, landlock.FSReadWrite, landlock.FSReadDir}
	const terminals = 3 // of the standard descriptors
	if created != 1 || restricted != 1 || len(added) != len(want)+terminals || fmt.Sprint(added[:len(want)]) != fmt.Sprint(want) {
		t.Errorf("%d rulesets, %d restrictions, rules %v; want one, one and %v", created, restricted, added, want)
	}
}

// TestARuleIsForWhatIsFoundAtTheEnd: what a later step covers gets no rule by its own descriptor.
func TestARuleIsForWhatIsFoundAtTheEnd(t *testing.T) {
	shm, dev := plan.Private{At: "/dev/shm", Slot: "shm"}, plan.Bind{Source: "/dev", At: "/dev", Dir: true}
	private, file := plan.Private{At: "/home", Slot: "p"}, plan.MakeFile{Path: "/home/x", Mode: 0o644}
	tests := []struct {
		name string
		put  []plan.Action
		path string
		end  bool
	}{
		{"a private directory", []plan.Action{shm}, "/dev/shm", false},
		{"a directory whose parent was put first", []plan.Action{dev, shm}, "/dev/shm", false},
		{"a directory whose parent is put later", []plan.Action{shm, dev}, "/dev/shm", true},
		{"a directory that is put twice", []plan.Action{shm, shm}, "/dev/shm", true},
		{"a file that is made", []plan.Action{private, file}, "/home/x", false},
		{"a file that another covers", []plan.Action{private, file, plan.Cover{Path: "/home/x", By: "/y"}}, "/home/x", true},
		{"a directory beside one that is put later", []plan.Action{private, plan.Private{At: "/home2", Slot: "q"}}, "/home", false},
		{"what no step has put there", []plan.Action{private}, "/home/x", true},
		{"the root", []plan.Action{private}, "/", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Namespaces: plan.Namespaces{Mount: true}}
			r := landlock.Ruleset{Paths: []landlock.PathRule{{Path: test.path, Access: landlock.FSReadDir}}}
			for _, a := range slices.Concat([]plan.Action{plan.NewRoot{}, plan.Scratch{}}, test.put, []plan.Action{plan.RestrictFiles{Ruleset: r}}) {
				p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
			}
			var by []uint64
			for _, op := range compiled(t, p).ops[wire.InInit] {
				if op.Nr == wire.OpRule && op.Kind[1] == wire.Reg {
					by = append(by, op.Arg[1])
				}
			}
			if len(by) != 1 || by[0] == wire.RegFree != test.end { // RegFree holds what is opened at the end
				t.Errorf("rules by the descriptors in registers %d", by)
			}
		})
	}
}

// TestAWayThroughTheHostIsOpenedFirst: move_mount(2) would follow a symbolic link on the way.
func TestAWayThroughTheHostIsOpenedFirst(t *testing.T) {
	bind := func(at string) plan.Bind { return plan.Bind{Source: "/src", At: at, Dir: true} }
	ws, tmp := plan.Bind{Source: "/ws", At: "/ws", Dir: true, Write: true}, plan.Private{At: "/ws/tmp", Slot: "p1"}
	tests := []struct {
		name   string
		before []plan.Action
		at     string
		opened bool
	}{
		{"the new root", nil, "/usr", false},
		{"a directory of it", nil, "/usr/lib/x", false},
		{"a tree of the host", []plan.Action{ws}, "/ws/a", true},
		{"in place of a tree of the host", []plan.Action{ws}, "/ws", false},
		{"a private directory", []plan.Action{plan.Private{At: "/tmp", Slot: "t"}}, "/tmp/a", false},
		{"a private directory in a tree of the host", []plan.Action{ws, tmp}, "/ws/tmp/a", true},
		{"a copy-on-write directory", []plan.Action{plan.Overlay{Lower: "/c", At: "/c", Slot: "o"}}, "/c/a", true},
		{"a root that is the host's", []plan.Action{plan.NewRoot{Host: true}}, "/usr", true},
		{"below a link", []plan.Action{plan.MakeLink{Path: "/bin", Target: "usr/bin"}}, "/bin/x", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Namespaces: plan.Namespaces{Mount: true}}
			for _, a := range slices.Concat([]plan.Action{plan.NewRoot{}, plan.Scratch{}}, test.before, []plan.Action{bind(test.at)}) {
				p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
			}
			var last wire.Op
			for _, op := range compiled(t, p).ops[wire.InInit] {
				if op.Nr == unix.SYS_MOVE_MOUNT || op.Nr == wire.OpCover {
					last = op
				}
			}
			if opened := last.Nr == wire.OpCover; opened != test.opened || last.Arg[4]&unix.MOVE_MOUNT_T_SYMLINKS != 0 {
				t.Errorf("the place is opened first: %v (flags %#x)", opened, last.Arg[4])
			}
		})
	}
}
