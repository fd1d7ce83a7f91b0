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

// native becomes the system's sandbox-exec, which knows none of our options.
func native(args []string) (status int, done bool) {
	own := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--strict" })
	own[0] = system
	if err := syscall.Exec(system, own, os.Environ()); err != nil {
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
