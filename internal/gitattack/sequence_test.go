package gitattack

import (
	"fmt"
	"strings"
)

// A sequence is one attack: rounds on one fixture.
type sequence struct {
	Seed    uint64
	Class   string // the skeleton that it began as, or "random"
	Fixture string
	Rounds  []round
}

// A round is what the tool does inside, and which commands the user gives outside afterwards.
type round struct {
	Ops  []op
	User []command
}

// An op is one operation of the tool. Paths are relative to the workspace.
type op struct {
	Do   string // a key of the tool's table
	Path string
	To   string // second path; a link's text; a git command's directory is Path
	Text []byte
	Mode uint32
	Flag int    // of open(2) or rename(2)
	Via  string // how Path is spelled: see spell
	Args []string
}

// A command is a git command of the user's, given in Dir below the workspace.
type command struct {
	Dir  string
	Args []string
}

// world is where things are: the same for all sequences of a process.
type world struct {
	run    string // all of a fixture lies below it
	ws     string // the workspace
	home   string
	victim string
	canary string
	head   string // commit ids of the fixtures' history: its tip,
	topic  string // a commit beside it,
	blob   string // and a blob that is a program which leaves a canary
}

// shout is the shell command that proves an execution.
func (w *world) shout() string { return "touch " + w.canary + "/hit" }

// script is a program that proves its execution.
func (w *world) script() []byte { return []byte("#!/bin/sh\n" + w.shout() + "\nexit 0\n") }

func (o op) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q", o.Do, o.Path)
	if o.To != "" {
		fmt.Fprintf(&b, " to %q", o.To)
	}
	if o.Text != nil {
		fmt.Fprintf(&b, " text %q", o.Text)
	}
	if o.Mode != 0 {
		fmt.Fprintf(&b, " mode %#o", o.Mode)
	}
	if o.Flag != 0 {
		fmt.Fprintf(&b, " flags %#x", o.Flag)
	}
	if o.Via != "" {
		fmt.Fprintf(&b, " via %s", o.Via)
	}
	if o.Args != nil {
		fmt.Fprintf(&b, " %q", o.Args)
	}
	return b.String()
}

// describe writes the sequence for people, with the base directory left out.
func (s *sequence) describe(w *world) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, class %s, fixture %s\n", s.Seed, s.Class, s.Fixture)
	for _, r := range s.Rounds {
		for _, o := range r.Ops {
			fmt.Fprintf(&b, "  inside:  %s\n", o)
		}
		for _, c := range r.User {
			fmt.Fprintf(&b, "  outside: (in %q) git %s\n", c.Dir, strings.Join(c.Args, " "))
		}
	}
	return strings.ReplaceAll(b.String(), w.run, "$RUN")
}

func (s *sequence) clone() *sequence {
	c := *s
	c.Rounds = nil
	for _, r := range s.Rounds {
		c.Rounds = append(c.Rounds, round{Ops: append([]op(nil), r.Ops...), User: append([]command(nil), r.User...)})
	}
	return &c
}
