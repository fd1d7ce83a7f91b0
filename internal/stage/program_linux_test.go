package stage

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/protected"
	"github.com/holdfast-dev/holdfast/internal/stage/launch"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/seccomp"
	"golang.org/x/sys/unix"
)

// everyStep is a plan with every action there is.
func everyStep(t testing.TB) plan.Plan {
	t.Helper()
	program, err := seccomp.Default().Compile(seccomp.AMD64)
	if err != nil {
		t.Fatal(err)
	}
	rules := landlock.Ruleset{
		Paths: []landlock.PathRule{{Path: "/usr", Access: landlock.FSRead}, {Path: "/ws", Access: landlock.FSReadWrite}},
		Ports: []landlock.PortRule{{Port: 80, Access: landlock.NetAll}},
	}
	actions := []plan.Action{
		plan.MapIDs{}, plan.OpenProc{}, plan.OpenRoot{}, plan.PrivateMounts{}, plan.NewRoot{}, plan.Scratch{Bytes: 1 << 20}, plan.Proc{},
		plan.MakeLink{Path: "/bin", Target: "usr/bin"}, plan.MakeFile{Path: "/etc/x", Mode: 0o444, Data: "data"},
		plan.Bind{Source: "/usr", At: "/usr", Dir: true}, plan.Bind{Source: "/dev/null", At: "/dev/null", Write: true, Device: true},
		plan.Private{At: "/tmp", Slot: "p0", Mode: 0o1777}, plan.Hide{Path: "/usr/x"}, plan.Hide{Path: "/usr/y", Dir: true},
		plan.Overlay{Lower: "/a:b,c", At: "/cache", Slot: "o0"}, plan.PTYs{}, plan.Queues{}, plan.Loopback{}, tcpAt("127.0.0.1:80", 0), plan.Listen{Network: "unix", Path: "/run/x/agent", Slot: 1}, someTun(2), plan.ProbeTun{}, plan.Dialer{Slot: 3}, plan.Pivot{}, plan.Pivot{Chroot: true}, plan.UnnamedTree{}, plan.SealRoot{}, plan.KeepRoot{},
		plan.NestUser{}, plan.JoinKeyring{}, plan.SetNoNewPrivs{}, plan.DropCapabilities{KeepPtrace: true}, plan.Undumpable{}, plan.RestrictFiles{Ruleset: rules},
	}
	rulesBlob, err := (&supervisor.Rules{Names: []protected.Pattern{{Path: ".envrc"}}}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	tool := []plan.Action{
		plan.RestrictFiles{Ruleset: landlock.ScopesOnly()}, plan.CheckRoot{}, plan.CheckSignal{}, plan.CheckKeyring{}, plan.Chdir{},
		plan.SetLimits{Settings: []rlimit.Setting{{Resource: rlimit.Core}}}, plan.DropLast{}, plan.RestoreSignals{},
		plan.LoadSupervisor{Program: program, Rules: string(rulesBlob), Names: 1}, plan.LoadFilter{Name: "profile", Program: program},
	}
	p := plan.Plan{Namespaces: plan.Namespaces{User: true, Mount: true, PID: true, IPC: true, UTS: true, Cgroup: true, Net: true}, DeadlineMS: 1500}
	for _, a := range actions {
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
	}
	for _, a := range tool {
		p.Steps = append(p.Steps, plan.Step{In: plan.Tool, Do: a})
	}
	return p
}

func compiled(t testing.TB, p plan.Plan) *Template {
	t.Helper()
	template, err := Compile(p, Identity{UID: 1000, GID: 1000})
	if err != nil {
		t.Fatal(err)
	}
	return template
}

var someRun = Run{Path: "/usr/bin/tool", Argv: []string{"tool", "", "a b"}, Env: []string{"A=1", "B="}, ExtraFiles: 2, Layout: launch.Layout{Program: 5, Given: 7}, Quiet: true, Ignored: 1 << 12}

// read takes a program apart as the stage does.
func read[T any](program []byte, s wire.Span) []T {
	if s.Len == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&program[s.Off])), s.Len)
}

func headerOf(program []byte) *wire.Header { return (*wire.Header)(unsafe.Pointer(&program[0])) }

func TestProgramIsWhatTheRunAsksFor(t *testing.T) {
	program := compiled(t, everyStep(t)).Program(someRun)
	h := headerOf(program)
	if h.Magic != wire.Magic || h.Size != uint64(len(program)) || h.DeadlineMS != 1500 || h.IgnoredSigs != 1<<12 {
		t.Errorf("%+v", h)
	}
	if h.Extra != 5 || h.SelfFD != 5 || h.ControlFD != 6 {
		t.Errorf("descriptors: %d of the tool, program %d, socket %d", h.Extra, h.SelfFD, h.ControlFD)
	}
	if h.Flags != wire.FlagPIDNS|wire.FlagQuiet|wire.FlagNet {
		t.Errorf("flags %#x", h.Flags)
	}
	want := uint64(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP) // the network namespace is made beside: FlagNet
	if h.InitClone != want {
		t.Errorf("clone flags %#x, want %#x", h.InitClone, want)
	}
	if got := textAt(program, uint64(h.Path)); got != someRun.Path {
		t.Errorf("path %q", got)
	}
	for _, v := range []struct {
		span wire.Span
		want []string
	}{{h.Argv, someRun.Argv}, {h.Envp, someRun.Env}} {
		var got []string
		offsets := read[uint64](program, v.span)
		for _, off := range offsets[:len(offsets)-1] {
			got = append(got, textAt(program, off))
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", v.want) || offsets[len(offsets)-1] != 0 {
			t.Errorf("vector %q, want %q and a null", got, v.want)
		}
	}
}

func textAt(program []byte, off uint64) string {
	text, _, _ := bytes.Cut(program[off:], []byte{0})
	return string(text)
}

// TestRelocationsAreSane: every pointer that the stage will make lies inside
// the program, every register exists, and every op has a step with a name.
func TestRelocationsAreSane(t *testing.T) {
	template := compiled(t, everyStep(t))
	program := template.Program(someRun)
	h := headerOf(program)
	count := 0
	for place := range wire.Places {
		if off := h.Ops[place].Off; off%8 != 0 {
			t.Errorf("the ops of place %d lie at %d", place, off)
		}
		for i, op := range read[wire.Op](program, h.Ops[place]) {
			count++
			for j := range op.Arg {
				switch op.Kind[j] {
				case wire.Imm:
				case wire.Ptr:
					if op.Arg[j] < uint64(unsafe.Sizeof(*h)) || op.Arg[j] >= h.Size {
						t.Errorf("place %d, op %d (%d): argument %d points to %d of %d", place, i, op.Nr, j, op.Arg[j], h.Size)
					}
				case wire.Reg:
					if op.Arg[j] >= wire.MaxRegisters {
						t.Errorf("place %d, op %d: register %d", place, i, op.Arg[j])
					}
				default:
					t.Errorf("place %d, op %d: argument %d of kind %d", place, i, j, op.Kind[j])
				}
			}
			if int(op.Save) >= wire.MaxRegisters || op.Save < wire.RegNone || int(op.Probe) > wire.MaxSelfChecks || uint32(op.Step) >= h.Steps.Len {
				t.Errorf("place %d, op %d: %+v", place, i, op)
			}
		}
	}
	if count < 150 {
		t.Errorf("only %d ops", count)
	}
	for i, s := range read[wire.Span](program, h.Steps) {
		if got := string(program[s.Off : s.Off+s.Len]); got != template.StepName(i) {
			t.Errorf("step %d is called %q, and %q in errors", i, got, template.StepName(i))
		}
	}
	if got := string(program[h.Supervisor.Off : h.Supervisor.Off+h.Supervisor.Len]); !strings.HasSuffix(got, ".envrc") || supervisor.Check([]byte(got)) != nil {
		t.Errorf("the supervisor's rules are %q", got)
	}
}

// TestEveryRegisterIsSavedBeforeItIsRead follows the ops in order: init has what
// the stage has saved, the tool what both have.
func TestEveryRegisterIsSavedBeforeItIsRead(t *testing.T) {
	program := compiled(t, everyStep(t)).Program(someRun)
	saved := map[uint64]bool{}
	for place := range wire.Places {
		for i, op := range read[wire.Op](program, headerOf(program).Ops[place]) {
			for j := range op.Arg {
				if op.Kind[j] == wire.Reg && !saved[op.Arg[j]] {
					t.Errorf("place %d, op %d reads register %d, which nothing has saved", place, i, op.Arg[j])
				}
			}
			if op.Save >= 0 {
				saved[uint64(op.Save)] = true
			}
		}
	}
}

// TestTemplatesServeManyRuns: a run changes nothing for the next.
func TestTemplatesServeManyRuns(t *testing.T) {
	template := compiled(t, everyStep(t))
	first := template.Program(someRun)
	template.Program(Run{Path: "/x", Argv: make([]string, 1000), Probe: true, DeadlineMS: 7})
	if !bytes.Equal(first, template.Program(someRun)) {
		t.Error("the same run has another program")
	}
	if again := compiled(t, everyStep(t)).Program(someRun); !bytes.Equal(first, again) {
		t.Error("the same plan has another program")
	}
}

// TestTheLayoutIsStable: both halves are in one executable, so a size that
// changes changes in both; what the kernel reads must be as it defines it.
func TestTheLayoutIsStable(t *testing.T) {
	sizes := map[string][2]uintptr{
		"Op":           {unsafe.Sizeof(wire.Op{}), 72},
		"Span":         {unsafe.Sizeof(wire.Span{}), 8},
		"StatusRecord": {unsafe.Sizeof(wire.StatusRecord{}), 32},
		"mountAttr":    {unsafe.Sizeof(mountAttr{}), unsafe.Sizeof(unix.MountAttr{})},
		"how":          {unsafe.Sizeof(how{}), unsafe.Sizeof(unix.OpenHow{})},
	}
	for name, s := range sizes {
		if s[0] != s[1] {
			t.Errorf("%s has %d bytes, want %d", name, s[0], s[1])
		}
	}
	for _, offset := range []uintptr{unsafe.Offsetof(wire.Op{}.Arg), unsafe.Offsetof(wire.Header{}.Ops), unsafe.Sizeof(wire.Header{}), unsafe.Sizeof(wire.Message{})} {
		if offset%4 != 0 {
			t.Errorf("an odd offset: %d", offset)
		}
	}
	if wire.NumberEvidence != strings.Count(wire.EvidenceNames, "\x00") {
		t.Errorf("%d names of evidence, %d announced", strings.Count(wire.EvidenceNames, "\x00"), wire.NumberEvidence)
	}
	if len(wire.Marker) > 16 {
		t.Error("a thread's name has at most 15 bytes and a null (prctl(2), PR_SET_NAME)")
	}
}

// TestOpsGrowWithTheRules counts calls instead of time.
func TestOpsGrowWithTheRules(t *testing.T) {
	count := func(n int) (ops, bytes int) {
		p := plan.Plan{Steps: []plan.Step{{In: plan.Init, Do: plan.NewRoot{}}}}
		var r landlock.Ruleset
		for i := range n {
			path := fmt.Sprintf("/data/%d/x", i)
			p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: plan.Bind{Source: path, At: path, Dir: true}})
			r.Paths = append(r.Paths, landlock.PathRule{Path: path, Access: landlock.FSRead})
		}
		p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: plan.RestrictFiles{Ruleset: r}})
		template := compiled(t, p)
		return len(template.ops[wire.InInit]), len(template.Program(someRun))
	}
	base, baseBytes := count(0)
	few, fewBytes := count(20)
	many, manyBytes := count(1000)
	if (many-base)*20 > (few-base)*1000+1000 {
		t.Errorf("%d calls for none, %d for 20 binds, %d for 1,000", base, few, many)
	}
	if perBind := (many - base) / 1000; perBind > 9 {
		t.Errorf("%d calls for each bind and its rule", perBind)
	}
	if manyBytes-baseBytes > (fewBytes-baseBytes)*55 {
		t.Errorf("%d bytes for none, %d for 20 binds, %d for 1,000", baseBytes, fewBytes, manyBytes)
	}
}

// TestNothingIsMadeOnTheHost: files and links made inside a tree of the host
// would be made on the host.
func TestNothingIsMadeOnTheHost(t *testing.T) {
	bind := plan.Bind{Source: "/ws", At: "/ws", Dir: true, Write: true}
	private := plan.Private{At: "/ws/tmp", Slot: "p1", Mode: 0o700}
	overlay := plan.Overlay{Lower: "/cache", At: "/cache", Slot: "o1"}
	tests := []struct {
		name    string
		before  []plan.Action
		do      plan.Action
		refused bool
	}{
		{"a file below a bind", []plan.Action{bind}, plan.MakeFile{Path: "/ws/x"}, true},
		{"a file far below a bind", []plan.Action{bind}, plan.MakeFile{Path: "/ws/a/b/c/x"}, true},
		{"a link below a bind", []plan.Action{bind}, plan.MakeLink{Path: "/ws/x", Target: "y"}, true},
		{"a file below an overlay", []plan.Action{overlay}, plan.MakeFile{Path: "/cache/x"}, true},
		{"a file where the root is the host's", []plan.Action{plan.NewRoot{Host: true}}, plan.MakeFile{Path: "/x"}, true},
		{"a file where the root is kept", []plan.Action{plan.KeepRoot{}}, plan.MakeFile{Path: "/x"}, true},
		{"a bind over a private directory", []plan.Action{private, plan.Bind{Source: "/a", At: "/ws/tmp/a", Dir: true}}, plan.MakeFile{Path: "/ws/tmp/a/x"}, true},
		{"a file in a private directory below a bind", []plan.Action{bind, private}, plan.MakeFile{Path: "/ws/tmp/x"}, false},
		{"a file beside a bind", []plan.Action{bind}, plan.MakeFile{Path: "/wsx"}, false},
		{"a link in the new root", []plan.Action{plan.NewRoot{}}, plan.MakeLink{Path: "/bin", Target: "usr/bin"}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var p plan.Plan
			for _, a := range append(test.before, test.do) {
				p.Steps = append(p.Steps, plan.Step{In: plan.Init, Do: a})
			}
			_, err := Compile(p, Identity{})
			if errors.Is(err, errOnHost) != test.refused {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestARulesetThatHandlesNothingIsAnError(t *testing.T) {
	r := landlock.Ruleset{UnhandledFS: landlock.FSAll, UnhandledNet: landlock.NetAll, Unscoped: landlock.ScopeAll}
	if _, err := Compile(plan.Plan{Steps: []plan.Step{{In: plan.Init, Do: plan.RestrictFiles{Ruleset: r}}}}, Identity{}); err == nil {
		t.Error("it would restrict nothing")
	}
}
