package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// start makes a tool in a new workspace.
func start(t *testing.T) *tool {
	t.Helper()
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	dir := t.TempDir()                                 // before the session, which ends before it is removed
	b, err := newTool(dir, []string{"allowed.example:443"}, time.Minute, 2*time.Minute, 1000)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.close() })
	return b
}

// sessions skips where there are none.
func (b *tool) sessions(t *testing.T) {
	t.Helper()
	if r := b.one(t, request{Command: "true"}); b.single {
		t.Skip("needs sessions: " + r.Note)
	}
}

// ask sends lines as they are and returns the answers.
func (b *tool) ask(t *testing.T, lines ...string) []response {
	t.Helper()
	var out bytes.Buffer
	if err := b.serve(context.Background(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
		t.Fatal(err)
	}
	var answers []response
	for line := range strings.Lines(out.String()) {
		var r response
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		answers = append(answers, r)
	}
	if len(answers) != len(lines) {
		t.Fatalf("%d answers to %d requests", len(answers), len(lines))
	}
	return answers
}

// one sends a request and returns its answer.
func (b *tool) one(t *testing.T, q request) response {
	t.Helper()
	if q.ID == nil {
		q.ID = json.RawMessage("1")
	}
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	return b.ask(t, string(line))[0]
}

func TestAnswers(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	if err := os.Mkdir(filepath.Join(b.workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		q      request
		output string // part of it
		exit   int
		signal string
		err    string // part of it
	}{
		{"output of both kinds in its order", request{Command: "echo one; echo two >&2; echo three"}, "one\ntwo\nthree\n", 0, "", ""},
		{"a status", request{Command: "exit 42"}, "", 42, "", ""},
		{"a signal", request{Command: "kill -TERM $$"}, "", 143, "terminated", ""},
		{"an unknown program", request{Command: "no-such-program"}, "command not found", 127, "", ""},
		{"no input", request{Command: "cat; echo end"}, "end\n", 0, "", ""},
		{"the workspace is where it starts", request{Command: "pwd"}, b.workspace + "\n", 0, "", ""},
		{"a directory below", request{Command: "pwd", Cwd: "sub"}, b.workspace + "/sub\n", 0, "", ""},
		{"a directory that does not exist", request{Command: "pwd", Cwd: "none"}, "", -1, "", "no such file"},
		{"a process left behind does not hold it up", request{Command: "sleep 1000 & echo started"}, "started\n", 0, "", ""},
		{"more than is kept", request{Command: "head -c 600000 /dev/zero | tr '\\0' x; echo end"}, "xend\n", 0, "", ""},
		{"bytes that are not UTF-8", request{Command: `printf 'a\377b'`}, "a\uFFFDb", 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := b.one(t, test.q)
			if !strings.Contains(r.Output, test.output) || r.Exit != test.exit || r.Signal != test.signal || !strings.Contains(r.Error, test.err) || (r.Error == "") != (test.err == "") || r.TimedOut {
				t.Errorf("got %+v", r)
			}
			if test.err == "" && !r.Report.Held() {
				t.Errorf("not every bound held:\n%v", r.Report)
			}
		})
	}
}

const leaves, looks = "echo kept >f; echo kept >/tmp/f; echo kept >~/f; export V=lost; cd /usr", `cat f /tmp/f ~/f; echo "V=$V in $PWD"`

func TestFilesLastAndVariablesDoNot(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.sessions(t)
	b.one(t, request{Command: leaves})
	if r := b.one(t, request{Command: looks}); r.Output != "kept\nkept\nkept\nV= in "+b.workspace+"\n" || r.Note != "" {
		t.Errorf("got %+v", r)
	}
}

func TestWithoutSessionsTheWorkspaceLasts(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.single = true
	b.one(t, request{Command: leaves})
	r := b.one(t, request{Command: looks})
	if strings.Count(r.Output, "kept") != 1 || !strings.Contains(r.Output, "V= in "+b.workspace) {
		t.Errorf("got %q", r.Output)
	}
	if r := b.one(t, request{Command: "sleep 1000 & echo started"}); r.Output != "started\n" || r.Exit != 0 {
		t.Errorf("a job: %+v", r)
	}
}

// TestABackgroundJobLivesOn, and prints on; it is reached by later commands, and the timeout of another does not end it.
func TestABackgroundJobLivesOn(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.sessions(t)
	r := b.one(t, request{Command: `mkfifo /tmp/in /tmp/out; (while read -r line </tmp/in; do echo "$line"; for i in 1 2 3 4 5 6 7 8 9; do printf %20000s; done; echo "$line" >/tmp/out; done) & echo $!`})
	job := strings.TrimSpace(r.Output)
	if job == "" || r.Exit != 0 {
		t.Fatalf("got %+v", r)
	}
	if r := b.one(t, request{Command: "sleep 1000", TimeoutMS: 100}); !r.TimedOut {
		t.Errorf("got %+v", r)
	}
	for range 2 { // each time it prints more than a pipe holds
		if r := b.one(t, request{Command: "echo word >/tmp/in; cat /tmp/out"}); r.Output != "word\n" {
			t.Errorf("the job is asked: %+v", r)
		}
	}
	if r := b.one(t, request{Command: "kill " + job + "; while kill -0 " + job + " 2>/dev/null; do :; done; echo gone"}); r.Output != "gone\n" {
		t.Errorf("it is ended: %+v", r)
	}
}

func TestAnEndedSessionBeginsAnew(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.sessions(t)
	b.session.Close()
	if r := b.one(t, request{Command: "echo never"}); r.Error == "" || r.Exit != -1 {
		t.Errorf("got %+v", r)
	}
	if r := b.one(t, request{Command: "echo on"}); r.Output != "on\n" || r.Note == "" {
		t.Errorf("got %+v", r)
	}
	if r := b.one(t, request{Command: "echo on"}); r.Output != "on\n" || r.Note != "" {
		t.Errorf("got %+v", r)
	}
}

// TestAJobIsAskedListedAndEnded by its number; what it has printed is read piece by piece, and after its end.
func TestAJobIsAskedListedAndEnded(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.sessions(t)
	r := b.one(t, request{Command: `echo first; mkfifo /tmp/go; (read -r line </tmp/go; echo "late $line"; exec sleep 1000) &`})
	if r.Output != "first\n" || r.Job == 0 || r.Next != int64(len("first\n")) {
		t.Fatalf("got %+v", r)
	}
	job, next, said := r.Job, r.Next, ""
	b.maxOutput = 3 // in pieces
	if r := b.one(t, request{Command: "echo word >/tmp/go"}); r.Job == job || r.Exit != 0 {
		t.Errorf("another command: %+v", r)
	}
	for late := time.Now().Add(time.Minute); said != "late word\n" && time.Now().Before(late); {
		r := b.one(t, request{Job: job, Offset: next})
		if len(r.Output) > 3 || r.Ended || r.Error != "" {
			t.Fatalf("got %+v", r)
		}
		said, next = said+r.Output, r.Next
	}
	if said != "late word\n" {
		t.Errorf("it has printed %q", said)
	}
	if r := b.one(t, request{Jobs: true}); len(r.Jobs) != 1 || r.Jobs[0].Job != job || len(r.Jobs[0].Processes) == 0 {
		t.Errorf("listed: %+v", r)
	}
	b.maxOutput = 1000
	if r := b.one(t, request{Job: job, End: true}); r.Error != "" || r.Output != "first\nlate word\n" {
		t.Errorf("ended: %+v", r)
	}
	if r := b.one(t, request{Jobs: true}); len(r.Jobs) != 0 || r.Error != "" {
		t.Errorf("listed after its end: %+v", r)
	}
	if r := b.one(t, request{Job: job, End: true}); r.Error == "" {
		t.Errorf("ended again: %+v", r)
	}
	for r = b.one(t, request{Job: job}); !r.Ended; r = b.one(t, request{Job: job}) { // its pipe is read to the end
	}
	if r.Output != "first\nlate word\n" {
		t.Errorf("after its end: %+v", r)
	}
	if r := b.one(t, request{Job: 999}); r.Error == "" {
		t.Errorf("a job that never was: %+v", r)
	}
}

func TestTimeout(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	if testing.Short() {
		t.Skip("long: needs a run without -short")
	}
	b := start(t)
	limited := request{Command: "echo before; sleep 1000", TimeoutMS: 500}
	r := b.one(t, limited)
	for r.TimedOut && r.Output == "" && limited.TimeoutMS < 60_000 { // on a slow machine
		limited.TimeoutMS *= 4
		r = b.one(t, limited)
	}
	if !r.TimedOut || r.Output != "before\n" || r.Exit == 0 || r.DurationMS == 0 {
		t.Errorf("got %+v", r)
	}
	b.longest = 300 * time.Millisecond
	if r := b.one(t, request{Command: "sleep 1000", TimeoutMS: 9_000_000_000_000_000_000}); !r.TimedOut {
		t.Errorf("the longest time was not held: %+v", r)
	}
}

// A model that chooses where a command starts must not choose what it may write.
func TestCwdWidensNothing(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(b.workspace, "link")); err != nil {
		t.Fatal(err)
	}
	up, err := filepath.Rel(b.workspace, outside)
	if err != nil {
		t.Fatal(err)
	}
	for _, cwd := range []string{outside, "link", up, "link/../" + filepath.Base(outside)} {
		r := b.one(t, request{Command: "echo planted >planted", Cwd: cwd})
		if _, err := os.Lstat(filepath.Join(outside, "planted")); err == nil {
			t.Errorf("cwd %q: the file outside is there: %+v", cwd, r)
		}
	}
	if r := b.one(t, request{Command: "pwd; echo planted >planted", Cwd: "/usr"}); !strings.HasPrefix(r.Output, "/usr\n") || r.Exit == 0 {
		t.Errorf("in a directory that can be read: %+v", r)
	}
	if _, err := os.Lstat("/usr/planted"); err == nil {
		t.Error("/usr/planted is there")
	}
}

func TestBadRequestsAreAnswered(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	answers := b.ask(t, `{"id": "x", "comand": "ls"}`, `not json`, `{"id": [1]}`, `{"command": "ls", "timeout_ms": -1}`, `{"command": "ls"} {}`, `{"command": "ls", "jobs": true}`, `{"job": -1}`, `{"jobs": true}`,
		`{"command": "echo a\u0000b"}`, `{"id": {"n": 7}, "command": "echo still here"}`)
	last := len(answers) - 1
	for i, r := range answers[:last] {
		if r.Error == "" || r.Exit != -1 {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if r := answers[last]; r.Output != "still here\n" || string(r.ID) != `{"n":7}` {
		t.Errorf("got %+v", r)
	}
	if got := string(answers[2].ID); got != "[1]" {
		t.Errorf("the id of a bad request is %s", got)
	}
}

func TestClipped(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  int
		writes []string
		want   string
	}{
		{"nothing", 10, nil, ""},
		{"as much as fits", 10, []string{"01234", "56789"}, "0123456789"},
		{"one byte more", 10, []string{"0123456789a"}, "01234\n[... 1 of 11 bytes are left out here ...]\n6789a"},
		{"byte by byte", 4, strings.Split("abcdefgh", ""), "ab\n[... 4 of 8 bytes are left out here ...]\ngh"},
		{"an odd limit", 5, []string{"abcdef", "gh"}, "ab\n[... 3 of 8 bytes are left out here ...]\nfgh"},
		{"no room", 0, []string{"abc"}, "\n[... 3 of 3 bytes are left out here ...]\n"},
		{"half a character", 4, []string{"aäöü"}, "a\uFFFD\n[... 3 of 7 bytes are left out here ...]\nü"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := clipped{limit: test.limit}
			for _, w := range test.writes {
				if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := c.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNothingIsLeftInTheWorkspace(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	b.one(t, request{Command: "true"})
	entries, err := fs.ReadDir(os.DirFS(b.workspace), ".")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v: %v", entries, err)
	}
}

func TestAHostThatIsNotAllowedIsAViolation(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	b := start(t)
	r := b.one(t, request{Command: `at=${http_proxy#http://}; exec 3<>/dev/tcp/${at/://}
		printf 'GET http://denied.example/ HTTP/1.0\r\n\r\n' >&3; cat <&3`})
	if !strings.Contains(r.Output, "denied.example:80") || r.Report == nil || len(r.Report.Violations) != 1 || r.Report.Violations[0].Remedy == "" {
		t.Errorf("%+v", r)
	}
}
