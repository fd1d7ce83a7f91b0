package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// servers are what this test binary is when its argv[1] is one of their names.
var servers = map[string]func(){}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if serve := servers[os.Args[1]]; serve != nil {
			serve()
			os.Exit(0)
		}
	}
	kerneltest.Main(m)
}

// server makes a command that is this test binary as one of its servers, in a
// sandbox that shows the system and a directory of its own.
func server(t *testing.T, name string) *sandbox.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := newSandbox(t, filepath.Dir(exe)).Command(exe, name)
	c.Dir = filepath.Dir(exe)
	return c
}

func newSandbox(t *testing.T, dirs ...string) *sandbox.Sandbox {
	t.Helper()
	p := sandbox.Policy{Files: sandbox.Files{Write: dirs}, Env: sandbox.Env{Pass: []string{"*"}}}
	for _, d := range []string{"/usr", "/bin", "/lib", "/lib64", "/etc"} {
		if _, err := os.Stat(d); err == nil {
			p.Files.Read = append(p.Files.Read, d)
		}
	}
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var walls = regexp.MustCompile(`(?m)^(NoNewPrivs|Seccomp):\s+(\d)$`)

// confinement is what a server says of itself: "NoNewPrivs 1, Seccomp 2" inside.
func confinement() string {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	text := ""
	for _, m := range walls.FindAllSubmatch(status, -1) {
		text += string(m[1]) + " " + string(m[2]) + " "
	}
	return text
}

const confined = "NoNewPrivs 1 Seccomp 2 "
