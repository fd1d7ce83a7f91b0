package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/host"
	"github.com/holdfast-dev/holdfast/sandbox"
)

// A row is what came of a host.
type row struct {
	name, user string
	account    account
	ways       []wayResult
	problems   []string
}

// A wayResult is what came of a way out of New's error.
type wayResult struct {
	in, text string
	result   *result
}

// tryHost runs a harness on a host, and once more for each way out.
func (w *world) tryHost(ctx context.Context, h habitat) row {
	r := row{name: h.name, user: h.user}
	problem := func(format string, a ...any) { r.problems = append(r.problems, fmt.Sprintf(format, a...)) }
	failed := func(what string, err error) {
		if errors.As(err, new(unableError)) {
			w.miss(fmt.Sprintf("%s (%s)%s", h.name, h.user, what), err)
			return
		}
		problem("%s: %v", what, err)
	}
	var err error
	var more []string
	if h.name == privileged {
		more = []string{"control"}
	}
	if r.account, err = w.ask(ctx, h, nil, more...); err != nil {
		failed("", err)
		return r
	}
	if n := len(acts()); len(more) > 0 && len(r.account.Control) > n/5 {
		problem("of %d acts these do not go through without a sandbox either, and show nothing:\n%s", n, strings.Join(r.account.Control, "\n"))
	}
	if r.account.May == nil || r.account.May.Error == "" {
		if err := w.quickstart(ctx, h); err != nil {
			problem("%v", err)
		}
	}
	r.check("by default", r.account.Default, false)
	if r.account.Default.Error == "" {
		return r
	}
	if r.account.May.Error == "" || !h.unfiltered {
		r.check("with InContainer", r.account.May, true)
	}
	for _, way := range append(r.account.Ways, h.ways...) {
		if h.options == nil {
			break
		}
		options := h.options(way)
		if options == nil {
			continue
		}
		if !strings.Contains(strings.ReplaceAll(r.account.Default.Error, "\n    ", "\n"), strings.SplitN(way.Text, "\n", 2)[0]) {
			problem("the error does not say %q:\n%s", way.Text, r.account.Default.Error)
		}
		a, err := w.ask(ctx, h, options)
		if err != nil {
			failed(" with "+way.Text, err)
			continue
		}
		r.ways = append(r.ways, wayResult{way.In, way.Text, a.Default})
		if a.Default.Error != "" {
			problem("with what the error says, %s, it is refused again: %s", way.Text, a.Default.Error)
			continue
		}
		r.check("with "+way.Text, a.Default, false)
	}
	return r
}

// quickstart runs README's first command there, without go, which would compile its library on each host.
func (w *world) quickstart(ctx context.Context, h habitat) error {
	program, dir := quickstart, "/work"
	if h.direct {
		program, dir = filepath.Join(w.dir, "quickstart"), filepath.Join(w.dir, "work")
	}
	err := w.fresh(h.uid)
	if err == nil {
		_, err = h.run(ctx, nil, "/usr/bin/env", "-C", dir, "PATH=/usr/bin:/bin", "HOME="+dir, "bash", "-c", program+" >quickstart.out 2>&1 || { tail -n 30 quickstart.out >&2; exit 1; }")
	}
	if err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	return nil
}

// check adds what is wrong with a result.
func (r *row) check(where string, got *result, weaker bool) {
	if got.Error != "" {
		if weaker {
			r.problems = append(r.problems, where+" it is refused: "+got.Error)
		}
		return
	}
	for _, f := range got.False {
		r.problems = append(r.problems, where+" this went through: "+f)
	}
	for _, w := range works {
		text := got.Work[w.name]
		lacks := (w.serve != nil || w.name == "server") && r.account.Runtime == string(host.GVisor) // which has no user notification
		if text != "" && !(weaker && lacks) {
			r.problems = append(r.problems, where+" "+w.name+" does not work: "+text)
		}
	}
	if !weaker && got.notHeld() != "" {
		r.problems = append(r.problems, where+" not held: "+got.notHeld())
	}
}

// notHeld lists the bounds that are not held.
func (r *result) notHeld() string {
	var list []string
	for b, s := range r.States {
		if s != sandbox.Held && s != sandbox.Partly && s != sandbox.Open {
			list = append(list, fmt.Sprintf("%s %s", b, s))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// cell is a result in a few words.
func (r *result) cell() string {
	if r == nil {
		return ""
	}
	if r.Error != "" {
		return "refused"
	}
	state := r.notHeld()
	if state == "" {
		state = "every bound held"
	}
	var not []string
	for _, w := range works {
		if r.Work[w.name] != "" {
			not = append(not, w.name)
		}
	}
	if len(not) > 0 {
		state += "; not: " + strings.Join(not, ", ")
	}
	return fmt.Sprintf("%s; %.0f ms", state, r.Start)
}

// line is a row for the log.
func (r row) line() string {
	parts := []string{fmt.Sprintf("%s (%s)", r.name, r.user)}
	if r.account.Default != nil {
		parts = append(parts, "default: "+r.account.Default.cell())
	}
	if m := r.account.May; m != nil {
		parts = append(parts, "weaker: "+m.cell())
		if m.Error == "" {
			parts = append(parts, fmt.Sprintf("%d of %d acts went through, as the report says", len(m.Went), m.Acts))
		}
	}
	for _, w := range r.ways {
		parts = append(parts, "remedy: "+w.result.cell())
	}
	if r.name == privileged {
		parts = append(parts, fmt.Sprintf("without a sandbox %d of %d acts go through", len(acts())-len(r.account.Control), len(acts())))
	}
	return strings.Join(parts, " | ")
}

// tableOf is the table in Markdown.
func tableOf(rows []row) string {
	var b strings.Builder
	b.WriteString("| host | harness | default | with the remedy of the message | with `InContainer` |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		var ways []string
		for _, w := range r.ways {
			ways = append(ways, w.result.cell())
		}
		slices.Sort(ways)
		weaker := r.account.May.cell()
		if m := r.account.May; m != nil && m.Error == "" {
			weaker += fmt.Sprintf("; %d acts", len(m.Went))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.name, r.user, r.account.Default.cell(), strings.Join(ways, "<br>"), weaker)
	}
	fmt.Fprintf(&b, "\n%s\n", strings.Join(versions(rows), "; "))
	return b.String()
}

// versions are those of the kernel and of what made the hosts.
func versions(rows []row) []string {
	var list []string
	for _, v := range []struct{ host, program, flag string }{
		{"", "uname", "-sr"}, {"Docker", "dockerd", "--version"}, {"Podman", "podman", "--version"}, {"(runc)", "runc", "--version"}, {"(crun)", "crun", "--version"}, {"gVisor", "runsc", "--version"},
	} {
		if !slices.ContainsFunc(rows, func(r row) bool { return strings.Contains(r.name, v.host) }) {
			continue
		}
		if out, err := exec.Command(v.program, v.flag).Output(); err == nil {
			first, _, _ := strings.Cut(string(out), "\n")
			if path, err := exec.LookPath(v.program); err == nil && strings.HasSuffix(first, "VERSION_MISSING") { // go install knows it
				if info, err := buildinfo.ReadFile(path); err == nil {
					first = strings.TrimSuffix(first, "VERSION_MISSING") + info.Main.Version
				}
			}
			list = append(list, first)
		}
	}
	return list
}

const tableBegins, tableEnds = "<!-- table of internal/hosttest -->\n", "<!-- end of the table -->\n"

// miss notes what could not be run.
func (w *world) miss(what string, err error) {
	fmt.Printf("not run: %s: %v\n", what, err)
	w.missing = append(w.missing, what)
}

// writeTable puts the table into a file. If something could not be run, or the file has rows that the table lacks, it writes only a table that may be partial.
func writeTable(file, table string, missing []string, partial bool) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, old, _ := strings.Cut(string(text), tableBegins)
	old, _, _ = strings.Cut(old, tableEnds)
	have := hostsOf(table)
	for _, h := range hostsOf(old) {
		if !slices.Contains(have, h) && !slices.Contains(missing, h) {
			missing = append(missing, h)
		}
	}
	if len(missing) > 0 && !partial {
		return fmt.Errorf("%s is not written, since these would be missing (-partial writes it all the same):\n    %s", file, strings.Join(missing, "\n    "))
	}
	return replaceTable(file, table)
}

var patched = regexp.MustCompile(`(Linux [0-9]+\.[0-9]+)[^,|]*`)

// hostsOf lists the rows of a table as miss names them, each kernel by two numbers alone: its patches differ.
func hostsOf(table string) (list []string) {
	for line := range strings.Lines(table) {
		if cells := strings.Split(patched.ReplaceAllString(line, "$1"), " | "); strings.HasPrefix(line, "| ") && len(cells) > 2 {
			list = append(list, fmt.Sprintf("%s (%s)", strings.TrimPrefix(cells[0], "| "), cells[1]))
		}
	}
	return list
}

// replaceTable puts the table between its marks in a file.
func replaceTable(file, table string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		return fmt.Errorf("%s has no marks %q and %q", file, tableBegins, tableEnds)
	}
	return os.WriteFile(file, []byte(before+tableBegins+table+tableEnds+after), 0o644)
}
