package main

import (
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

func TestFixPrintsWhatIsRightForAHost(t *testing.T) {
	no := sandbox.Fact{Name: "namespaces", Answer: noAnswer, Reason: "clone a process: operation not permitted", Remedy: "another kernel"}
	docker := sandbox.Host{Namespaces: no}
	docker.Around.Runtime, docker.Around.Evidence, docker.Around.Filtered, docker.Around.Masked = "Docker", "/.dockerenv exists", true, true
	gvisor := docker
	gvisor.Around.Runtime = "gVisor"
	texts := []string{"Nothing is to be changed", "Docker (/.dockerenv exists)", "--security-opt seccomp=unconfined --security-opt systempaths=unconfined\n", "docker-seccomp.json\n", "another kernel", "policy.InContainer()"}
	for _, test := range []struct {
		name string
		host sandbox.Host
		want string // of texts, by number
	}{
		{"a host with namespaces", sandbox.Host{Namespaces: sandbox.Fact{Name: "namespaces", Answer: yesAnswer}}, "0"},
		{"Docker", docker, "1 2 3 5"},
		{"gVisor", gvisor, "4 5"},
	} {
		var b strings.Builder
		fix(&b, test.host)
		for i, text := range texts {
			if strings.Contains(b.String(), text) != strings.Contains(test.want, string(rune('0'+i))) {
				t.Errorf("%s: %q is there or not:\n%s", test.name, text, &b)
			}
		}
	}
}

// noAnswer is the answer no.
const noAnswer = 2

func TestFilesArePrinted(t *testing.T) {
	for _, name := range fileNames() {
		var b strings.Builder
		if err := printFile(&b, "docs/hosts/"+name); err != nil || b.Len() < 100 {
			t.Errorf("%s: %v\n%s", name, err, &b)
		}
	}
	var b strings.Builder
	if err := printFile(&b, "hosts.go"); err == nil || !strings.Contains(err.Error(), "docker-seccomp.json") || len(fileNames()) != 5 {
		t.Errorf("%v of %q", err, fileNames())
	}
}

// TestTheSelfTestIsGoodHere, and says so of each act; one whose expectation is wrong is BAD.
func TestTheSelfTestIsGoodHere(t *testing.T) {
	ws := t.TempDir()
	s := sandboxtest.NewOrSkip(t, sandbox.Workspace(ws))
	var b strings.Builder
	if good, err := selfTest(&b); err != nil || !good || strings.Count(b.String(), "\nok ") < 15 {
		t.Errorf("%v, %v:\n%s", good, err, &b)
	}
	dir := ws
	for _, a := range []act{{script: "true", works: false}, {script: "exit 1", works: true}, {script: "true", works: true, left: dir + "/none"}, {script: "exit 1", left: dir}} {
		if did, _ := attempt(s, "/bin/sh", ws, a); did == a.works {
			t.Errorf("%+v is taken for what it must be", a)
		}
	}
}
