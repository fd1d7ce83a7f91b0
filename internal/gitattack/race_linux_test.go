package gitattack

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// locks are files that a git outside makes, writes and renames to a name that is protected.
var locks = []string{".git/config.lock", ".git/modules/lib/config.lock", ".gitmodules.lock", ".git/index.lock", ".git/config.worktree.lock", ".git/worktrees/wt/config.worktree.lock"}

var raceWays = []string{"open and write later", "open and write at once", "read and write", "link", "replace", "exchange", "remove and make", "take away and put back", "truncate"}

// writers are the user's commands that write what the locks are for; %d is a number.
var writers = []string{":config branch.b%d.remote origin", "lib:config branch.b%d.merge refs/heads/main", ":config -f .gitmodules submodule.lib.branch b%d", ":update-index --chmod=+x a", ":update-index --chmod=-x a"}

// The user's own git writes its configuration while a tool waits for the lock files.
func TestKernelGitAttackRacesWithTheUsersGit(t *testing.T) {
	kerneltest.Long(t)
	eachRace(t, func(r *runner, how string, spin bool) *finding {
		stop := r.race(how, spin)
		for n := range raceRounds(r.t) {
			for _, c := range say(strings.Split(strings.ReplaceAll(strings.Join(writers, "\n"), "%d", strconv.Itoa(n)), "\n")...) {
				if f := r.outsideCommand(c); f != nil {
					stop()
					return f
				}
			}
		}
		stop()
		return nil
	})
}

// A second sandbox's tool writes the configuration with git, as it may, while the first waits.
func TestKernelGitAttackRacesWithAnotherSandbox(t *testing.T) {
	kerneltest.Long(t)
	eachRace(t, func(r *runner, how string, spin bool) *finding {
		var ops []op
		for n := range raceRounds(r.t) {
			ops = append(ops, git("", "config", "user.name", strconv.Itoa(n)), git("lib", "config", "user.email", strconv.Itoa(n)), git("", "update-index", "--chmod="+[]string{"+x", "-x"}[n%2], "a"))
		}
		stop := r.race(how, spin)
		r.inside(ops)
		stop()
		return nil
	})
}

// raceRounds is how often each race is run: HOLDFAST_GITATTACK_RACE times, or once, or 3 times where all tests are asked for.
func raceRounds(t testing.TB) int {
	n, _ := strconv.Atoi(os.Getenv("HOLDFAST_GITATTACK_RACE"))
	return or(n, kerneltest.Amount(t, 1, 1, 3))
}

// eachRace runs one body for each way to take a lock, and looks for what came of it.
func eachRace(t *testing.T, body func(r *runner, how string, spin bool) *finding) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.Command("git"))
			r := newRunner(t)
			k := r.lookup(t, "worktree")
			for i, how := range raceWays {
				if i%kerneltest.Amount(t, 6, 3, 1) != 0 {
					continue
				}
				t.Run(how, func(t *testing.T) {
					r.t = t
					r.lay(t, k)
					f := body(r, how, i%2 == 1)
					if f == nil {
						f = r.afterRace(k)
					}
					if f != nil {
						t.Errorf("%s: %s\nthe racer said: %s", f.what, f.text, clip([]byte(r.said)))
					}
				})
			}
		})
	})
}

// race starts the racer in a sandbox. stop ends it and waits.
func (r *runner) race(how string, spin bool) (stop func()) {
	r.t.Helper()
	forged := index(r.blob, ".git/hooks/post-checkout", "../victim/new")
	c := race{How: how, Locks: locks, Spin: spin, Config: expand(&r.world, "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"%s; false\"\n"), Other: map[string][]byte{
		".git/index.lock": forged, ".gitmodules.lock": []byte("[submodule \"lib\"]\n\tpath = lib\n\turl = ./evil\n\tupdate = none\n"),
	}}
	text, err := json.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.inside([]op{program("evil/program", &r.world), git("", "hash-object", "-w", "evil/program")})
	cmd := r.command(racerName)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := in.Write(append(text, '\n')); err != nil {
		r.t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if first, err := lines.ReadString('\n'); first != "ready\n" {
		r.t.Fatalf("the racer: %q, %v", first, err)
	}
	said := make(chan string)
	go func() {
		rest, _ := io.ReadAll(lines)
		said <- string(rest)
	}()
	return func() {
		_, _ = in.Write([]byte("\n"))
		in.Close()
		r.said = <-said
		if err := cmd.Wait(); err != nil {
			r.t.Logf("the racer: %v", err)
		}
	}
}

// afterRace gives the commands that fall for what a race has left.
func (r *runner) afterRace(k *kept) *finding {
	for _, lock := range locks {
		_ = os.Remove(filepath.Join(r.ws, lock)) // as git tells the user to
	}
	for _, c := range say(":status", "lib:status", ":checkout .", ":checkout -q -b after", "lib:checkout -q -b after") {
		if f := r.outsideCommand(c); f != nil {
			return f
		}
	}
	if text, _ := os.ReadFile(filepath.Join(r.ws, ".gitmodules")); bytes.Contains(text, []byte("evil")) {
		return &finding{"taken over", ".gitmodules is the tool's: " + string(text)}
	}
	return r.changed(k)
}

// command makes a sandbox for this binary under another name.
func (r *runner) command(name string) *sandbox.Cmd {
	r.t.Helper()
	s, err := r.policy(r.ws)
	if err != nil {
		r.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		r.t.Fatal(err)
	}
	c := s.Command(exe)
	c.Args = []string{name}
	c.Dir = r.ws
	return c
}
