package stage

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// TestTheToolStartsAfterTheHarnesssRootIsOff: init's last op waits for it, or the tool's process before its first filter, and tells a
// failure as the pivot's.
func TestTheToolStartsAfterTheHarnesssRootIsOff(t *testing.T) {
	p := plan.Plan{Namespaces: plan.Namespaces{Mount: true}}
	for _, a := range []plan.Action{plan.NewRoot{}, plan.Scratch{}, plan.Pivot{}, plan.SealRoot{}, plan.SetNoNewPrivs{}, plan.Undumpable{}} {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	p.Steps = append(p.Steps, plan.Step{In: plan.Tool, Do: plan.Chdir{}})
	waits := func(op wire.Op, nr uint32) bool {
		return op.Nr == nr && p.Steps[op.Step].Do == plan.Action(plan.Pivot{}) && op.Probe == 0 && op.Ignore == [3]uint16{}
	}
	ops := compiled(t, p).ops[wire.InInit]
	if last := ops[len(ops)-1]; !waits(last, wire.OpDetached) || last.Arg[0] != 0 {
		t.Errorf("init's last op is %#x(%d) of step %d; want %#x(0) of the pivot's, whose failure stops the run", last.Nr, last.Arg[0], last.Step, wire.OpDetached)
	}
	began := 0
	for _, op := range ops {
		if op.Nr == wire.OpDetach {
			began++
		}
	}
	if began != 1 {
		t.Errorf("the root is taken off %d times", began)
	}

	program, err := seccomp.Default().Compile(seccomp.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p.Steps = append(p.Steps, plan.Step{In: plan.Tool, Do: plan.LoadFilter{Program: program}})
	}
	filtered := compiled(t, p)
	ops = filtered.ops[wire.InInit]
	if last := ops[len(ops)-1]; !waits(last, wire.OpDetached) || last.Arg[0] != 1 {
		t.Errorf("init's last op is %#x(%d); want %#x(1): a session's init waits for its tools", last.Nr, last.Arg[0], wire.OpDetached)
	}
	waited, filters := 0, 0
	for _, op := range filtered.ops[wire.InTool] {
		switch {
		case waits(op, wire.OpRootOff) && filters == 0:
			waited++
		case op.Nr == unix.SYS_PRCTL && op.Arg[0] == unix.PR_SET_SECCOMP:
			filters++
		}
	}
	if waited != 1 || filters != 2 {
		t.Errorf("the tool's process waits %d times before its %d filters; want once, before 2", waited, filters)
	}
}

// TestKernelARootThatStaysOnStopsTheRun: in the process that waits for it, init or the tool's.
func TestKernelARootThatStaysOnStopsTheRun(t *testing.T) {
	eachUser(t, func(t *testing.T) {
		arch, err := seccomp.Native()
		if err != nil {
			t.Skip(err)
		}
		program, err := seccomp.Default().Compile(arch)
		if err != nil {
			t.Fatal(err)
		}
		alter = func(c *Template) {
			for i, op := range c.ops[wire.InInit] {
				if op.Nr == wire.OpDetach { // standard input is no directory
					c.ops[wire.InInit][i].Kind[0], c.ops[wire.InInit][i].Arg[0] = wire.Imm, 0
				}
			}
		}
		defer func() { alter = nil }()
		waitsInInit := walls(nil, nil)
		waitsInTool := walls(nil, nil)
		waitsInTool.Steps = append(waitsInTool.Steps, plan.Step{In: plan.Tool, Do: plan.LoadFilter{Program: program}})
		for place, p := range map[int]plan.Plan{wire.InInit: waitsInInit, wire.InTool: waitsInTool} {
			i := begin(t, p, "files")
			if f := i.c.Failed; i.c.Started || f == nil || f.Where != place || f.Errno != unix.ENOTDIR || i.failed() != (plan.Pivot{}).String() {
				t.Errorf("in process %d: held %v, %s: %+v", place, i.c.Started, i.failed(), f)
			}
			i.end()
		}
	})
}

// TestALayoutsRootIsOffAtOnce: it has no place for the harness's root but on its own, where no user namespace can be made.
func TestALayoutsRootIsOffAtOnce(t *testing.T) {
	p := plan.Plan{Namespaces: plan.Namespaces{Mount: true}}
	for _, a := range []plan.Action{plan.Floor{}, plan.NewRoot{Free: true}, plan.Pivot{}} {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	off := 0
	for _, op := range compiled(t, p).ops[wire.InInit] {
		switch op.Nr {
		case unix.SYS_UMOUNT2:
			off++
		case wire.OpDetach, wire.OpDetached:
			t.Errorf("op %#x: it is taken off beside init", op.Nr)
		}
	}
	if off != 2 {
		t.Errorf("%d umounts; want the floor's and the root's", off)
	}
}

// TestAPrivateRootIsOneFileSystem: the root and the private directories are of one tmpfs, which leaves the harness's tree for the place that
// /proc covers; a limit of bytes has a tmpfs apart, which the root's files do not fill.
func TestAPrivateRootIsOneFileSystem(t *testing.T) {
	for _, test := range []struct {
		name  string
		roots []plan.Action
		tmpfs int
	}{
		{"one", []plan.Action{plan.NewRoot{Private: true}}, 1},
		{"apart", []plan.Action{plan.NewRoot{}, plan.Scratch{Bytes: 4096}}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plan.Plan{Namespaces: plan.Namespaces{Mount: true, PID: true}}
			for _, a := range append(test.roots, plan.Private{At: "/tmp", Slot: "p0"}, plan.Proc{}, plan.Pivot{}) {
				p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
			}
			tmpl := compiled(t, p)
			made, at := 0, []string(nil)
			for _, op := range tmpl.ops[wire.InInit] {
				switch {
				case op.Nr == unix.SYS_FSOPEN && textOf(tmpl, op.Arg[0]) == "tmpfs":
					made++
				case op.Nr == unix.SYS_MOVE_MOUNT && op.Kind[0] == wire.Reg && op.Arg[0] == wire.RegScratch:
					at = append(at, fmt.Sprint(op.Arg[2])+":"+textOf(tmpl, op.Arg[3]))
				}
			}
			if made != test.tmpfs {
				t.Errorf("%d tmpfs are made; want %d", made, test.tmpfs)
			}
			if last := fmt.Sprint(wire.RegRoot) + ":proc"; len(at) == 0 || at[len(at)-1] != last {
				t.Errorf("the private tmpfs goes to %q; want %q last", at, last)
			}
		})
	}
}

// textOf is the text at an offset of the program.
func textOf(t *Template, at uint64) string {
	b := t.blob[at-uint64(unsafe.Sizeof(wire.Header{})):]
	return string(b[:bytes.IndexByte(b, 0)])
}
