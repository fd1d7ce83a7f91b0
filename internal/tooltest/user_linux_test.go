package tooltest

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// userMade is what a user has before a tool runs: settings of git in several files, and ~/src with a repository
// "project" (.vscode, .husky, a filter as git-lfs has it, a submodule "lib") and linked worktrees of it.
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

// A userRow is a promise to users: what it is, the page that makes it, and a script that shows that it is kept. A new
// row goes to the table of its page, in user_rows_linux_test.go. Rows share the user's files: a row makes what it
// needs, and leaves nothing that another would meet.
type userRow struct {
	promise   string
	page      string
	needs     string // programs, without which the row is skipped
	workspace string // below ~/src; "": project
	outside   string // a script that runs first, in the workspace, without a sandbox
	script    string // runs in the default sandbox of the workspace, by bash -euo pipefail
	prints    string // all that the script prints to its standard output
	status    int    // its exit status
	denied    string // a part of a violation in its report; "": there is none
	after     string // a script that runs last, outside
	change    func(p *sandbox.Policy)
	act       func(t *testing.T, p sandbox.Policy, home string) // in the script's place, for promises about the API
}

// TestKernelPromisesWhereUsersLive plays every row of user_rows_linux_test.go.
func TestKernelPromisesWhereUsersLive(t *testing.T) {
	eachUser(t, slices.Concat(gettingStartedRows, harnessRows, gitRows, sessionRows, networkRows))
}

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
	for name := range strings.FieldsSeq(row.needs) {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s, which is not installed where every user has it", name)
		}
	}
	dir := filepath.Join(home, "src", cmp.Or(row.workspace, "project"))
	userRuns(t, dir, row.outside)
	p := sandbox.Workspace(dir)
	if row.change != nil {
		row.change(&p)
	}
	if row.act != nil {
		row.act(t, p, home)
	} else {
		row.play(t, p, dir)
	}
	userRuns(t, dir, row.after)
}

// play runs the script.
func (row userRow) play(t *testing.T, p sandbox.Policy, dir string) {
	s, err := sandbox.New(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := s.Command("bash", "-euo", "pipefail", "-c", row.script)
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	report := cmd.Report()
	denied := slices.ContainsFunc(report.Violations, func(v sandbox.Violation) bool { return strings.Contains(v.String(), row.denied) })
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != row.status || string(out) != row.prints || denied != (row.denied != "") || !report.Held() {
		t.Errorf("%v\n%s%s\nwant status %d, %q, and denied %q\n%v", err, out, stderr.String(), row.status, row.prints, row.denied, report)
	}
}
