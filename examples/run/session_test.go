package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// sessions skips where there are none.
func sessions(t *testing.T) {
	t.Helper()
	s, err := sandboxtest.New(t, sandbox.Workspace(t.TempDir())).Open(t.Context())
	if err != nil {
		t.Skip("needs sessions: ", err)
	}
	s.Close()
}

// servedLines runs lines by -session. It returns what each has printed to both outputs, with how it has ended.
func servedLines(t *testing.T, lines ...string) (answers map[int]string, status int) {
	t.Helper()
	cmd := program(t, "-session")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	out, err := cmd.Output()
	if _, is := err.(*exec.ExitError); err != nil && !is {
		t.Fatal(err)
	}
	answers = map[int]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var a answer
		if err := d.Decode(&a); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if answers[a.Command] += a.Stdout + a.Stderr; a.Exit != nil {
			answers[a.Command] += fmt.Sprint("|", *a.Exit, a.Signal, a.Error)
		}
	}
	return answers, cmd.ProcessState.ExitCode()
}

func TestASessionServesLines(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	sessions(t)
	answers, status := servedLines(t,
		"mkfifo /tmp/in /tmp/out; echo made",
		"read -r line </tmp/in; echo got $line; echo back >/tmp/out; exit 3 &",
		"",
		"echo word >/tmp/in; cat /tmp/out",
		"wait",
		"echo said >&2; kill -9 $$",
		"exec sleep 1000 &",
		"cat; true && exit 7")
	for n, want := range map[int]string{1: "made\n|0", 2: "got word\n|3", 3: "", 4: "back\n|0", 5: "", 6: "said\n|-1killed", 8: "|7"} {
		if answers[n] != want {
			t.Errorf("line %d: %q, want %q", n, answers[n], want)
		}
	}
	if !strings.HasPrefix(answers[7], "|-1") { // at the end of the input, before it has begun or after
		t.Errorf("what still runs: %q", answers[7])
	}
	if status != 7 {
		t.Errorf("status %d", status)
	}
}

func TestACharacterIsInOnePiece(t *testing.T) {
	var told []string
	p := &pieces{tell: func(s string) { told = append(told, s) }}
	for _, b := range []byte("a\u00e4\u20ac\xff\U0001f600") {
		p.Write([]byte{b})
	}
	p.Write([]byte("\xe2\x82"))
	p.end()
	if want := []string{"a", "\u00e4", "\u20ac", "\xff", "\U0001f600", "\xe2\x82"}; !slices.Equal(told, want) {
		t.Errorf("%q, not %q", told, want)
	}
}
