package main

import (
	"context"
	"fmt"
	"strings"
)

// A script is a model that says what it always says, and stops if a result is not what it should be.
type script struct {
	steps []step
	at    int
}

type step struct {
	say, tool, arguments string
	want                 string // is in the result
}

func newScript() *script {
	return &script{steps: []step{
		{"I make a project.", "bash", `{"script": "git init -q; echo 'in a session'; echo kept >/tmp/note"}`, "in a session"},
		{"A page for a server.", "write", `{"path": "site/index.html", "content": "<h1>Hello from inside</h1>\n"}`, "bytes written"},
		{"The server is started by one call ...", "bash", `{"script": "exec python3 -m http.server -b 127.0.0.1 -d site 8000", "background": true, "port": 8000}`, "job 2 runs"},
		{"... and asked by the next.", "bash", `{"script": "curl -sS http://127.0.0.1:8000/; cat /tmp/note"}`, "Hello from inside</h1>\nkept"},
		{"An edit, while it serves the file.", "edit", `{"path": "site/index.html", "old": "Hello", "new": "Greetings"}`, "replaced"},
		{"", "bash", `{"script": "curl -sS http://127.0.0.1:8000/"}`, "Greetings from inside"},
		{"", "glob", `{"pattern": "site/*"}`, "site/index.html"},
		{"What the server has written:", "job", `{"job": 2, "wait": "GET .*\n"}`, "GET / HTTP/1.1"},
		{"It is not needed any more.", "job", `{"job": 2, "end": true}`, "go on with offset"},
		{"", "job", `{}`, "signal: killed"},
		{"A host that no rule names: the user is asked.", "bash", `{"script": "curl -sS --fail -m 60 http://denied.example/"}`, "denied.example"},
		{"A hook, which git would run outside.", "bash", `{"script": "mkdir -p .git/hooks && echo true >.git/hooks/pre-commit"}`, "[denied]"},
		{"The user's keys.", "bash", `{"script": "ls ~/.ssh"}`, "[exit status 2]"},
		{"A tool that I do not have.", "teleport", `{}`, "there is no tool"},
	}}
}

func (s *script) next(_ context.Context, talk []message) (message, error) {
	if s.at > 0 {
		if got, want := talk[len(talk)-1].Content, s.steps[s.at-1].want; !strings.Contains(got, want) {
			return message{}, fmt.Errorf("step %d: the result has no %q: %q", s.at, want, got)
		}
	}
	if s.at == len(s.steps) {
		return message{Role: "assistant", Content: "Done."}, nil
	}
	now := s.steps[s.at]
	s.at++
	c := call{ID: fmt.Sprint("call-", s.at), Type: "function", Function: function{now.tool, now.arguments}}
	return message{Role: "assistant", Content: now.say, Calls: []call{c}}, nil
}
