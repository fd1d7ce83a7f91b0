package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/presets"
)

// madeOrigin makes, outside, a repository with names that programs obey, and a branch on which they differ.
const madeOrigin = `mkdir -p origin/.vscode origin/.husky origin/pkg/.devcontainer home; cd origin; git init -q -b main; git config user.email u@example.com; git config user.name u
for f in .vscode/settings.json .husky/pre-commit .pre-commit-config.yaml rust-toolchain.toml .tool-versions pkg/.devcontainer/devcontainer.json pkg/.envrc a; do echo one > $f; done
git add -A; git commit -qm one; git switch -qc other; echo two > .vscode/settings.json; git rm -q .husky/pre-commit; git mv pkg lib; git commit -qam two; git switch -q main; cd ..
mkdir ws ws/app; git -C ws init -q -b main; git -C ws config user.email u@example.com; git -C ws config user.name u; cp -r origin/.vscode origin/pkg ws/app/; git -C ws add -A; git -C ws commit -qm one
tar -C origin --exclude .git -cf ws/tree.tar .
`

// madeUses are what tools do with such trees, each command of a case in one after the other.
var madeUses = []struct {
	name     string
	commands []string
}{
	{"clone, switch, reset, stash, rm", []string{"git clone -q ../origin c && cat c/.vscode/settings.json c/pkg/.envrc && git -C c status --porcelain | (! grep .)",
		"cd c && git switch -q other && grep two .vscode/settings.json && test ! -e .husky/pre-commit && test -e lib/.envrc && git switch -q main && git status --porcelain | (! grep .)",
		"cd c && echo x >> .tool-versions && git stash -q && git reset -q --hard other && git checkout -q main && git clean -fdxq", "rm -rf c && test ! -e c"}},
	{"worktree add, and its end", []string{"git worktree add -q wt && cat wt/app/.vscode/settings.json", "cd wt && echo x > .envrc && git status --porcelain | grep .envrc", "git worktree remove --force wt"}},
	{"submodule add and update", []string{"git -c protocol.file.allow=always submodule add -q ../origin sub && cat sub/.vscode/settings.json", "git -C sub fetch -q && git -C sub checkout -q origin/other && grep two sub/.vscode/settings.json",
		"git -c protocol.file.allow=always submodule update -q && grep one sub/.vscode/settings.json"}},
	{"tar x and what npm does", []string{"mkdir t && tar -C t -xf tree.tar && cat t/.husky/pre-commit",
		"mkdir -p node_modules/.p-x1 && cp -r t/. node_modules/.p-x1 && mv node_modules/.p-x1 node_modules/p && mv node_modules/p node_modules/.p-x2 && mkdir node_modules/p && cp -r t/. node_modules/p && rm -rf node_modules/.p-x2",
		"rm -rf node_modules && cp -r t node_modules && rm -rf node_modules t"}},
}

// madeWorkspace makes a workspace beside the repositories of madeOrigin, and returns it and its policy.
func madeWorkspace(t *testing.T, w walls) (dir string, p Policy) {
	kerneltest.Need(t, kerneltest.Command("git"))
	base := realTemp(t)
	t.Setenv("HOME", base+"/home")
	asUser(t, base, madeOrigin)
	p = presets.New(base+"/ws", os.Getenv, nil).Policy(true)
	p.Files.Read = append(p.Files.Read, base+"/origin")
	p.Files.Private = append(p.Files.Private, "/tmp")
	p.May = append(p.May, w.may...)
	for name, value := range map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "protocol.file.allow", "GIT_CONFIG_VALUE_0": "always"} {
		p.Env.Set[name] = value
	}
	return base + "/ws", p
}

// TestKernelTreesOfTheToolsOwn: what git, tar and npm make is the tool's, in one command, across those of a Sandbox and those of a session.
func TestKernelTreesOfTheToolsOwn(t *testing.T) {
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		for _, how := range []string{"one command", "commands of a Sandbox", "commands of a session"} {
			t.Run(how, func(t *testing.T) {
				dir, p := madeWorkspace(t, w)
				s, err := New(p)
				if err != nil {
					t.Fatal(err)
				}
				command := s.Command
				if how == "commands of a session" {
					session, err := s.Open(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					defer session.Close()
					command = session.Command
				}
				for _, c := range madeUses {
					commands := c.commands
					if how == "one command" {
						commands = []string{"(" + strings.Join(commands, ") && (") + ")"}
					}
					for _, text := range commands {
						cmd := command("bash", "-ec", text)
						cmd.Dir = dir
						if out, err := cmd.CombinedOutput(); err != nil {
							t.Fatalf("%s: %s: %v\n%s\n%s", c.name, text, err, out, cmd.Report())
						}
					}
				}
				cmd := command("bash", "-c", "echo x > .envrc; mkdir app/.idea; mkdir app/.cargo; echo x > app/.cargo/config.toml; echo x > app/pkg/.envrc; ln -s a app/.mcp.json; mv app/.vscode v")
				cmd.Dir = dir
				cmd.Run()
				for _, n := range []string{".envrc", "app/.idea", "app/.cargo/config.toml", "app/.mcp.json", "v"} {
					if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
						t.Errorf("%s was made in a directory of the user's", n)
					}
				}
				if b, _ := os.ReadFile(dir + "/app/pkg/.envrc"); string(b) != "one\n" {
					t.Errorf("the user's .envrc is %q", b)
				}
			})
		}
	})
}

// TestKernelReportNamesWhatWasMadeInNewTrees: each name once, and up to a bound.
func TestKernelReportNamesWhatWasMadeInNewTrees(t *testing.T) {
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		dir, p := madeWorkspace(t, w)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			script     string
			want, none []string
		}{
			{"git clone -q ../origin c; echo x > c/.envrc; echo y >> c/.envrc; touch c/plain", []string{dir + "/c/.vscode,", dir + "/c/.envrc", dir + "/c/pkg/.devcontainer", "programs outside"}, []string{"settings.json", "plain", "more"}},
			{"cat c/.envrc c/.vscode/settings.json; rm c/.envrc", nil, []string{"made in directories"}},
			{"for i in $(seq 60); do mkdir -p m/$i/.vscode; done", []string{dir + "/m/1/.vscode", "and more"}, nil},
		} {
			cmd := s.Command("bash", "-ec", c.script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			line := strings.Join(cmd.Report().Bound("files").Notes, "\n")
			for _, text := range c.want {
				if !strings.Contains(line, text) || strings.Count(line, text) != 1 && text != "programs outside" {
					t.Errorf("%s: the report does not say %q once: %s", c.script, text, line)
				}
			}
			if slices.ContainsFunc(c.none, func(text string) bool { return strings.Contains(line, text) }) {
				t.Errorf("%s: the report says one of %q: %s", c.script, c.none, line)
			}
		}
	})
}

// TestKernelMadeLastsAsLongAsItsSandbox: another Sandbox knows nothing of what one's tools have made, the next command of the process's default sandbox
// does, and Protect.Everywhere has nothing of it.
func TestKernelMadeLastsAsLongAsItsSandbox(t *testing.T) {
	eachWall(t, gitSets, func(t *testing.T, w walls) {
		dir, p := madeWorkspace(t, w)
		try := func(command func(string, ...string) *Cmd, script string, works bool) {
			t.Helper()
			cmd := command("bash", "-ec", script)
			cmd.Dir = dir
			if out, err := cmd.CombinedOutput(); (err == nil) != works {
				t.Errorf("%s: %v\n%s", script, err, out)
			}
		}
		made := func(p Policy) *Sandbox {
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		one, two := made(p), made(p)
		try(one.Command, "mkdir new; echo x > new/.envrc", true)
		try(two.Command, "echo x > new/.envrc", false)
		try(two.Command, "mkdir new/in; echo x > new/in/.envrc", true)
		try(one.Command, "echo x > new/in/.envrc", false)
		killed := one.Command("bash", "-ec", "mkdir late; echo made; sleep 60")
		killed.Dir = dir
		said, err := killed.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := killed.Start(); err != nil {
			t.Fatal(err)
		}
		said.Read(make([]byte, 1))
		killed.Process.Kill()
		killed.Wait()
		try(one.Command, "cd late; mkdir -p x; echo x > x/.envrc", true)
		all := p
		all.Files.Protect.Everywhere = true
		try(made(all).Command, "mkdir held; echo x > held/.envrc", false)

		SetDefault(func(string) Policy { return p })
		defer SetDefault(nil)
		try(Command, "mkdir own; echo x > own/.envrc", true)
		try(Command, "echo y > own/.vimrc", true)
		try(one.Command, "echo y > own/.vimrc", false)
	})
}
