// Quickstart shows a sandbox at work: in a copy of the Go module around the
// working directory it runs git and go as an agent would, and then tries to do
// what an agent must not. It prints what came of each, and which bounds held by
// which mechanisms.
//
//	go run ./examples/quickstart
//
// Where the host cannot hold the default policy, as in most containers, it says so
// and goes on with what the host has; an attempt that goes through there is marked
// as lost, in the words of the report.
//
// It exits with 1 if anything that must work failed, or anything that must be
// refused succeeded although its bound is said to be held. It needs bash; what a
// missing program would be needed for (git, go, python3 ...) is skipped by name. It
// works in a temporary directory, which it removes, and needs no network.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
	fmt.Println("A sandbox at work; where nothing has been compiled yet, the go commands take a minute or two.")
	began := time.Now()
	failed, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
	fmt.Printf("%d failed, in %.1f s\n", failed, time.Since(began).Seconds())
	if failed > 0 {
		os.Exit(1)
	}
}

// run does it all and says how many checks failed.
func run() (failed int, err error) {
	if _, err := exec.LookPath("bash"); err != nil {
		return 0, err
	}
	w, err := newWorld()
	if err != nil {
		return 0, err
	}
	defer w.close()
	return w.run(os.Stdout)
}

// run does in the world what has to work, and what must be refused.
func (w *world) run(out io.Writer) (failed int, err error) {
	fmt.Fprintf(out, "The workspace: %s\n", w.about)
	p := sandbox.Workspace(w.workspace)
	s, err := sandbox.New(p)
	if errors.Is(err, errors.ErrUnsupported) {
		// In a container that allows no namespaces, for example. This policy accepts that files and processes are bounded
		// by what the host has; on a host that holds the default it changes nothing.
		p = p.InContainer()
		if s, err = sandbox.New(p); err == nil {
			fmt.Fprintf(out, "This host cannot hold the default policy: go run ./examples/doctor says why, and what would change it.\n"+
				"It goes on with policy.InContainer(), which accepts losses of the bounds %v; what they let through is marked.\n", p.May)
		}
	}
	if err != nil {
		return 0, err
	}
	defer s.Close()
	d := desk{sandbox: s, world: w, may: p.May, out: out}

	fmt.Fprintf(out, "\nMust work:\n")
	for _, c := range works(w) {
		d.mustWork(c)
	}
	fmt.Fprintf(out, "\nMust be refused:\n")
	for _, a := range attacks(w) {
		d.mustFail(a)
	}
	fmt.Fprintf(out, "\nThe report of the last command:\n%v\n", d.last)
	return d.failed, nil
}

// A desk runs commands and keeps the score.
type desk struct {
	sandbox *sandbox.Sandbox
	world   *world
	may     []sandbox.Bound // the bounds that may be weaker here
	out     io.Writer
	last    *sandbox.Report
	failed  int
}

// bash runs a script in the sandbox.
func (d *desk) bash(script string) (output string, err error) {
	cmd := d.sandbox.Command("bash", "-c", script)
	cmd.Dir = d.world.workspace
	out, err := cmd.CombinedOutput()
	d.last = cmd.Report()
	for _, b := range d.last.Bounds {
		if b.State != sandbox.Held && b.State != sandbox.Partly && b.State != sandbox.Open && !slices.Contains(d.may, b.Bound) {
			return string(out), fmt.Errorf("%w: %s\n%v", errNotHeld, b.Bound, d.last)
		}
	}
	return string(out), err
}

var errNotHeld = errors.New("a bound was not held")

func (d *desk) mustWork(c check) {
	if d.lacks(c.name, c.needs) {
		return
	}
	out, err := d.bash(c.script)
	switch lost := d.owned(c.bound, c.owned...); {
	case err == nil:
		d.line("ok", d.shown(out))
	case lost != "" && !errors.Is(err, errNotHeld):
		d.line("lost", lost)
	default:
		d.failed++
		d.line("FAILED", err.Error()+": "+out)
	}
}

func (d *desk) mustFail(a attack) {
	if d.lacks(a.name, a.needs) {
		return
	}
	// An attempt without its program would show nothing.
	absent := a.needs + " is not in the sandbox\n"
	out, err := d.bash(fmt.Sprintf("command -v %q >/dev/null || { printf %%s %q; exit; }; %s", cmp.Or(a.needs, "echo"), absent, a.script))
	damage, lost := a.damage(out), d.owned(a.bound, append(a.owned, "not bounded at all")...) // the status says little: what counts is what happened
	switch {
	case damage == "" && out == absent:
		d.line("--", d.shown(out))
	case damage == "" && !errors.Is(err, errNotHeld):
		d.line("ok", d.shown(out))
	case damage != "" && lost != "":
		d.line("lost", damage+": "+lost)
	default:
		d.failed++
		d.line("FAILED", cmp.Or(damage, fmt.Sprint(err)))
	}
}

// lacks begins a line, and ends it if a program is missing.
func (d *desk) lacks(name, program string) bool {
	fmt.Fprintf(d.out, "  %-34s ", name)
	if program == "" {
		return false
	}
	_, err := exec.LookPath(program)
	if err != nil {
		d.line("--", program+" is not installed")
	}
	return err != nil
}

// owned is the line of the last report that explains what happened: what is lost of a bound, or noted of it, in one of these words.
func (d *desk) owned(b sandbox.Bound, words ...string) string {
	for _, w := range words {
		for _, said := range slices.Concat(d.last.Bound(b).Lost, d.last.Bound(b).Notes) {
			if what, _, _ := strings.Cut(said, " ("); strings.Contains(what, w) {
				return what
			}
		}
	}
	return ""
}

func (d *desk) shown(out string) string {
	return lastLine(strings.ReplaceAll(out, d.world.dir, "..."))
}

func (d *desk) line(verdict, what string) {
	fmt.Fprintf(d.out, "%-7s %s\n", verdict, what)
}
