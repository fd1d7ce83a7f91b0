package seatbelt_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/seatbelt"
)

func TestAQuestionThatIsNoneIsDenied(t *testing.T) {
	p := mustParse(t, "(allow default)")
	for _, q := range []seatbelt.Query{
		{},
		{Operation: "file-frobnicate", Path: "/x"},
		{Operation: "file-read-data"},
		{Operation: "file-read-data", Path: "x"},
		{Operation: "file-read-data", Path: "./x"},
		{Operation: "file-read-data", Path: "/x/"},
		{Operation: "file-read-data", Path: "/x/../y"},
		{Operation: "file-read-data", Path: "//x"},
		{Operation: "network-outbound"},
		{Operation: "network-outbound", Path: "sock"},
	} {
		if v := p.Evaluate(q); v.Allow || v.Why == "" || v.Step != 0 {
			t.Errorf("%+v: %+v", q, v)
		}
	}
	if v := (&seatbelt.Profile{}).Evaluate(seatbelt.Query{Operation: "signal"}); v.Allow || v.Why == "" {
		t.Errorf("a profile that nobody parsed: %+v", v)
	}
}

func TestSubpathIsByWholeNames(t *testing.T) {
	p := mustParse(t, `(allow file-read* (subpath "/a/b")) (allow file-write* (subpath "/")) (allow file-ioctl (prefix "/a/b"))`)
	for _, c := range []struct {
		op, path string
		want     bool
	}{
		{"file-read-data", "/a/b", true}, {"file-read-data", "/a/b/c", true}, {"file-read-data", "/a/bc", false}, {"file-read-data", "/a", false},
		{"file-write-data", "/", true}, {"file-write-data", "/x", true},
		{"file-ioctl", "/a/b", true}, {"file-ioctl", "/a/bc", true}, {"file-ioctl", "/a/", false},
	} {
		if v := p.Evaluate(seatbelt.Query{Operation: c.op, Path: c.path}); v.Allow != c.want {
			t.Errorf("%s %s: %+v", c.op, c.path, v)
		}
	}
}

func TestTargets(t *testing.T) {
	for filter, want := range map[string]string{
		"self":         "self",
		"same-sandbox": "self same-sandbox children",
		"children":     "children",
		"pgrp":         "pgrp",
		"others":       "same-sandbox children pgrp others",
	} {
		p := mustParse(t, "(allow signal (target "+filter+"))")
		for _, target := range []string{"self", "same-sandbox", "children", "pgrp", "others"} {
			v := p.Evaluate(seatbelt.Query{Operation: "signal", Target: target})
			if v.Allow != strings.Contains(" "+want+" ", " "+target+" ") {
				t.Errorf("(target %s), asked about %s: %v", filter, target, v.Allow)
			}
		}
		if v := p.Evaluate(seatbelt.Query{Operation: "signal"}); v.Allow != (filter == "others") {
			t.Errorf("(target %s), asked about nobody in particular: %v", filter, v.Allow)
		}
	}
}

// What is unknown about the thing that is asked about matches no filter, and so passes
// a require-not.
func TestWhatIsNotToldMatchesNothing(t *testing.T) {
	for filter, want := range map[string]bool{
		`(vnode-type DIRECTORY)`:                     false,
		`(require-not (vnode-type DIRECTORY))`:       true,
		`(extension "x")`:                            false,
		`(require-not (extension "x"))`:              true,
		`(global-name "x")`:                          false,
		`(entitlement-is-bool-true "x")`:             false,
		`(mount-relative-literal "/x")`:              false,
		`(signing-identifier "x")`:                   false,
		`(require-all (subpath "/") (debug-mode))`:   false,
		`(require-any (subpath "/x") (literal "/"))`: true,
	} {
		p := mustParse(t, "(allow file-read* "+filter+")")
		if v := p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/x"}); v.Allow != want {
			t.Errorf("%s: %+v", filter, v)
		}
	}
}

func TestAReasonNamesTheRuleAndWhyItWon(t *testing.T) {
	p := mustParse(t, `
(deny default)
(allow file-read-data (subpath "/w"))
(deny file-read* (literal "/w/.env"))
(deny file-write-create (literal "/w/x"))
(allow file-write-create)`)
	for _, c := range []struct {
		op, path string
		want     []string
	}{
		{"file-read-data", "/w/.env", []string{`<input string>:4 allows file-read-data with (subpath "/w")`, "beats <input string>:5, which denies a wildcard", "the last match in the text is <input string>:5, which denies"}},
		{"file-write-create", "/w/x", []string{`<input string>:6 denies file-write-create with (literal "/w/x")`, "has a filter, and so beats <input string>:7"}},
		{"file-write-create", "/w/y", []string{"<input string>:7 allows file-write-create, without a filter"}},
		{"file-read-xattr", "/w/.env", []string{"<input string>:5 denies file-read*", "no rule for file-read-xattr decides"}},
		{"file-ioctl", "/w", []string{"<input string>:3 denies default; no rule for file-ioctl or file* decides"}},
	} {
		v := p.Evaluate(seatbelt.Query{Operation: c.op, Path: c.path})
		for _, w := range c.want {
			if !strings.Contains(v.Why, w) {
				t.Errorf("%s %s: %q lacks %q", c.op, c.path, v.Why, w)
			}
		}
	}
}

func TestTheOtherReadingIsNamedWhereItDiffers(t *testing.T) {
	p := mustParse(t, `(allow file-read-data (subpath "/w")) (deny file-read* (literal "/w/.env"))`)
	if v := p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/w/.env"}); v.LastMatch != &p.Rules[1] || v.Rule != &p.Rules[0] {
		t.Errorf("%+v", v)
	}
	if v := p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/w/a"}); v.LastMatch != nil {
		t.Errorf("%+v", v)
	}
}

func TestARuleInAFunctionKnowsItsCaller(t *testing.T) {
	p := mustParse(t, "(define (f)\n (allow signal))\n\n(f)")
	if r := p.Rules[0]; r.At.Line != 3 || r.Call.Line != 5 {
		t.Errorf("%+v", r)
	}
}

func TestADefaultThatMacOSMayNotKeepIsSaidSo(t *testing.T) {
	p := mustParse(t, "(deny default) (deny nvram*)")
	for op, want := range map[string]bool{"process-info-pidinfo": true, "file-map-executable": true, "iokit-get-properties": true, "nvram-set": false, "signal": false} {
		v := p.Evaluate(seatbelt.Query{Operation: op, Path: "/x"})
		if v.Allow || strings.Contains(v.Why, "default of its own") != want {
			t.Errorf("%s: %+v", op, v)
		}
	}
}

func TestAProfileMayBeAskedByManyAtOnce(t *testing.T) {
	p := mustParse(t, `(deny default) (allow file-read* (regex #"^/[a-z]+$") (subpath "/w")) (allow mach* (global-name-prefix "a"))`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if !p.Evaluate(seatbelt.Query{Operation: "file-read-data", Path: "/abc"}).Allow {
					t.Error("denied")
				}
			}
		})
	}
	all.Wait()
}

func TestTheTableOfOperationsIsATree(t *testing.T) {
	for _, o := range seatbelt.Operations() {
		up, n := o, 0
		for ; up.Name != "default"; n++ {
			parent, ok := operation(up.Parent)
			if !ok || n > 6 {
				t.Fatalf("%s: %s has the parent %q", o.Name, up.Name, up.Parent)
			}
			if parent.Name != "default" && !strings.HasSuffix(parent.Name, "*") {
				t.Errorf("%s is below %s, which is no wildcard", o.Name, parent.Name)
			}
			up = parent
		}
		if o.About == "" || o.Argument == "" {
			t.Errorf("%+v", o)
		}
	}
}

// The operations of the profiles that were counted when this was written.
func TestTheTableHasWhatProfilesUse(t *testing.T) {
	for _, op := range strings.Fields(`file-read* file-write* mach-lookup file-read-metadata network-outbound network-inbound file-ioctl signal
		network-bind process-exec process-exec* process-exec-interpreter process-fork sysctl-read mach-register ipc-posix-shm* ipc-posix-shm user-preference-read
		user-preference-write iokit-open system-socket system-fsctl pseudo-tty process-info* ipc-posix-sem ipc-sysv-sem file-issue-extension lsopen
		file-read-xattr file-write-xattr device-microphone sysctl-write mach-priv-task-port file-map-executable file-read-data file-write-data
		file-write-unlink file-test-existence distributed-notification-post iokit-get-properties mach-host* syscall-unix process* network* nvram* default`) {
		if _, ok := operation(op); !ok {
			t.Error(op)
		}
	}
}
