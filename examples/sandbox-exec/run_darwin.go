package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

// system is macOS's own. Its path is absolute: what PATH has may be anything.
const system = "/usr/bin/sandbox-exec"

// native becomes the system's sandbox-exec, which knows none of our options: it
// holds every rule as it is, and so strictly.
func native(args []string, command int) (status int, done bool) {
	options := slices.DeleteFunc(slices.Clone(args[:len(args)-command]), func(a string) bool { return a == "--strict" })
	options[0] = system
	if err := syscall.Exec(system, append(options, args[len(args)-command:]...), os.Environ()); err != nil {
		fmt.Fprintf(os.Stderr, "sandbox-exec: %s: %v\n", system, err)
	}
	return statusSystem, true
}

func classOf(*sbpl.Profile, sbpl.Verdict) (rule sbpl.Rule, ok bool) { return rule, false }

func classes(out, errs io.Writer, profile *sbpl.Profile) int {
	fmt.Fprintln(errs, "sandbox-exec: macOS holds every rule as it is")
	return 0
}

func run(*options, *sbpl.Profile, io.Writer) (int, error) { return statusSystem, nil }
