package sandbox

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
)

// gitSets are how a Workspace is held on a host with namespaces and on one without.
var gitSets = []walls{allSets[0], allSets[3]}

// A gitCase is what a user does with git inside the default Workspace, or cannot do.
type gitCase struct {
	name   string
	make   string // a script that the user runs outside, before, in a directory with HOME below it
	dir    string // the workspace, below that directory
	script string // what the tool runs there; each line of fails has to fail
	fails  string
	after  string // what the user runs outside, afterwards
	change func(p *Policy)
}

// gitMake is what is outside before: the user's configuration, a repository with two commits and a clone of it without a work tree.
const gitMake = `mkdir home; printf '[user]\n\tname = User\n\temail = user@example.com\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n' > home/.gitconfig
git init -q main; cd main; echo one > a; git add a; git commit -qm one; echo two >> a; git commit -qam two; cd ..; git clone -q --bare main remote.git; mkdir ws
`

func eachGitCase(t *testing.T, cases []gitCase) {
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		kerneltest.Need(t, kerneltest.Command("git"))
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, w) })
		}
	})
}

func (c gitCase) run(t *testing.T, w walls) {
	base := realTemp(t)
	t.Setenv("HOME", base+"/home")
	asUser(t, base, gitMake+c.make)
	p := newBuilder(filepath.Join(base, c.dir), os.Getenv, nil).policy(true) // HOME lies in /tmp, which Workspace would not believe
	p.Files.Private = append(p.Files.Private, "/tmp")
	p.May = append(p.May, w.may...)
	for name, value := range map[string]string{"BASE": base, "GIT_EDITOR": "true", "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"} {
		p.Env.Set[name] = value
	}
	if c.change != nil {
		c.change(&p)
	}
	s, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	tool := func(script string) (string, error) {
		cmd := s.Command("bash", "-ec", script)
		cmd.Dir = filepath.Join(base, c.dir)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		err := cmd.Run()
		return out.String(), err
	}
	if out, err := tool("exec 2>&1; set -x\n" + c.script); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(c.fails) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if out, err := tool(line); err == nil {
			t.Errorf("the tool could: %s\n%s", line, out)
		}
	}
	asUser(t, base, "set -x\n"+c.after)
}

// asUser runs a script as the user.
func asUser(t *testing.T, base, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-ec", script)
	cmd.Dir = base
	cmd.Env = append(os.Environ(), "GIT_EDITOR=true", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("outside: %v\n%s", err, out)
	}
}

func realTemp(t *testing.T) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return base
}
