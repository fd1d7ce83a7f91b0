package main

import (
	"runtime/debug"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A check is something that an agent has to be able to do.
type check struct {
	name   string
	needs  string // a program
	script string
	bound  sandbox.Bound
	owned  []string // the words of the report, in the bound's line, where the host's lack keeps it from working; none: it always works
}

// works lists them in the order in which an agent does them: each builds on the
// ones before.
func works(w *world) []check {
	checks := []check{
		{"git init, add and commit", "git", `git init -q && ` + identity + `git add . && git commit -q -m "the module as it is" && git log --oneline | tail -1`, "", nil},
		{"git status", "git", `git status | tail -1`, "", nil},
		{"write a package with a test", "", `mkdir greet && cat >greet/greet.go <<<'` + greet + `' && cat >greet/greet_test.go <<<'` + greetTest + `' && ls greet | tr '\n' ' '`, "", nil},
		{"go build", "go", `go build ./greet && echo built`, "", nil},
		{"go test", "go", `go test ./greet`, "", nil},
		{"go vet", "go", `go vet ./greet && echo vetted`, "", nil},
		{"git commit and log", "git", identity + `git add greet && git commit -q -m "Add greet" && git log --format='%h %s, by %an' -1`, "", nil},
		{"a server and a client on loopback", "python3", loopback, policy.BoundNetwork, []string{"sockets cannot be made"}},
	}
	if w.own {
		checks = append(checks, check{"go build this program itself", "go", `go build -o /dev/null ./examples/quickstart && echo built`, policy.BoundFiles, []string{"cannot be private", "not bounded at all"}})
	}
	return checks
}

// identity lets a commit work where the user has none configured.
const identity = `if ! git config user.email >/dev/null; then export GIT_AUTHOR_NAME=Agent GIT_AUTHOR_EMAIL=agent@example.org GIT_COMMITTER_NAME=Agent GIT_COMMITTER_EMAIL=agent@example.org; fi && `

const greet = `package greet

// Greet greets.
func Greet(name string) string { return "Hello, " + name }
`

const greetTest = `package greet

import "testing"

func TestGreet(t *testing.T) {
	if got := Greet("gopher"); got != "Hello, gopher" {
		t.Fatal(got)
	}
}
`

// loopback is the sandbox's own: it is not the harness's.
const loopback = `python3 - <<'END'
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
conn, _ = server.accept()
conn.sendall(b"hello from inside")
print(client.recv(100).decode())
END`

// ownModule is the module that this program was built from.
func ownModule() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
}

const widest = 90

// lastLine is what a line of the table has room for.
func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	line = strings.TrimPrefix(line, "bash: line 1: ")
	if len(line) > widest {
		line = line[:widest] + "..."
	}
	return line
}
