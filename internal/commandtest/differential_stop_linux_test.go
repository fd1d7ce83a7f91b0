package commandtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// obeys is a tool that prints which signals arrive, and a process inside that sends it those whose names it reads. At the end of input it ends.
const obeys = `
	$| = 1; my $tool = $$;
	for my $name ("CONT", "WINCH") { $SIG{$name} = sub { print "$name\n" } }
	my $child = fork;
	if (!$child) { while (<STDIN>) { chomp; kill $_, $tool } exit }
	select undef, undef, undef, .01 until waitpid $child, 1; # perl sees a signal that comes just before a call only after it
	exit 7`

// A stopping is a tool of obeys, and what a test has of it.
type stopping struct {
	*command
	w    *world
	say  func(string)
	read *bufio.Reader
	end  func()
}

func (w *world) obeys(c *command) *stopping {
	in, err := c.StdinPipe()
	w.must(err)
	out, err := c.StdoutPipe()
	w.must(err)
	w.must(c.Start())
	return &stopping{c, w, func(s string) { _, err := fmt.Fprintln(in, s); w.must(err) }, bufio.NewReader(out), func() { in.Close() }}
}

// until waits until the caller sees the process stopped, or continued.
func (s *stopping) until(what int) {
	var ws syscall.WaitStatus
	for {
		_, err := syscall.Wait4(s.Process.Pid, &ws, what, nil)
		if err == syscall.EINTR {
			continue
		}
		if s.w.must(err); what == syscall.WUNTRACED && !ws.Stopped() || what == syscall.WCONTINUED && !ws.Continued() {
			s.w.Fatalf("wait4(2): %#x", ws)
		}
		return
	}
}

// continued waits until the caller has seen the process continue, and the tool its SIGCONT, and returns what the tool says of a
// signal that is sent to it then.
func (s *stopping) continued() string {
	s.until(syscall.WCONTINUED)
	line := func() string {
		line, err := s.read.ReadString('\n')
		s.w.must(err)
		return strings.TrimSpace(line)
	}
	if first := line(); first != "CONT" {
		return first
	}
	s.w.must(s.Process.Signal(syscall.SIGWINCH))
	return line()
}

// stopCases are about tools that are stopped and continued.
var stopCases = []diffCase{
	{name: "a tool that stops itself and is continued by its own process", run: func(w *world) {
		w.run(w.sh("(until grep -q '^State:.*T' /proc/$$/status; do :; done; kill -CONT $$) & kill -STOP $$; exit 7"))
	}},
	{name: "a tool that is stopped and continued at full speed", run: func(w *world) {
		w.run(w.command("/usr/bin/perl", "-e", `my $tool = $$; if (!fork) { for (1..10000) { kill STOP => $tool; kill CONT => $tool } exit } wait; exit 7`))
	}},
	{name: "stopped and continued from inside", run: func(w *world) {
		for name, attr := range map[string]*syscall.SysProcAttr{"": nil, "Setpgid: ": {Setpgid: true}, "Setsid: ": {Setsid: true}} {
			c := w.command("/usr/bin/perl", "-e", obeys)
			c.SysProcAttr = attr
			s := w.obeys(c)
			for n := range 3 {
				s.say("STOP")
				s.until(syscall.WUNTRACED)
				s.say("CONT")
				w.saw(fmt.Sprint(name, "after SIGCONT ", n), s.continued())
			}
			s.end()
			w.err(name+"Wait", c.Wait())
		}
	}},
	{name: "stopped from inside and continued from outside", run: func(w *world) {
		s := w.obeys(w.command("/usr/bin/perl", "-e", obeys))
		for n := range 3 {
			s.say("STOP")
			s.until(syscall.WUNTRACED)
			w.must(s.Process.Signal(syscall.SIGCONT))
			w.saw(fmt.Sprint("after SIGCONT ", n), s.continued())
		}
		s.end()
		w.err("Wait", s.Wait())
	}},
	{name: "a tool that is killed inside while it is stopped", run: func(w *world) {
		s := w.obeys(w.command("/usr/bin/perl", "-e", obeys))
		s.say("STOP")
		s.until(syscall.WUNTRACED)
		s.say("KILL")
		w.err("Wait", s.Wait())
		s.end()
	}},
	{name: "a stopped tool that is killed by its harness", run: func(w *world) {
		s := w.obeys(w.command("/usr/bin/perl", "-e", obeys))
		defer s.end()
		s.say("STOP")
		s.until(syscall.WUNTRACED)
		w.must(s.Process.Kill())
		w.err("Wait", s.Wait())
	}},
	{name: "a stopped tool whose context is cancelled", run: func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s := w.obeys(w.make(ctx, "/usr/bin/perl", []string{"-e", obeys}))
		defer s.end()
		s.say("STOP")
		s.until(syscall.WUNTRACED)
		cancel()
		w.err("Wait", s.Wait())
	}},
	{name: "a stopped tool that is sent a signal", run: func(w *world) {
		s := w.obeys(w.command("/usr/bin/perl", "-e", obeys))
		s.say("STOP")
		s.until(syscall.WUNTRACED)
		w.must(s.Process.Signal(os.Interrupt))
		w.must(s.Process.Signal(syscall.SIGCONT))
		w.err("Wait", s.Wait())
		s.end()
	}},
}
