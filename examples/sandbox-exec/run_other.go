//go:build !linux && !darwin

package main

import (
	"errors"
	"io"

	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

func native([]string, int) (status int, done bool) { return 0, false }

func classOf(*sbpl.Profile, sbpl.Verdict) (rule sbpl.Rule, ok bool) { return rule, false }

func classes(out, errs io.Writer, profile *sbpl.Profile) int {
	io.WriteString(errs, "sandbox-exec: there is no sandbox on this system\n")
	return statusSystem
}

func run(*options, *sbpl.Profile, io.Writer) (int, error) {
	return statusSystem, errors.New("sandbox_apply: there is no sandbox on this system")
}
