package tooltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// userMade is what a user has before a tool runs: settings of git in several files, and ~/src with a repository "project" (.vscode, .husky, a filter as
// git-lfs has it, a submodule "lib") and linked worktrees of it.
const userMade = `
mkdir -p src bin .config/git
printf '[user]\n\tname = User\n\temail = me@home\n[init]\n\tdefaultBranch = main\n[protocol "file"]\n\tallow = always\n[includeIf "gitdir:~/src/"]\n\tpath = .gitconfig-work\n' > .gitconfig
printf '[user]\n\temail = me@work\n[filter "lfs"]\n\tclean = sed s/^/pointer:/\n\tsmudge = sed s/^pointer://\n\trequired = true\n' > .gitconfig-work
printf '.DS_Store\n' > .config/git/ignore
printf '*.crlf text eol=crlf\n' > .config/git/attributes
cd src
git init -q lib; cd lib; mkdir sub; echo s > sub/s; git add .; git commit -qm lib; cd ..
git init -q project; cd project; mkdir -p .vscode .husky sub other
echo '{}' > .vscode/settings.json; echo 'npm test' > .husky/pre-commit; echo a > a; echo s > sub/s; echo o > other/o
echo '*.bin filter=lfs' > .gitattributes; echo content > b.bin; echo '.claude/' > .gitignore
git add .; git submodule --quiet add ../lib lib; git commit -qm one
git worktree add -q -b side ../wt; git worktree add -q -b agent .claude/worktrees/x; git -C lib worktree add -q -b t ../../libwt; git -C ../wt submodule --quiet update --init
cd ..; git init -q --separate-git-dir=$PWD/elsewhere.git apart; cd apart; echo a > a; git add a; git commit -qm a
`

// A userRow is a promise to users: what it is and the page that makes it, a workspace below ~/src, a script that runs there in a sandbox, and the text that
// it has to print, status 0 understood. Rows share the user's files, so a row makes what it needs and leaves nothing that another would meet.
type userRow struct {
	promise, page string
	workspace     string // "": project
	script        string
	prints        string
	outside       string // runs first, in the workspace, without a sandbox
	change        func(p *sandbox.Policy)
}

// gitUse is a day's work; the file "a", or what FILE names, is changed.
const gitUse = `n=$(pwd | cksum | tr ' ' -); git status --porcelain; f=${FILE:-a}; git checkout -q -b topic-$n; echo x >> $f; git add $f; git commit -qm tool; git log -1 --format='%an %ae'
echo y >> $f; git stash -q; git stash pop -q; git commit -qam more; git checkout -q -b base-$n HEAD~2; git commit -q --allow-empty -m base; git rebase -q base-$n topic-$n; git log --oneline base-$n.. | wc -l
git gc -q; git fsck --no-dangling; git status --porcelain; echo done`

const gitUsed = "User me@work\n2\ndone\n"

var gitRows = []userRow{
	{promise: "git works in a repository", page: "harnesses", script: gitUse, prints: gitUsed},
	{promise: "git works in a linked worktree", page: "harnesses", workspace: "wt", script: gitUse, prints: gitUsed},
	{promise: "git works in a worktree inside the repository", page: "harnesses", workspace: "project/.claude/worktrees/x", script: gitUse, prints: gitUsed},
	{promise: "git works in a sub-directory", page: "harnesses", workspace: "project/sub", script: "FILE=s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a sub-directory of a linked worktree", page: "harnesses", workspace: "wt/sub", script: "FILE=s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a submodule", page: "harnesses", workspace: "project/lib", script: "FILE=sub/s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a sub-directory of a submodule", page: "harnesses", workspace: "project/lib/sub", script: "FILE=s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a submodule of a linked worktree", page: "harnesses", workspace: "wt/lib", script: "FILE=sub/s\n" + gitUse, prints: gitUsed},
	{promise: "git works in a worktree of a submodule", page: "harnesses", workspace: "libwt", script: "FILE=sub/s\n" + gitUse, prints: gitUsed},
	{promise: "git works with a separate git directory that the policy names", page: "policy", workspace: "apart", script: gitUse, prints: gitUsed,
		change: func(p *sandbox.Policy) {
			p.Files.Write = append(p.Files.Write, filepath.Dir(p.Dir)+"/elsewhere.git")
		}},
}

func TestKernelGitWhereUsersLive(t *testing.T) { eachUser(t, gitRows) }

// eachUser runs the rows as root in /root, and as an ordinary user in a home below /home.
func eachUser(t *testing.T, rows []userRow) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	needTools(t, []string{"git"})
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		home := "/home/user"
		if as == kerneltest.Root {
			home = "/root"
		}
		kerneltest.InChild(t, kerneltest.Child{As: as, Home: home, Timeout: 4 * time.Minute}, func(t *testing.T) {
			t.Setenv("PATH", home+"/bin:"+os.Getenv("PATH"))
			userRuns(t, home, userMade)
			for _, row := range rows {
				t.Run(row.promise+" ("+row.page+")", func(t *testing.T) { row.run(t, home) })
			}
		})
	})
}

func userRuns(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("outside: %v\n%s", err, out)
	}
}

func (row userRow) run(t *testing.T, home string) {
	dir := filepath.Join(home, "src", row.workspace)
	if row.workspace == "" {
		dir = home + "/src/project"
	}
	userRuns(t, dir, row.outside)
	p := sandbox.Workspace(dir)
	if row.change != nil {
		row.change(&p)
	}
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := s.Command("bash", "-euo", "pipefail", "-c", row.script)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = dir, &stderr
	if out, err := cmd.Output(); err != nil || string(out) != row.prints {
		t.Errorf("%v\n%s%s\nwant %q\n%v", err, out, stderr.String(), row.prints, cmd.Report())
	}
}
