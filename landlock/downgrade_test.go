package landlock

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// checkDowngrade holds what must be true of every ruleset on every kernel.
func checkDowngrade(t *testing.T, r Ruleset, abi int) {
	t.Helper()
	d, lost, err := Downgrade(r, abi)
	if err != nil {
		if !errors.Is(err, errors.ErrUnsupported) || !reflect.DeepEqual(d, Ruleset{}) || len(lost) == 0 {
			t.Errorf("ABI %d: error %v with %+v, %v", abi, err, d, lost)
		}
		return
	}
	fs, net, scope, _ := Supported(abi)
	if d.HandledFS()&^fs != 0 || d.HandledNet()&^net != 0 || d.Scoped()&^scope != 0 {
		t.Errorf("ABI %d: the kernel does not know all of %+v", abi, d)
	}
	if d.HandledFS() != r.HandledFS()&fs || d.HandledNet() != r.HandledNet()&net || d.Scoped() != r.Scoped()&scope {
		t.Errorf("ABI %d: more was given up than needed: %+v", abi, d)
	}
	for _, rule := range d.Paths {
		if rule.Access == 0 || rule.Access&^d.HandledFS() != 0 {
			t.Errorf("ABI %d: the kernel would refuse rule %v", abi, rule)
		}
	}
	for _, rule := range d.Ports {
		if rule.Access == 0 || rule.Access&^d.HandledNet() != 0 {
			t.Errorf("ABI %d: the kernel would refuse rule %v", abi, rule)
		}
	}
	var gone Feature
	for _, l := range lost {
		if l.ABI <= abi || l.Kernel == "" || l.Without == "" {
			t.Errorf("ABI %d: lost %+v", abi, l)
		}
		gone.FS, gone.Net, gone.Scope = gone.FS|l.FS, gone.Net|l.Net, gone.Scope|l.Scope
	}
	if want := r.HandledFS() &^ d.HandledFS() &^ FSRefer; gone.FS&^FSRefer != want {
		t.Errorf("ABI %d: said to lose %v, lost %v", abi, gone.FS, want)
	}
	if gone.Net != r.HandledNet()&^d.HandledNet() || gone.Scope != r.Scoped()&^d.Scoped() {
		t.Errorf("ABI %d: said to lose %v, %v", abi, gone.Net, gone.Scope)
	}
	if err := d.HeldBy(abi); err != nil {
		t.Errorf("ABI %d: what is left cannot be built: %v", abi, err)
	}
}

func TestDowngradeSaysWhatEachKernelLoses(t *testing.T) {
	full := Ruleset{
		Paths: []PathRule{{"/usr", FSReadExecute}, {"/work", FSReadWrite | FSRefer | FSIoctlDev}, {"/run/s", FSResolveUnix}},
		Ports: []PortRule{{443, NetConnectTCP}, {53, NetConnectSendUDP}},
	}
	newer := []string{"resolve_unix", "bind_udp", "connect_send_udp"}
	for _, tt := range []struct {
		abi  int
		lost []string
		path int // rules that remain
		port int
	}{
		{1, append([]string{"refer", "truncate", "bind_tcp", "connect_tcp", "ioctl_dev", "abstract_unix_socket", "signal"}, newer...), 2, 0},
		{2, append([]string{"truncate", "bind_tcp", "connect_tcp", "ioctl_dev", "abstract_unix_socket", "signal"}, newer...), 2, 0},
		{3, append([]string{"bind_tcp", "connect_tcp", "ioctl_dev", "abstract_unix_socket", "signal"}, newer...), 2, 0},
		{4, append([]string{"ioctl_dev", "abstract_unix_socket", "signal"}, newer...), 2, 1},
		{5, append([]string{"abstract_unix_socket", "signal"}, newer...), 2, 1},
		{6, newer, 2, 1},
		{7, newer, 2, 1},
		{8, newer, 2, 1},
		{9, newer[1:], 3, 1},
		{10, nil, 3, 2},
		{11, nil, 3, 2},
		{12, nil, 3, 2},
	} {
		d, lost, err := Downgrade(full, tt.abi)
		if err != nil {
			t.Errorf("ABI %d: %v", tt.abi, err)
			continue
		}
		var names []string
		for _, l := range lost {
			names = append(names, l.Name())
			if l.Ability != (l.FS == FSRefer) {
				t.Errorf("ABI %d: %s is called an ability: %v", tt.abi, l.Name(), l.Ability)
			}
		}
		if !reflect.DeepEqual(names, tt.lost) || len(d.Paths) != tt.path || len(d.Ports) != tt.port {
			t.Errorf("ABI %d: lost %v, rules %v %v", tt.abi, names, d.Paths, d.Ports)
		}
		checkDowngrade(t, full, tt.abi)
	}
}

// A library that gives up all of Landlock when refer is granted on ABI 1, without an error, is known; this one keeps the rest.
func TestReferOnABI1LosesAnAbilityAndNoProtection(t *testing.T) {
	r := Ruleset{Paths: []PathRule{{"/work", FSReadWrite | FSRefer}}}
	d, lost, err := Downgrade(r, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := AccessFS(1<<13 - 1); d.HandledFS() != want {
		t.Errorf("handles %v, want all of ABI 1", d.HandledFS())
	}
	if len(d.Paths) != 1 || d.Paths[0].Access != FSReadWrite&^FSTruncate {
		t.Errorf("rules %v", d.Paths)
	}
	if lost[0].FS != FSRefer || !lost[0].Ability || lost[0].ABI != 2 || lost[0].Kernel != "5.19" {
		t.Errorf("first loss %+v", lost[0])
	}
	for _, l := range lost[1:] {
		if l.Ability {
			t.Errorf("%v is no ability", l)
		}
	}
}

func TestReferOnABI1IsNotLostIfNoRuleGrantsIt(t *testing.T) {
	_, lost, err := Downgrade(Ruleset{Paths: []PathRule{{"/work", FSReadWrite}}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lost {
		if l.FS == FSRefer {
			t.Errorf("lost %v, which that kernel always denies", l)
		}
	}
}

func TestNothingHeldIsAnErrorAndNeverNil(t *testing.T) {
	scopes := ScopesOnly()
	scopes.UnhandledFS, scopes.Paths = FSAll, nil
	for _, tt := range []struct {
		name string
		r    Ruleset
		abi  int
	}{
		{"no Landlock", Ruleset{}, 0},
		{"a negative ABI", Ruleset{}, -1},
		{"no Landlock and a rule that grants refer", Ruleset{Paths: []PathRule{{"/", FSRefer}}}, 0},
		{"scopes alone on ABI 5", scopes, 5},
		{"network alone on ABI 3", Ruleset{UnhandledFS: FSAll, Unscoped: ScopeAll}, 3},
		{"truncate alone on ABI 2", Ruleset{UnhandledFS: FSAll &^ FSTruncate, UnhandledNet: NetAll, Unscoped: ScopeAll}, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, lost, err := Downgrade(tt.r, tt.abi)
			var un *UnsupportedError
			if !errors.Is(err, errors.ErrUnsupported) || !errors.As(err, &un) || len(un.Lost) == 0 || len(lost) == 0 {
				t.Fatalf("error %v, lost %v", err, lost)
			}
			if !reflect.DeepEqual(d, Ruleset{}) {
				t.Errorf("ruleset %+v, want the strictest", d)
			}
			if !strings.Contains(un.Error(), "Linux ") {
				t.Errorf("the error names no kernel: %v", un)
			}
		})
	}
}

func TestDowngradeDropsOnlyRulesThatGrantNothingMore(t *testing.T) {
	r := Ruleset{UnhandledFS: FSIoctlDev, Paths: []PathRule{{"/dev", FSIoctlDev}, {"/usr", FSRead | FSIoctlDev}}}
	d, lost, err := Downgrade(r, LatestABI)
	if err != nil || lost != nil {
		t.Fatal(lost, err)
	}
	if want := []PathRule{{"/usr", FSRead}}; !reflect.DeepEqual(d.Paths, want) {
		t.Errorf("rules %v, want %v", d.Paths, want)
	}
	if r.Paths[1].Access != FSRead|FSIoctlDev {
		t.Error("the argument was changed")
	}
}

func TestTableIsInOrderAndWhole(t *testing.T) {
	var all Feature
	abi := 0
	for _, f := range Table() {
		if f.ABI < abi || f.ABI > LatestABI || f.Kernel != kernels[f.ABI] || f.Name() == "none" {
			t.Errorf("row %+v", f)
		}
		abi = f.ABI
		all.FS, all.Net, all.Scope, all.Flag = all.FS|f.FS, all.Net|f.Net, all.Scope|f.Scope, all.Flag|f.Flag
	}
	if all.FS != FSAll || all.Net != NetAll || all.Scope != ScopeAll || all.Flag != FlagsAll {
		t.Errorf("the table has %v, %v, %v, %v", all.FS, all.Net, all.Scope, all.Flag)
	}
	if fs, net, scope, flags := Supported(7); fs != 1<<16-1 || net != 3 || scope != 3 || flags != 7 {
		t.Errorf("ABI 7 has %v, %v, %v, %v", fs, net, scope, flags)
	}
	if fs, net, scope, flags := Supported(0); fs != 0 || net != 0 || scope != 0 || flags != 0 {
		t.Error("ABI 0 has something")
	}
}
