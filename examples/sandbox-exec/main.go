package main

import (
	"fmt"
	"io"
	"os"

	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

// Statuses of sysexits(3), as sandbox-exec has them.
const (
	statusUsage   = 64
	statusProfile = 65
	statusSystem  = 71
)

func main() { os.Exit(mainStatus(os.Args, os.Stdout, os.Stderr)) }

func mainStatus(args []string, out, errs io.Writer) int {
	fail := func(status int, err error) int {
		fmt.Fprintf(errs, "sandbox-exec: %v\n", err)
		return status
	}
	o, err := parse(args[1:])
	if err != nil {
		fail(0, err)
		io.WriteString(errs, usage)
		return statusUsage
	}
	if o.explain == nil && !o.classes {
		if status, done := native(args, len(o.command)); done {
			return status
		}
	}
	profile, err := o.profile()
	if err != nil {
		return fail(statusProfile, err)
	}
	switch {
	case o.explain != nil:
		return explain(out, profile, o.explain[0], o.explain[1])
	case o.classes && len(o.command) == 0:
		return classes(out, errs, profile)
	}
	status, err := run(o, profile, errs)
	if err != nil {
		return fail(status, err)
	}
	return status
}

// explain prints what the profile answers, and how the rule is held here.
func explain(out io.Writer, profile *sbpl.Profile, operation, argument string) int {
	here, err := profile.Here()
	if err != nil {
		here = profile
	}
	v := here.Evaluate(operation, argument)
	word, status := "deny", 1
	if v.Allow {
		word, status = "allow", 0
	}
	fmt.Fprintf(out, "%s %s %s\n", word, operation, argument)
	if v.At != "" {
		fmt.Fprintf(out, "  rule: %s %s\n", v.At, v.Text)
	}
	fmt.Fprintf(out, "  why:  %s\n", v.Why)
	if rule, ok := classOf(profile, v); ok {
		fmt.Fprintf(out, "  here: %s\n", rule.Class)
		if rule.Why != "" {
			fmt.Fprintf(out, "        %s\n", rule.Why)
		}
		if d := rule.Differs(operation); d != nil {
			fmt.Fprintf(out, "        %s for %s: %s\n", d.Toward, operation, d.Why)
		}
	}
	return status
}
