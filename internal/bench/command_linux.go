package main

import (
	"os/exec"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// A command is what exec.Cmd and sandbox.Cmd have in common here.
type command struct {
	*exec.Cmd
	Output, CombinedOutput func() ([]byte, error)
}

// in sets the working directory.
func (c command) in(dir string) { c.Cmd.Dir = dir }

func outsideCommand(name string, args ...string) command {
	c := exec.Command(name, args...)
	return command{c, c.Output, c.CombinedOutput}
}

func insideCommand(s *sandbox.Sandbox, name string, args ...string) command {
	c := s.Command(name, args...)
	return command{c.Cmd, c.Output, c.CombinedOutput}
}
