package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/docs/hosts"
	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// TestWhatGoesThroughIsHeldAgainstTheReport: the acts of a held bound must not, those of a weaker one only if the report owns up to them.
func TestWhatGoesThroughIsHeldAgainstTheReport(t *testing.T) {
	var read, learn int
	for i, a := range acts() {
		switch a.name {
		case "read a file outside":
			read = i
		case "learn of a file outside":
			learn = i
		}
	}
	for name, test := range map[string]struct {
		state       sandbox.State
		lost        []string
		went, wrong int
	}{
		"held":                             {sandbox.Held, nil, 0, 2},
		"weaker, and the report says more": {sandbox.Weaker, []string{"all names can be seen, and more"}, 1, 1},
		"weaker, and the report says less": {sandbox.Weaker, []string{"something else"}, 0, 2},
		"absent":                           {sandbox.Absent, nil, 2, 0},
		"open":                             {sandbox.Open, nil, 2, 0},
		"unread":                           {sandbox.Unread, nil, 0, 2},
	} {
		report := &sandbox.Report{Bounds: []sandbox.BoundReport{{Bound: policy.BoundFiles, State: test.state, Lost: test.lost}}}
		s := &stage{scene: scene{WS: filepath.Join(t.TempDir(), "ws"), Bystander: -1}, noticed: map[string]bool{}}
		r := result{States: map[policy.Bound]sandbox.State{}}
		r.hold(s, map[int]bool{read: true, learn: true}, report)
		named := func(list []string) int {
			return len(slices.DeleteFunc(slices.Clone(list), func(s string) bool {
				return !strings.HasPrefix(s, acts()[read].name) && !strings.HasPrefix(s, acts()[learn].name)
			}))
		}
		if named(r.Went) != test.went || named(r.False) != test.wrong {
			t.Errorf("%s: went %q, false %q", name, r.Went, r.False)
		}
	}
}

// TestComposeListsAreOptions: what New says of compose.yaml is tried as what Docker makes of it.
func TestComposeListsAreOptions(t *testing.T) {
	got := composeOptions("# on the host, as root: sysctl -w a.b=1\nsecurity_opt: [seccomp=unconfined, systempaths=unconfined]\ncap_add: [SETFCAP]")
	if want := []string{"--security-opt=seccomp=unconfined", "--security-opt=systempaths=unconfined", "--cap-add=SETFCAP"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestEachActHasItsName, by which a failure is found.
func TestEachActHasItsName(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range acts() {
		if a.name == "" || a.bound == "" || a.try == nil || seen[a.name] {
			t.Errorf("%+v", a)
		}
		seen[a.name] = true
	}
}

// TestAWayOutIsTakenAsItIsWritten: what New's error says becomes the options of the container that is made anew.
func TestAWayOutIsTakenAsItIsWritten(t *testing.T) {
	w := &world{dir: t.TempDir()}
	f := host.Facts{Namespaces: host.Fact{Answer: host.No}, Around: host.Around{Runtime: host.Docker, Filtered: true, Masked: true, Sysctls: []string{"a=1"}}}
	var got []string
	for _, way := range f.Ways() {
		got = append(got, strings.Join(w.engineOptions("docker run")(way), " "))
	}
	want := []string{"--security-opt seccomp=unconfined --security-opt systempaths=unconfined", "--security-opt=seccomp=unconfined --security-opt=systempaths=unconfined", "--security-opt seccomp=" + w.dir + "/docker-seccomp.json --security-opt systempaths=unconfined"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if text, err := os.ReadFile(w.dir + "/docker-seccomp.json"); err != nil || !strings.Contains(string(text), "mount_setattr") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestAWayOutOfAMachineIsAScript: what New's error says of a host without a container is done there as it is written.
func TestAWayOutOfAMachineIsAScript(t *testing.T) {
	f := host.Facts{Namespaces: host.Fact{Answer: host.No}, Around: host.Around{Sysctls: []string{"a.b=1"}, AppArmor: true, Program: "/p"}}
	var got []string
	for _, way := range f.Ways() {
		got = append(got, strings.Join(hostOptions(way), "; "))
	}
	profile := "/etc/apparmor.d/holdfast"
	want := []string{"sysctl -w a.b=1", "mkdir -p /etc/sysctl.d && cat >/etc/sysctl.d/60-holdfast.conf <<'END'\na.b=1\nEND; sysctl -p /etc/sysctl.d/60-holdfast.conf",
		"mkdir -p /etc/apparmor.d && cat >" + profile + " <<'END'\n" + host.AppArmorProfile("/p") + "\nEND; apparmor_parser -r " + profile}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestAProfileIsResolved for the capabilities of a container.
func TestAProfileIsResolved(t *testing.T) {
	text, err := hosts.Files.ReadFile("docker-seccomp.json")
	if err != nil {
		t.Fatal(err)
	}
	names := func(caps ...string) (list []string) {
		f, err := filterOf(text, caps)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range f["syscalls"].([]object) {
			if rule["args"] == nil && rule["action"] == "SCMP_ACT_ALLOW" {
				list = append(list, rule["names"].([]string)...)
			}
		}
		return list
	}
	if got := names(); slices.Contains(got, "reboot") || !slices.Contains(got, "openat") || !slices.Contains(got, "mount_setattr") {
		t.Errorf("%q", got)
	}
	if got := names("CAP_SYS_BOOT"); !slices.Contains(got, "reboot") {
		t.Errorf("%q", got)
	}
}

// TestTheTableIsReplaced, and nothing else of the file.
func TestTheTableIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.md")
	if err := os.WriteFile(file, []byte("before\n"+tableBegins+"old\n"+tableEnds+"after\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := replaceTable(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "before\n"+tableBegins+"new\n"+tableEnds+"after\n" {
		t.Errorf("%v: %s", err, text)
	}
	if err := replaceTable(os.DevNull, "new\n"); err == nil {
		t.Error("a file without marks is written")
	}
}

// TestATableThatLacksRowsIsNotWritten: what could not be run, and what the file has. The error names them; -partial writes it.
func TestATableThatLacksRowsIsNotWritten(t *testing.T) {
	const emulated, plain = "| LXC, Linux 6.12.%s, emulated | root | refused |\n", "| no container | root | every bound held |\n"
	before := "before\n" + tableBegins + fmt.Sprintf(emulated, "117") + plain + tableEnds
	for _, c := range []struct {
		name, table string
		unable      string
		partial     bool
		want        string // in the error; "": it is written
	}{
		{"all rows, and a kernel with more patches", fmt.Sprintf(emulated, "118") + plain, "", false, ""},
		{"a host that could not be run", fmt.Sprintf(emulated, "117") + plain, "gVisor (1000)", false, "\n    gVisor (1000)"},
		{"a row that was there", plain, "", false, "\n    LXC, Linux 6.12, emulated (root)"},
		{"both", fmt.Sprintf(emulated, "117"), "gVisor (1000)", false, "\n    gVisor (1000)\n    no container (root)"},
		{"both, and it may be", fmt.Sprintf(emulated, "117"), "gVisor (1000)", true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, after := filepath.Join(t.TempDir(), "f.md"), before
			if err := os.WriteFile(file, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
			w := new(world)
			if c.unable != "" {
				w.miss(c.unable, unableError("it is not here"))
			}
			err := writeTable(file, c.table, w.missing, c.partial)
			if c.want == "" {
				after = "before\n" + tableBegins + c.table + tableEnds
			}
			if (err == nil) != (c.want == "") || err != nil && (!strings.HasSuffix(err.Error(), c.want) || !strings.Contains(err.Error(), "-partial")) {
				t.Errorf("%v", err)
			}
			if text, err := os.ReadFile(file); err != nil || string(text) != after {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}
