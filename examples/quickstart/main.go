// Quickstart shows a sandbox at work: in a copy of the Go module around the
// working directory it runs git and go as an agent would, and then tries to do
// what an agent must not. It prints what came of each, and which bounds held by
// which mechanisms.
//
//	go run ./examples/quickstart
//
// It exits with 1 if anything that must work failed, or anything that must be
// refused succeeded. It needs bash; it uses git and go if they are there. It works
// in a temporary directory, which it removes, and needs no network.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

func main() {
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
	return w.run()
}

// run does in the world what has to work, and what must be refused.
func (w *world) run() (failed int, err error) {
	s, err := sandbox.New(sandbox.Workspace(w.workspace))
	if err != nil {
		return 0, err
	}
	defer s.Close()
	d := desk{sandbox: s, world: w}

	fmt.Printf("The workspace: %s\n\nMust work:\n", w.about)
	for _, c := range works(w) {
		d.mustWork(c)
	}
	fmt.Printf("\nMust be refused:\n")
	for _, a := range attacks(w) {
		d.mustFail(a)
	}
	fmt.Printf("\nThe report of the last command:\n%v\n", d.last)
	return d.failed, nil
}

// A desk runs commands and keeps the score.
type desk struct {
	sandbox *sandbox.Sandbox
	world   *world
	last    *sandbox.Report
	failed  int
}

// bash runs a script in the sandbox.
func (d *desk) bash(script string) (output string, err error) {
	cmd := d.sandbox.Command("bash", "-c", script)
	cmd.Dir = d.world.workspace
	out, err := cmd.CombinedOutput()
	if d.last = cmd.Report(); !d.last.Held() {
		return string(out), fmt.Errorf("not every bound held:\n%v", d.last)
	}
	return string(out), err
}

func (d *desk) mustWork(c check) {
	for _, tool := range c.needs {
		if _, err := exec.LookPath(tool); err != nil {
			d.line("--", c.name, tool+" is not installed")
			return
		}
	}
	out, err := d.bash(c.script)
	if err != nil {
		d.failed++
		d.line("FAILED", c.name, err.Error()+": "+out)
		return
	}
	d.line("ok", c.name, lastLine(strings.ReplaceAll(out, d.world.dir, "...")))
}

func (d *desk) mustFail(a attack) {
	out, _ := d.bash(a.script) // its status says nothing: what counts is what happened
	if damage := a.damage(out); damage != "" {
		d.failed++
		d.line("FAILED", a.name, damage)
		return
	}
	if d.last == nil || !d.last.Held() {
		d.failed++
		d.line("FAILED", a.name, "not every bound held: "+out)
		return
	}
	d.line("ok", a.name, lastLine(strings.ReplaceAll(out, d.world.dir, "...")))
}

func (d *desk) line(verdict, name, what string) {
	fmt.Printf("  %-7s %-34s %s\n", verdict, name, what)
}
