package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// start makes a tool in a new workspace.
func start(t *testing.T) *tool {
	t.Helper()
	sandboxtest.New(t, sandbox.Workspace(t.TempDir())) // skips where there is no engine
	b, err := newTool(t.TempDir(), []string{"allowed.example:443"}, time.Minute, 2*time.Minute, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// ask sends lines as they are and returns the answers.
func (b *tool) ask(t *testing.T, lines ...string) []response {
	t.Helper()
	var out bytes.Buffer
	if err := b.serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out); err != nil {
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

func TestWhatLastsIsTheWorkspace(t *testing.T) {
	b := start(t)
	b.one(t, request{Command: "echo kept >f; echo lost >/tmp/f; echo lost >~/f; export V=lost; cd /usr"})
	r := b.one(t, request{Command: `cat f; cat /tmp/f ~/f; echo "V=$V in $PWD"`})
	if !strings.Contains(r.Output, "kept") || strings.Contains(r.Output, "lost") || !strings.Contains(r.Output, "V= in "+b.workspace) {
		t.Errorf("got %q", r.Output)
	}
}

func TestTimeout(t *testing.T) {
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
	b := start(t)
	answers := b.ask(t, `{"id": "x", "comand": "ls"}`, `not json`, `{"id": [1]}`, `{"command": "ls", "timeout_ms": -1}`, `{"command": "ls"} {}`,
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
	b := start(t)
	b.one(t, request{Command: "true"})
	entries, err := fs.ReadDir(os.DirFS(b.workspace), ".")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v: %v", entries, err)
	}
}

func TestAHostThatIsNotAllowedIsAViolation(t *testing.T) {
	b := start(t)
	r := b.one(t, request{Command: `at=${http_proxy#http://}; exec 3<>/dev/tcp/${at/://}
		printf 'GET http://denied.example/ HTTP/1.0\r\n\r\n' >&3; cat <&3`})
	if !strings.Contains(r.Output, "denied.example:80") || r.Report == nil || len(r.Report.Violations) != 1 || r.Report.Violations[0].Remedy == "" {
		t.Errorf("%+v", r)
	}
}
