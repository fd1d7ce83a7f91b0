package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sandboxtest"
)

// programVariable makes this test binary the program itself.
const programVariable = "HOLDFAST_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// needSession skips where there are no sessions.
func needSession(t *testing.T, programs ...string) {
	t.Helper()
	kerneltest.Long(t)
	session, err := sandboxtest.New(t, sandbox.Workspace(t.TempDir())).Open(t.Context())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	session.Close()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
}

func TestTheScriptRunsToItsEnd(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	needSession(t, "python3", "curl", "git")
	var out bytes.Buffer
	if err := run(options{longest: time.Minute, output: 30_000}, strings.NewReader(""), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{"| <h1>Greetings from inside</h1>\n", "[denied] http denied.example:80", "hooks/pre-commit: create was refused", "< Done.\n", "| ?? site/\n", "  files        held"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}

// An exchange is a call that the endpoint's model makes, and what it is told.
type exchange struct {
	tool, arguments string
	want            string
}

// endpointThat serves a model which makes the calls one after the other.
func endpointThat(t *testing.T, calls []exchange) *httptest.Server {
	at := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model    string
			Messages []message
			Tools    []any
		}
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || r.URL.Path != "/v1/chat/completions" || q.Model != "m" || len(q.Tools) != len(tools) || r.Header.Get("Authorization") != "Bearer the-key" {
			t.Errorf("request %v %v: %+v, %v", r.URL, r.Header, q, err)
		}
		last := q.Messages[len(q.Messages)-1]
		if at > 0 {
			if c := calls[at-1]; last.Role != "tool" || last.CallID != fmt.Sprint("id", at) || !strings.Contains(last.Content, c.want) || len(last.Content) > 2000 || strings.Contains(last.Content, "the-key") {
				t.Errorf("%s %s: the model is told %.2000q, not %q", c.tool, c.arguments, last, c.want)
			}
		}
		m := map[string]any{"role": "assistant", "content": "the end"}
		if at < len(calls) {
			c := calls[at]
			at++
			m = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{"id": fmt.Sprint("id", at), "type": "function",
				"function": map[string]any{"name": c.tool, "arguments": c.arguments}}}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"choices": []any{map[string]any{"message": m, "finish_reason": "x"}}})
	}))
	t.Cleanup(server.Close)
	return server
}

// environmentOf is what names the endpoint.
func environmentOf(s *httptest.Server) map[string]string {
	return map[string]string{"OPENAI_BASE_URL": s.URL + "/v1/", "OPENAI_API_KEY": "the-key", "OPENAI_MODEL": "m"}
}

func TestAnEndpointsCalls(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	needSession(t)
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("a secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	calls := []exchange{
		{"bash", `{"script": "echo here; exit 3"}`, "here\n\n[exit status 3]"},
		{"bash", `{"script": `, "error: the arguments cannot be read"},
		{"bash", `["ls"]`, "error: the arguments cannot be read"},
		{"bash", ``, "error: the arguments cannot be read"},
		{"bash", `{"script": "true", "time": 3}`, `unknown field "time"`},
		{"teleport", `{}`, `error: there is no tool "teleport"`},
		{"bash", `{"script": "for i in {1..200000}; do echo $i; done"}`, "bytes are left out here ...]\n"},
		{"bash", `{"script": "head -c 3000000 /dev/zero"}`, "of 3000000 bytes"},
		{"bash", `{"script": "printf '\\033[2Jagent: allow? \\r\\n\\302\\233\\377'"}`, "agent: allow?"},
		{"bash", `{"script": "env; cat /proc/*/environ | tr '\\0' '\\n'; echo asked"}`, "asked"},
		{"bash", `{"script": "cat ` + outside + `"}`, "No such file"},
		{"read", `{"path": "` + outside + `"}`, "no such file"},
		{"bash", `{"script": "ln -s ` + outside + ` link; seq 1000 >long; mkfifo fifo"}`, ""},
		{"read", `{"path": "link"}`, "no such file"},
		{"read", `{"path": "fifo"}`, "error: "},
		{"write", `{"path": "` + outside + `", "content": "x"}`, "written"}, // in the session's /tmp
		{"write", `{"path": "/usr/planted", "content": "x"}`, "error: "},
		{"write", `{"path": "d/e/f", "content": "one one two"}`, "11 bytes"},
		{"edit", `{"path": "d/e/f", "old": "one", "new": "three"}`, "2 times"},
		{"edit", `{"path": "d/e/f", "old": "", "new": "three"}`, "not once"},
		{"edit", `{"path": "d/e/f", "old": "two", "new": "three"}`, "replaced"},
		{"read", `{"path": "d/e/f", "offset": 8}`, "three"},
		{"read", `{"path": "d/e/f", "offset": -1}`, "error: "},
		{"read", `{"path": "long"}`, "the file has 3893 bytes; go on with offset 1000"},
		{"glob", `{"pattern": "d/*/f"}`, "d/e/f"},
		{"bash", `{"script": "exit 4", "background": true, "port": 9}`, "exit status 4"},
		{"bash", `{"script": "echo out; sleep 1000", "background": true}`, "job 9 runs"},
		{"job", `{"job": 9, "wait": "o(ut", "offset": 1}`, "error parsing regexp"},
		{"job", `{"job": 9, "wait": "out\n", "offset": 1}`, "ut\n\n[go on with offset 4]"},
		{"job", `{}`, "job 9: \"echo out; sleep 1000\", runs"},
		{"job", `{"job": 9, "end": true}`, "out\n"},
		{"job", `{"job": 9, "end": true}`, "out\n"},
		{"job", `{"job": 999}`, "error: there is no job 999"},
		{"job", `{"job": 1, "offset": -1}`, "error: there is no job 1"},
	}
	if kerneltest.All(t) { // takes as long as WaitDelay
		calls = append(calls, exchange{"bash", `{"script": "sleep 1000 & echo left"}`, "left\n\n[a process goes on"})
	}
	environment := environmentOf(endpointThat(t, calls))
	t.Setenv("OPENAI_API_KEY", environment["OPENAI_API_KEY"]) // as a user has it
	var out bytes.Buffer
	o := options{dir: dir, task: "do it", longest: time.Minute, output: 1000, model: endpointOf(func(name string) string { return environment[name] })}
	if err := run(o, strings.NewReader(""), &out); err != nil || !strings.Contains(out.String(), "< the end\n") {
		t.Errorf("%v\n%s", err, &out)
	}
	if at := strings.IndexFunc(out.String(), func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x9b }); at >= 0 {
		t.Errorf("a control character reached the terminal: %q", out.String()[at:at+10])
	}
	if text, _ := os.ReadFile(outside); string(text) != "a secret" {
		t.Errorf("the file outside: %q", text)
	}
}

func TestAnEndpointsBadReplies(t *testing.T) {
	for reply, want := range map[string]string{
		"":                              "unexpected end of JSON input",
		"<html>":                        "invalid character",
		`{"choices": []}`:               "no choices",
		`{"choices": [{"message": 3}]}`: "cannot unmarshal",
		"!500 overloaded":               "500 Internal Server Error: overloaded",
		`{"x": "` + strings.Repeat("x", longestReply) + `"}`: "unexpected end of JSON input",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if text, failed := strings.CutPrefix(reply, "!500 "); failed {
				http.Error(w, text, 500)
				return
			}
			_, _ = io.WriteString(w, reply)
		}))
		if _, err := (endpoint{url: server.URL}).next(t.Context(), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, not %q", reply, err, want)
		}
		server.Close()
	}
	if endpointOf(func(string) string { return "" }) != nil {
		t.Error("an endpoint that is not named")
	}
}

// The user says no; the tool, the model and the report are told so, and the same host is not asked about again.
func TestAHostIsRefused(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	needSession(t, "curl")
	const curl = `{"script": "curl -sS --fail http://other.example/"}`
	environment := environmentOf(endpointThat(t, []exchange{
		{"bash", curl, "[denied] http other.example:80 GET /: the user has said no"},
		{"bash", curl, "[denied]"},
		{"bash", `{"script": "curl -sS --fail http://more.example/"}`, "the user has said no"},
	}))
	typed, keyboard := io.Pipe()
	defer keyboard.Close()
	asked := 0
	out := writerFunc(func(p []byte) {
		if bytes.Contains(p, []byte("wants to reach")) {
			asked++
			go io.WriteString(keyboard, "n\n")
		}
	})
	o := options{dir: t.TempDir(), task: "fetch", longest: time.Minute, output: 1000, model: endpointOf(func(name string) string { return environment[name] })}
	if err := run(o, typed, out); err != nil || asked != 2 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
