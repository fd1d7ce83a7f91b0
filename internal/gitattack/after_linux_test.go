package gitattack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// What a harness itself runs over a workspace belongs into the session: there a plant runs, and reaches no more than the tool did.
// The same commands outside show that the plants are alive.
func TestKernelPlantsRunInTheSessionAlone(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.LandlockABI(6), kerneltest.HasSeccompFilter, kerneltest.Command("git"))
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			every := kerneltest.Amount(t, 8, 8, 1)
			if as == kerneltest.Ordinary && kerneltest.All(t) {
				every = 3 // root has had them all
			}
			var chosen []plant
			for i, p := range plants {
				if i%every == 0 && p.there() {
					chosen = append(chosen, p)
				}
			}
			r := newRunner(t)
			r.plant(chosen)
			kept := filepath.Join(r.base, "planted")
			if err := copyTree(r.run, kept); err != nil {
				t.Fatal(err)
			}
			t.Run("in a session", func(t *testing.T) { r.plantsInSession(t, chosen) })
			r.clear(t)
			if err := os.Rename(kept, r.run); err != nil {
				t.Fatal(err)
			}
			t.Run("outside, alive", func(t *testing.T) { r.plantsOutside(t, chosen) })
		})
	})
}

// there reports whether this machine has what the plant's command needs.
func (p plant) there() bool {
	version, git := strings.CutPrefix(p.need, "git ")
	if !git {
		_, err := exec.LookPath(or(p.need, "sh"))
		return err == nil
	}
	out, _ := exec.Command("git", "version").Output()
	var major, minor, least int
	_, _ = fmt.Sscanf(string(out), "git version %d.%d", &major, &minor)
	_, _ = fmt.Sscanf(version, "2.%d", &least)
	return major > 2 || minor >= least
}

// plant lays a fresh workspace with a clone for each plant.
func (r *runner) plant(list []plant) {
	r.t.Helper()
	r.lay(r.t, r.lookup(r.t, "none"))
	script := strings.Builder{}
	script.WriteString(planting)
	for _, p := range list {
		fmt.Fprintf(&script, "planted %s\n(cd \"$D\"; %s\n)\n", p.name, p.make)
	}
	c := exec.Command("sh", "-c", script.String())
	c.Dir = r.ws
	c.Env = append(r.environment(), "RUN="+r.run, "WS="+r.ws, "CANARY="+r.canary, "VICTIM="+r.victim)
	if out, err := c.CombinedOutput(); err != nil {
		r.t.Fatalf("planting: %v\n%s", err, out)
	}
}

func (r *runner) plantsInSession(t *testing.T, list []plant) {
	before := r.surroundings()
	s, err := sandbox.New(sandbox.Workspace(r.ws))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	session, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			out := r.harness(t, p, func(ctx context.Context) *exec.Cmd { return session.CommandContext(ctx, "sh", "-c", p.run).Cmd })
			if strings.Contains(out, secret) {
				t.Errorf("%q printed the user's secret: %s", p.run, out)
			}
			if _, err := os.Lstat(filepath.Join(r.canary, p.name)); err == nil {
				t.Errorf("%q ran the planted program outside: %s", p.run, out)
			}
			if _, err := os.Lstat(filepath.Join(r.ws, "ran", p.name)); p.executes() && err != nil {
				t.Errorf("%q did not run the planted program inside, which proves nothing: %s", p.run, out)
			}
		})
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(r.canary); len(left) > 0 {
		t.Errorf("programs have run outside: %v", left)
	}
	after := r.surroundings()
	for _, p := range slices.Sorted(maps.Keys(after)) {
		if before[p] != after[p] {
			t.Errorf("%s was %q and is %q", p, before[p], after[p])
		}
		delete(before, p)
	}
	if len(before) > 0 {
		t.Errorf("removed outside: %v", before)
	}
}

func (r *runner) plantsOutside(t *testing.T, list []plant) {
	for _, p := range list {
		t.Run(p.name, func(t *testing.T) {
			var before map[string]string
			if p.does == writes {
				before = r.surroundings()
			}
			out := r.harness(t, p, func(ctx context.Context) *exec.Cmd {
				c := exec.CommandContext(ctx, "sh", "-c", p.run)
				c.Env = r.environment()
				return c
			})
			_, err := os.Lstat(filepath.Join(r.canary, p.name))
			alive := map[effect]bool{executes: err == nil, writes: p.does == writes && !maps.Equal(before, r.surroundings()), leaks: strings.Contains(out, secret), nothing: true}
			if !alive[p.effect()] {
				t.Errorf("%q outside: the plant no longer %s: %s", p.run, p.effect(), out)
			}
		})
	}
}

func (p plant) effect() effect { return or(p.does, executes) }
func (p plant) executes() bool { return p.effect() == executes }

// surroundings are all files outside the workspace.
func (r *runner) surroundings() map[string]string {
	return r.outside(r.lookup(r.t, "none"))
}

// harness runs a plant's command as a harness does, and returns what it printed. The command may fail.
func (r *runner) harness(t *testing.T, p plant, command func(context.Context) *exec.Cmd) string {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := command(ctx)
	c.Dir = filepath.Join(r.ws, p.name)
	c.WaitDelay = 10 * time.Second
	if !p.tty {
		out, _ := c.CombinedOutput()
		return string(out)
	}
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	var out bytes.Buffer
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&out, master) // until the last descriptor of the terminal is closed: EIO
	}()
	_ = c.Run()
	terminal.Close()
	<-read
	return out.String()
}
