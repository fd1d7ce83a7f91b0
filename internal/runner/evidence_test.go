package runner

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// record is one record of init's evidence.
func record(what byte, text string) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{what}, uint16(len(text)))
	return append(b, text...)
}

const (
	someStatus = "Name:\ttrue\nPPid:\t1\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n"
	someLimits = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max core file size        0                    0                    bytes     \n" +
		"Max open files            1024                 524288               files     \n" +
		"Max processes             unlimited            unlimited            processes \n" +
		"Max cpu time              5                    unlimited            seconds   \n"
)

func someEvidence() []byte {
	return bytes.Join([][]byte{
		record(0, someStatus), record(1, someLimits), record(2, "user:[1]"), record(3, "mnt:[2]"), record(4, "pid:[3]"), record(5, "ipc:[4]"),
		record(6, "uts:[5]"), record(7, "cgroup:[6]"), record(8, "net:[7]"),
	}, nil)
}

// everything is evidence of a run in which every mechanism is in force.
func everything() *Evidence {
	e := &Evidence{
		rootErrno: 13, killErrno: 1, PrivsErrno: -1, keyring: 8, initPID: 1, filters: 2, deadline: 1000,
		settings: []rlimit.Setting{{Resource: rlimit.Core}, {Resource: rlimit.NoFile, Soft: 1024, Hard: 524288}},
		own:      ownFacts{filters: 1, keyring: 7, namespaces: map[plan.Mechanism]string{}},
	}
	for _, n := range evidenceNamespaces {
		e.own.namespaces[n.mechanism] = n.file + ":[99]"
	}
	e.status, e.limits, e.namespaces = parseEvidence(someEvidence())
	return e
}

func TestEvidenceShowsEveryMechanism(t *testing.T) {
	e := everything()
	for _, m := range fixture.Mechanisms {
		if held, shown := e.Holds(m); !held || shown == "" {
			t.Errorf("%s: %v, %q", m, held, shown)
		}
	}
	if held, shown := e.Holds("magic"); held {
		t.Errorf("an unknown mechanism is held: %q", shown)
	}
}

// TestEvidenceOfAStatusAsGVisorHasIt: it has no lines for no_new_privs and ambient
// capabilities, nor for the number of filters.
func TestEvidenceOfAStatusAsGVisorHasIt(t *testing.T) {
	e := everything()
	const status = "Name:\ttrue\nPPid:\t1\nCapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n" +
		"CapBnd:\t0000000000000000\nSeccomp:\t2\n"
	e.status, _, _ = parseEvidence(record(0, status))
	e.PrivsErrno, e.own.filters = 0, 0
	for _, m := range []plan.Mechanism{plan.NoNewPrivs, plan.Capabilities, plan.Seccomp} {
		if held, shown := e.Holds(m); !held {
			t.Errorf("%s: %q", m, shown)
		}
	}
	e.keepsBounding, e.status["CapBnd"] = true, "0000000000200000"
	if held, shown := e.Holds(plan.Capabilities); !held {
		t.Errorf("with a bounding set: %q", shown)
	}
}

// TestNoEvidenceShowsNothing: what only the harness does itself, and the rest,
// of which nothing was said.
func TestNoEvidenceShowsNothing(t *testing.T) {
	e := &Evidence{rootErrno: -1, killErrno: -1}
	e.status, e.limits, e.namespaces = parseEvidence(nil)
	for _, m := range fixture.Mechanisms {
		if held, shown := e.Holds(m); held && m != plan.EnvFilter {
			t.Errorf("%s is held: %q", m, shown)
		}
	}
}

func TestEvidenceSaysNo(t *testing.T) {
	tests := []struct {
		name      string
		change    func(*Evidence)
		mechanism plan.Mechanism
	}{
		{"listing the root succeeded", func(e *Evidence) { e.rootErrno = 0 }, plan.Landlock},
		{"listing the root failed for another reason", func(e *Evidence) { e.rootErrno = 2 }, plan.Landlock},
		{"listing the root was not tried", func(e *Evidence) { e.rootErrno = -1 }, plan.Landlock},
		{"init can be signalled", func(e *Evidence) { e.killErrno = 0 }, plan.LandlockScope},
		{"init was gone when it was signalled", func(e *Evidence) { e.killErrno = 3 }, plan.LandlockScope},
		{"one filter too few", func(e *Evidence) { e.status["Seccomp_filters"] = "2" }, plan.Seccomp},
		{"the harness's filters do not count", func(e *Evidence) { e.own.filters = 3 }, plan.Seccomp},
		{"no filter at all", func(e *Evidence) { e.status["Seccomp"] = "0" }, plan.Seccomp},
		{"one filter too few for the supervisor", func(e *Evidence) { e.status["Seccomp_filters"] = "2" }, plan.Supervisor},
		{"the kernel does not count filters and the harness has some", func(e *Evidence) { delete(e.status, "Seccomp_filters") }, plan.Seccomp},
		{"no_new_privs is not set", func(e *Evidence) { e.status["NoNewPrivs"] = "0" }, plan.NoNewPrivs},
		{"a capability in the bounding set that may be gained", func(e *Evidence) {
			e.keepsBounding, e.status["CapBnd"], e.status["NoNewPrivs"] = true, "0000000000200000", "0"
		}, plan.Capabilities},
		{"a capability in the effective set", func(e *Evidence) { e.status["CapEff"] = "0000000000200000" }, plan.Capabilities},
		{"a bounding set that could have been emptied", func(e *Evidence) { e.status["CapBnd"] = "0000000000200000" }, plan.Capabilities},
		{"a bounding set and no word of the inheritable", func(e *Evidence) {
			e.keepsBounding = true
			e.status["CapBnd"] = "0000000000200000"
			delete(e.status, "CapInh")
		}, plan.Capabilities},
		{"a set of capabilities is not shown", func(e *Evidence) { delete(e.status, "CapEff") }, plan.Capabilities},
		{"neither the ambient nor the permitted set is shown", func(e *Evidence) { delete(e.status, "CapAmb"); delete(e.status, "CapPrm") }, plan.Capabilities},
		{"the ambient set is not shown, and something is permitted", func(e *Evidence) {
			delete(e.status, "CapAmb")
			e.status["CapPrm"] = "0000000000200000"
		}, plan.Capabilities},
		{"no_new_privs is not shown, and was not asked for", func(e *Evidence) { delete(e.status, "NoNewPrivs") }, plan.NoNewPrivs},
		{"no_new_privs is not shown, and the answer was no", func(e *Evidence) { delete(e.status, "NoNewPrivs"); e.PrivsErrno = 1 }, plan.NoNewPrivs},
		{"/proc says no, and the answer was yes", func(e *Evidence) { e.status["NoNewPrivs"], e.PrivsErrno = "0", 0 }, plan.NoNewPrivs},
		{"nothing of the status was read", func(e *Evidence) { e.status, e.PrivsErrno = nil, 0 }, plan.NoNewPrivs},
		{"a set of capabilities is empty text", func(e *Evidence) { e.status["CapAmb"] = "" }, plan.Capabilities},
		{"a hard limit is higher", func(e *Evidence) { e.settings[1].Hard = 1024 }, plan.Rlimits},
		{"a limit is not shown", func(e *Evidence) { e.settings[1].Resource = rlimit.FSize }, plan.Rlimits},
		{"no limit was to be set", func(e *Evidence) { e.settings = nil }, plan.Rlimits},
		{"the keyring is the harness's", func(e *Evidence) { e.keyring = 7 }, plan.Keyring},
		{"there is no keyring", func(e *Evidence) { e.keyring = -1 }, plan.Keyring},
		{"the parent is another", func(e *Evidence) { e.status["PPid"] = "17" }, plan.Subreaper},
		{"the network namespace is the harness's", func(e *Evidence) { e.own.namespaces[plan.NetworkNamespace] = "net:[7]" }, plan.NetworkNamespace},
		{"the harness's own pid namespace is not known", func(e *Evidence) { delete(e.own.namespaces, plan.PIDNamespace) }, plan.PIDNamespace},
		{"the mount namespace is not known", func(e *Evidence) { delete(e.namespaces, plan.MountNamespace) }, plan.MountNamespace},
		{"there is no deadline", func(e *Evidence) { e.deadline = 0 }, plan.Deadline},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := everything()
			test.change(e)
			if held, shown := e.Holds(test.mechanism); held {
				t.Errorf("%s is held: %q", test.mechanism, shown)
			}
		})
	}
}

// A tool that has moved its own soft limits, or given up some of its hard ones,
// before they were read is as bounded as it was to be.
func TestLimitsThatTheToolHasMovedAreInForce(t *testing.T) {
	e := everything()
	e.settings[1].Soft, e.settings[1].Hard = 512, 600000
	if held, shown := e.Holds(plan.Rlimits); !held {
		t.Errorf("not held: %s", shown)
	}
}

// TestCutOffEvidenceIsAbsent cuts the records at every byte: what is shown is
// what is whole, and never something else.
func TestCutOffEvidenceIsAbsent(t *testing.T) {
	all := someEvidence()
	_, wholeLimits, whole := parseEvidence(all)
	for n := range all {
		status, limits, namespaces := parseEvidence(all[:n])
		if len(status) > 0 && status["Seccomp_filters"] != "3" {
			t.Fatalf("%d bytes: half a status: %v", n, status)
		}
		if limits != "" && limits != wholeLimits {
			t.Fatalf("%d bytes: half of the limits: %q", n, limits)
		}
		for m, text := range namespaces {
			if whole[m] != text {
				t.Fatalf("%d bytes: half a namespace: %q", n, text)
			}
		}
		if len(namespaces) == len(whole) {
			t.Fatalf("%d bytes: nothing is missing", n)
		}
	}
}

func TestUnknownRecordsAreLeftOut(t *testing.T) {
	status, limits, namespaces := parseEvidence(append(record(200, "x"), record(9, "time:[8]")...))
	if len(status)+len(limits)+len(namespaces) != 0 {
		t.Errorf("%v %q %v", status, limits, namespaces)
	}
}

func TestLimitsAreReadByName(t *testing.T) {
	got := parseLimits(someLimits)
	want := map[rlimit.Resource][2]uint64{
		rlimit.Core: {0, 0}, rlimit.NoFile: {1024, 524288}, rlimit.NProc: {rlimit.Unlimited, rlimit.Unlimited}, rlimit.CPU: {5, rlimit.Unlimited},
	}
	if len(got) != len(want) {
		t.Errorf("%v", got)
	}
	for r, l := range want {
		if got[r] != l {
			t.Errorf("%v: %v, want %v", r, got[r], l)
		}
	}
	if len(limitNames) != int(rlimit.NumResources) {
		t.Errorf("%d names for %d resources", len(limitNames), rlimit.NumResources)
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add(someEvidence())
	f.Add([]byte{0, 255, 255, 'N'})
	f.Add(record(1, "Max core file size"))
	f.Fuzz(func(t *testing.T, b []byte) {
		status, limits, namespaces := parseEvidence(b)
		used := len(limits)
		for name, value := range status {
			used += len(name) + len(value)
		}
		for _, text := range namespaces {
			used += len(text)
		}
		if used > len(b) {
			t.Errorf("%d bytes out of %d", used, len(b))
		}
		for r := range parseLimits(limits) {
			if int(r) >= rlimit.NumResources {
				t.Errorf("resource %d", r)
			}
		}
		e := everything()
		e.status, e.limits, e.namespaces = status, limits, namespaces
		for _, m := range fixture.Mechanisms {
			e.Holds(m)
		}
	})
}
