package plan

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/landlock"
	"github.com/holdfast-dev/holdfast/rlimit"
)

func somePlan() Plan {
	return Plan{
		Namespaces: Namespaces{User: true, Mount: true, PID: true, Net: true},
		Steps: []Step{
			{In: Init, Do: PrivateMounts{}, Why: "nothing arrives"},
			{In: Init, Do: Bind{Source: "/usr", At: "/usr", Dir: true}, By: MountNamespace},
			{In: Init, Do: SetNoNewPrivs{}, By: NoNewPrivs},
			{In: Tool, Do: RestrictFiles{Ruleset: landlock.ScopesOnly()}, By: LandlockScope},
			{In: Tool, Do: Chdir{}},
		},
		DeadlineMS: 1500,
	}
}

func TestPlansReadFromTopToBottom(t *testing.T) {
	const want = `stage  clone init into new namespaces: user mount pid network
init   make every mount private  # nothing arrives
init   bind /usr read-only
init   set no_new_privs
init   start the tool's process and wait for its execve
tool   landlock: abstract_unix_socket|signal
tool   enter the working directory
tool   execve
stage  kill everything after 1500 ms
`
	if got := somePlan().String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const none = "stage  fork init, a subreaper, without namespaces\ntool   execve\n"
	if got := (Plan{}).String(); got != none {
		t.Errorf("got\n%s\nwant\n%s", got, none)
	}
}

func TestWithoutTakesOneMechanismOut(t *testing.T) {
	p := somePlan()
	for _, m := range []Mechanism{UserNamespace, MountNamespace, PIDNamespace, NetworkNamespace, NoNewPrivs, LandlockScope} {
		q := p.Without(m)
		if !p.Uses(m) || q.Uses(m) {
			t.Errorf("%s: used before %v, after %v", m, p.Uses(m), q.Uses(m))
		}
		if len(p.Steps) != 5 || !p.Namespaces.User || !p.Namespaces.Net {
			t.Fatalf("%s: the plan itself has changed:\n%s", m, p)
		}
	}
	if got := len(p.Without(Seccomp).Steps); got != len(p.Steps) || p.Uses(Seccomp) {
		t.Errorf("a mechanism that is not there: %d steps", got)
	}
}

func TestActionsSayWhatTheyDo(t *testing.T) {
	tests := []struct {
		do   Action
		want string
	}{
		{NewRoot{}, "make an empty root"},
		{NewRoot{Private: true}, "make a private tmpfs, and an empty root in it"},
		{NewRoot{Host: true}, "make the harness's root the root, read-only"},
		{NewRoot{Host: true, Write: true}, "make the harness's root the root, read-write"},
		{Scratch{}, "make a private tmpfs"},
		{Scratch{Bytes: 4096}, "make a private tmpfs of at most 4096 bytes"},
		{Bind{Source: "/a", At: "/b", Write: true}, "bind /a read-write at /b"},
		{MakeFile{Path: "/x", Data: "abc"}, "write /x (3 bytes)"},
		{MakeLink{Path: "/bin", Target: "usr/bin"}, "link /bin -> usr/bin"},
		{Overlay{Lower: "/c", At: "/d"}, "copy-on-write /c at /d"},
		{SharedOverlay{Lower: "/c"}, "make a copy-on-write view of /c, of which only parts are shown"},
		{Hide{Path: "/s"}, "hide /s"},
		{DropCapabilities{}, "drop all capabilities"},
		{DropCapabilities{KeepPtrace: true}, "drop all capabilities but CAP_SYS_PTRACE over the tool's namespace"},
		{SetLimits{Settings: []rlimit.Setting{{Resource: rlimit.Core}, {Resource: rlimit.NoFile, Soft: 10, Hard: 20}}}, "limit core 0, nofile 10:20"},
		{RestrictFiles{Ruleset: landlock.Ruleset{Paths: []landlock.PathRule{{Path: "/", Access: landlock.FSRead}}}}, "landlock: 1 path rules, 0 port rules"},
		{LoadFilter{Name: "profile"}, "load seccomp filter profile (0 instructions)"},
		{LoadSupervisor{Names: 3}, "load the supervisor of 3 names (0 instructions)"},
	}
	for _, test := range tests {
		if got := test.do.String(); got != test.want {
			t.Errorf("%T: %q, want %q", test.do, got, test.want)
		}
	}
}

func TestPlacesAndBoundsHaveNames(t *testing.T) {
	if got := strings.Join([]string{Stage.String(), Init.String(), Tool.String()}, " "); got != "stage init tool" {
		t.Error(got)
	}
	if len(Bounds()) != 8 || Bounds()[0] != Files {
		t.Error(Bounds())
	}
	all := Namespaces{User: true, Mount: true, PID: true, IPC: true, UTS: true, Cgroup: true, Net: true}
	if len(all.Mechanisms()) != 7 || all.String() != "user mount pid ipc uts cgroup network" || (Namespaces{}).String() != "" {
		t.Errorf("%v %q", all.Mechanisms(), all)
	}
}
