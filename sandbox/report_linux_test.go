package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/fixture"
	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A dropCase is a mechanism whose steps are taken out of the plan behind the
// report's back, and what must come of it: mechanisms that are not held and
// bounds that are not, or a step that fails, so that nothing runs.
type dropCase struct {
	drop     plan.Mechanism
	notHeld  string
	states   string
	fails    string // the step; empty: the tool runs
	mayCause string // why it cannot run
}

var dropCases = []dropCase{
	{drop: plan.UserNamespace, fails: ".", mayCause: "only in a new user namespace may ids be mapped, or an ordinary user make the other namespaces"},
	{drop: plan.MountNamespace, fails: ".", mayCause: "the mounts belong to the harness's user namespace, which init is not in"},
	{drop: plan.PIDNamespace, fails: "mount a new /proc", mayCause: "a procfs shows a pid namespace that is init's to show"},
	{drop: plan.NoNewPrivs, fails: "landlock", mayCause: "neither Landlock nor a filter can be loaded by one who could gain rights"},
	{drop: plan.IPCNamespace, fails: "mount the message queues", mayCause: "those of the machine's ipc namespace are not init's to mount"},
	{drop: plan.UTSNamespace, notHeld: "uts namespace", states: "processes weaker"},
	{drop: plan.CgroupNamespace, notHeld: "cgroup namespace", states: "processes weaker"},
	{drop: plan.NetworkNamespace, notHeld: "network namespace", states: "network weaker"},
	{drop: plan.Landlock, notHeld: "landlock", states: "files weaker"},
	{drop: plan.LandlockScope, notHeld: "landlock scope", states: "processes weaker"},
	// The kernel counts filters and does not name them: with one missing neither is shown.
	{drop: plan.Seccomp, notHeld: "supervisor, seccomp, seccomp", states: "files weaker, network weaker, syscalls absent"},
	{drop: plan.Supervisor, notHeld: "supervisor, seccomp, seccomp", states: "files weaker, network weaker, syscalls absent"},
	{drop: plan.Capabilities, notHeld: "no capabilities", states: "privileges weaker"},
	{drop: plan.Keyring, notHeld: "session keyring", states: "privileges weaker"},
	{drop: plan.Rlimits, notHeld: "rlimits", states: "resources absent"},
}

// TestKernelReportNoticesWhatIsMissing drops each mechanism in turn.
func TestKernelReportNoticesWhatIsMissing(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for _, test := range dropCases {
		t.Run("without "+string(test.drop), func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					abi := 1
					if test.drop == plan.LandlockScope {
						abi = 6
					}
					kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr, kerneltest.LandlockABI(abi))
					if !Probe().UserNS {
						t.Fatal("without a user namespace this test would change the machine")
					}
					dropForTest = test.drop
					p := workspaceHere(t)
					p.Network.Explain = p.Network.Explain && test.drop != plan.NetworkNamespace // its sockets are made in a namespace alone
					c := commandIn(t, p, "true")
					err := c.Run()
					if test.fails != "" {
						failsClosed(t, test, c, err)
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					r := c.Report()
					if got := strings.Join(notHeld(r), ", "); got != test.notHeld {
						t.Errorf("not held: %q, want %q\n%s", got, test.notHeld, r)
					}
					if got := weaknesses(r); got != test.states || r.Held() {
						t.Errorf("bounds: %q, want %q; held: %v\n%s", got, test.states, r.Held(), r)
					}
				})
			})
		})
	}
}

func failsClosed(t *testing.T, test dropCase, c *Cmd, err error) {
	t.Helper()
	var failed *StartError
	if !errors.As(err, &failed) || !strings.Contains(failed.Step, strings.Trim(test.fails, ".")) {
		t.Errorf("without %s (%s): %v", test.drop, test.mayCause, err)
	}
	if r := c.Report(); r.Status != "not started" || r.Held() {
		t.Errorf("the report of a tool that did not run:\n%s", r)
	}
}

func notHeld(r *Report) []string {
	var list []string
	for _, b := range r.Bounds {
		for _, m := range b.Mechanisms {
			if !m.Held {
				list = append(list, m.Mechanism)
			}
		}
	}
	return list
}

// TestDropCasesAreComplete: the mechanisms that no step carries out are the
// harness's and the stage's own, and landlock tcp, which is Landlock's ruleset.
func TestDropCasesAreComplete(t *testing.T) {
	covered := map[plan.Mechanism]bool{plan.LandlockNet: true, plan.Subreaper: true, plan.EnvFilter: true, plan.Deadline: true}
	for _, c := range dropCases {
		covered[c.drop] = true
	}
	for _, m := range fixture.Mechanisms {
		if !covered[m] {
			t.Errorf("no test drops %s", m)
		}
	}
}

// TestKernelReportFollowsTheRun asks for the report at each stage of a run.
func TestKernelReportFollowsTheRun(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			p := workspaceHere(t)
			before := commandIn(t, p, "cat; exit 7")
			checkReport(t, "before Start", before.Report(), "promised", Promised)
			in, err := before.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := before.Start(); err != nil {
				t.Fatal(err)
			}
			running := before.Report()
			checkReport(t, "running", running, "running", Held)
			if running.Started.IsZero() || !running.Ended.IsZero() {
				t.Errorf("running: started %v, ended %v", running.Started, running.Ended)
			}
			in.Close()
			if err := before.Wait(); err == nil {
				t.Error("exit 7 is no error")
			}
			ended := before.Report()
			checkReport(t, "ended", ended, "exit status 7", Held)
			if ended.Ended.Before(ended.Started) || ended.Ended.IsZero() {
				t.Errorf("ended: started %v, ended %v", ended.Started, ended.Ended)
			}

			missing := commandIn(t, p, "")
			missing.Path = "/usr/bin/there-is-no-such-tool"
			if err := missing.Run(); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("no such tool: %v", err)
			}
			if r := missing.Report(); r.Held() {
				t.Errorf("a tool that could not run is held:\n%s", r)
			}

			ctx, cancel := context.WithCancel(context.Background())
			s, err := New(p)
			if err != nil {
				t.Fatal(err)
			}
			cancelled := s.CommandContext(ctx, "/bin/sleep", "1000")
			cancelled.Dir = before.Dir
			if err := cancelled.Start(); err != nil {
				t.Fatal(err)
			}
			checkReport(t, "before it is cancelled", cancelled.Report(), "running", Held)
			cancel()
			if err := cancelled.Wait(); err == nil {
				t.Error("cancelled and no error")
			}
			checkReport(t, "cancelled", cancelled.Report(), "signal: killed", Held)

			late := func(after time.Duration) *Report {
				p.Limits.WallClock = after
				c := commandIn(t, p, "exec sleep 1000")
				if err := c.Run(); !errors.Is(err, ErrDeadline) {
					t.Errorf("at its deadline, %v: %v", after, err)
				}
				return c.Report()
			}
			// A machine may be too slow for the evidence to be read by then.
			after := 300 * time.Millisecond
			r := late(after)
			for strings.Contains(r.Status, "before its evidence was read") && after < time.Minute {
				after *= 4
				r = late(after)
			}
			checkReport(t, "deadline", r, fmt.Sprintf("ended at its deadline, %v", after), Held)
		})
	})
}

func checkReport(t *testing.T, when string, r *Report, status string, state State) {
	t.Helper()
	if r.Status != status {
		t.Errorf("%s: status %q, want %q", when, r.Status, status)
	}
	for _, b := range r.Bounds {
		if b.State != state && b.State != Open && !(state == Held && b.Bound == policy.BoundResources && b.State == Partly) {
			t.Errorf("%s: %s is %s, want %s\n%s", when, b.Bound, b.State, state, r)
		}
	}
	if len(r.Bounds) != len(plan.Bounds()) || r.Held() != (state == Held) {
		t.Errorf("%s: %d bounds, held %v", when, len(r.Bounds), r.Held())
	}
}

// TestKernelReportIsSaidWhileAnotherWaits: a harness shows the report of a server that
// it waits for elsewhere. The race detector finds what else goes wrong.
func TestKernelReportIsSaidWhileAnotherWaits(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		for _, way := range []func(c *Cmd) error{
			func(c *Cmd) error {
				if err := c.Start(); err != nil {
					return err
				}
				return c.Wait()
			},
			func(c *Cmd) error { _, err := c.Output(); return err },
		} {
			c := commandIn(t, workspaceHere(t), "exit 3")
			waited := make(chan error, 1)
			go func() { waited <- way(c) }()
			for r := c.Report(); r.Ended.IsZero(); r = c.Report() {
				runtime.Gosched()
			}
			<-waited
			if r := c.Report(); r.Status != "exit status 3" {
				t.Errorf("%s", r)
			}
		}
	})
}

// TestKernelReportPrints compares the table of a whole run with the one in
// testdata, without its numbers.
func TestKernelReportPrints(t *testing.T) {
	kerneltest.Parallel(t)
	kerneltest.InChild(t, kerneltest.Child{}, func(t *testing.T) {
		kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr, kerneltest.LandlockABI(6))
		c := commandIn(t, workspaceHere(t), "exit 0")
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		r := c.Report()
		text := regexp.MustCompile(`\b\d{2,}\b|\d+ (variables|limits)`).ReplaceAllString(r.String(), "N")
		text = strings.Replace(text, "nproc, ", "", 1)                     // root has another limit on processes
		text = strings.Replace(text, ", disk, processes\n", ", disk\n", 1) // root's, where a pid namespace has no limit (before Linux 6.14)
		text = regexp.MustCompile(` +`).ReplaceAllString(text, " ")
		fixture.Golden(t, "report.golden", text)

		data, err := r.JSON()
		if err != nil {
			t.Fatal(err)
		}
		var back Report
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		r.Started, r.Ended = r.Started.Round(0).UTC(), r.Ended.Round(0).UTC() // no monotonic clock in JSON
		back.Started, back.Ended = back.Started.UTC(), back.Ended.UTC()
		if !reflect.DeepEqual(*r, back) {
			t.Errorf("JSON loses something:\n%s\n%s", r, &back)
		}
	})
}

// TestKernelOpenBoundsAreShownOpen opens each bound alone: the tool runs, the
// bound is open, and the others hold.
func TestKernelOpenBoundsAreShownOpen(t *testing.T) {
	kerneltest.Long(t)
	kerneltest.Parallel(t)
	for _, b := range plan.Bounds() {
		t.Run(string(b), func(t *testing.T) {
			kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
				kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
					kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
					p := workspaceHere(t)
					p.Open = []Bound{b}
					c := commandIn(t, p, "exit 5")
					var exit interface{ ExitCode() int }
					if err := c.Run(); !errors.As(err, &exit) || exit.ExitCode() != 5 {
						t.Fatalf("the tool ended with %v", err)
					}
					r := c.Report()
					if line := r.Bound(b); line == nil || line.State != Open {
						t.Errorf("%s is not shown open\n%s", b, r)
					}
					if !r.Held() {
						t.Errorf("not held: %s\n%s", weaknesses(r), r)
					}
				})
			})
		})
	}
}

// TestKernelWholeRootIsHeld: a policy that shows all of the host is held too.
func TestKernelWholeRootIsHeld(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			workspaceHere(t)
			for _, files := range []Files{{Read: []string{"/"}}, {Read: []string{"/"}, Write: []string{filepath.Join(os.Getenv("HOME"), "ws")}}, {Write: []string{"/"}}} {
				c := commandIn(t, Policy{Files: files}, "true")
				if err := c.Run(); err != nil {
					t.Fatal(err)
				}
				if r := c.Report(); !r.Held() {
					t.Errorf("%+v:\n%s", files, r)
				}
			}
		})
	})
}

// TestKernelOneOpenBoundOpensNoOther: with files open the host's processes are
// still not there, and with processes open its files are not, not even by way
// of a process's root.
func TestKernelOneOpenBoundOpensNoOther(t *testing.T) {
	kerneltest.AsEach(t, func(t *testing.T, as kerneltest.User) {
		kerneltest.InChild(t, kerneltest.Child{As: as}, func(t *testing.T) {
			kerneltest.Need(t, kerneltest.HasUserNamespaces, kerneltest.HasMountSetattr)
			secret := filepath.Join(os.Getenv("HOME"), "secret")
			if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
				t.Fatal(err)
			}
			p := workspaceHere(t)
			p.Env.Set = map[string]string{"HARNESS": strconv.Itoa(os.Getpid()), "SECRET": secret}
			const script = `cat $SECRET 2>/dev/null && echo; cat /proc/$HARNESS/root$SECRET 2>/dev/null && echo by root
				[ -d /proc/$HARNESS ] && echo processes; kill -0 $HARNESS 2>/dev/null && echo signals; true`
			for open, want := range map[Bound]string{policy.BoundFiles: "secret\n", policy.BoundProcesses: "processes\nsignals\n"} {
				p.Open = []Bound{open}
				out, err := commandIn(t, p, script).CombinedOutput()
				if err != nil || string(out) != want {
					t.Errorf("%s open: %q, want %q, %v", open, out, want, err)
				}
			}
			p.Open = nil
			dropForTest = plan.Landlock
			c := commandIn(t, Policy{Files: Files{Read: []string{"/"}}}, "true")
			if err := c.Run(); err != nil {
				t.Fatal(err)
			}
			if r := c.Report(); Probe().Landlock.Yes() && weaknesses(r) != "files weaker" {
				t.Errorf("without Landlock's step and with all of the host shown:\n%s", r)
			}
		})
	})
}

// TestKernelNoNewPrivsIsAskedFor: the kernel's answer is evidence where /proc has none.
func TestKernelNoNewPrivsIsAskedFor(t *testing.T) {
	eachWall(t, allSets[:4], func(t *testing.T, w walls) {
		c := attackSandbox(t, attackPolicy(t, "", w), w).Command("true")
		c.Dir = "/"
		if err := c.Run(); err != nil {
			t.Fatal(err)
		}
		if e := c.run.Account().Evidence; e == nil || e.PrivsErrno != 0 {
			t.Errorf("%+v, want errno 0", e)
		}
	})
}
