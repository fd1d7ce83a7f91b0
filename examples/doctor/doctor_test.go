package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func TestADiagnosisOfThisHost(t *testing.T) {
	d := examine()
	var text, encoded strings.Builder
	if err := errors.Join(d.print(&text, false), d.print(&encoded, true)); err != nil {
		t.Fatal(err)
	}
	var again diagnosis
	if err := json.Unmarshal([]byte(encoded.String()), &struct{ Held *bool }{&again.Held}); err != nil || again.Held != d.Held {
		t.Errorf("held %v, in JSON %v: %v", d.Held, again.Held, err)
	}
	for _, f := range d.Host.List() {
		if !strings.Contains(text.String(), f.Name) {
			t.Errorf("the fact %q is not printed", f.Name)
		}
	}
	if d.Held != (d.Error == "" && d.Report.Held()) {
		t.Errorf("held is %v, with %q and\n%v", d.Held, d.Error, d.Report)
	}
}

func TestWhatIsPrinted(t *testing.T) {
	no := sandbox.Fact{Name: "user namespaces", Reason: "clone: operation not permitted", Remedy: "allow them"}
	yes := sandbox.Fact{Name: "landlock", Reason: "asked the kernel", Value: 7, Remedy: "none needed"}
	yes.Answer = yesAnswer
	d := diagnosis{Host: sandbox.Host{Kernel: "6.1.0", UID: 1000, Namespaces: no, Landlock: yes}, Error: "sandbox: this host cannot hold files"}
	var text strings.Builder
	if err := d.print(&text, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kernel 6.1.0, user 1000", "could not tell", "operation not permitted", "remedy: allow them", "yes (7)", "cannot be held here", d.Error} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "none needed") {
		t.Errorf("it prints a remedy for what is no ill:\n%s", &text)
	}
}

// yesAnswer is the answer yes: its type has no name outside of the library.
const yesAnswer = 1
