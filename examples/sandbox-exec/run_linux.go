package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/sbpl"
)

// native has nothing to hand over to here.
func native([]string, int) (status int, done bool) { return 0, false }

// classOf finds how the rule that decided is held on this host.
func classOf(profile *sbpl.Profile, v sbpl.Verdict) (sbpl.Rule, bool) {
	_, rules, err := profile.Policy(sbpl.Options{})
	if err != nil || v.Index >= len(rules) {
		return sbpl.Rule{}, false
	}
	return rules[v.Index], true
}

// classes prints each rule and how it is held.
func classes(out, errs io.Writer, profile *sbpl.Profile) int {
	_, rules, err := profile.Policy(sbpl.Options{})
	if err != nil {
		fmt.Fprintf(errs, "sandbox-exec: %v\n", err)
		return statusProfile
	}
	for _, r := range rules {
		fmt.Fprintln(out, r)
	}
	return 0
}

// run runs the command. The status is the command's, or what goes with the error.
func run(o *options, profile *sbpl.Profile, errs io.Writer) (int, error) {
	policy, rules, err := profile.Policy(sbpl.Options{Strict: o.strict})
	if err != nil {
		return statusProfile, err
	}
	if o.classes {
		for _, r := range rules {
			fmt.Fprintln(errs, r)
		}
	}
	policy.Env.AsGiven = true // as sandbox-exec does
	s, err := sandbox.New(policy)
	if err != nil {
		return statusSystem, fmt.Errorf("sandbox_apply: %w", err)
	}
	defer s.Close()
	cmd := s.Command(o.command[0], o.command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = os.Environ()
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGCONT)
	if err := cmd.Start(); err != nil {
		return statusSystem, notStarted(o.command[0], err)
	}
	go func() {
		for sig := range signals {
			cmd.Process.Signal(sig)
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return statusSystem, err
	}
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// notStarted words the failure of Start: what sandbox-exec calls the failure of
// sandbox_apply is a wall that could not be built.
func notStarted(command string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("execvp() of '%s' failed: %w", command, path.Err)
	}
	return fmt.Errorf("sandbox_apply: %w", err)
}
