package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// An answer is one line of output of -session: a piece of what a command has printed, or how it has ended.
type answer struct {
	Command int    `json:"command"` // the number of its line
	Stdout  string `json:"stdout,omitempty"`
	Stderr  string `json:"stderr,omitempty"`
	Exit    *int   `json:"exit,omitempty"` // its status; -1: a signal has ended it, or it did not run
	Signal  string `json:"signal,omitempty"`
	Error   string `json:"error,omitempty"`
}

// A served session runs the lines that it reads.
type served struct {
	session *sandbox.Session
	options options
	stderr  io.Writer
	beside  sync.WaitGroup

	mu  sync.Mutex
	out *json.Encoder
}

// serve runs the lines of in, in one session, and answers on out.
func serve(s *sandbox.Sandbox, o options, in io.Reader, out, stderr io.Writer) ending {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGHUP, syscall.SIGTERM)
	defer stop()
	session, err := s.Open(ctx)
	if err != nil {
		fmt.Fprintln(stderr, "run:", err)
		return ending{status: statusSandbox}
	}
	v := &served{session: session, options: o, stderr: stderr, out: json.NewEncoder(out)}
	v.out.SetEscapeHTML(false)
	last, err := v.lines(ctx, in)
	err = errors.Join(err, session.Close())
	v.beside.Wait()
	if err != nil {
		fmt.Fprintln(stderr, "run:", err)
		return ending{status: statusSandbox}
	}
	return ending{status: last}
}

// lines runs line after line until the input or ctx ends, and returns the status of the last that was waited for.
func (v *served) lines(ctx context.Context, in io.Reader) (last int, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 8<<20)
	for n := 1; ctx.Err() == nil && lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		script, beside := strings.CutSuffix(line, "&")
		switch {
		case line == "":
		case line == "wait":
			v.beside.Wait()
		case beside && !strings.HasSuffix(script, "&"):
			v.beside.Go(func() { v.run(n, script) })
		default:
			last = v.run(n, line)
		}
	}
	return last, lines.Err()
}

// run runs one line and answers it.
func (v *served) run(n int, script string) (status int) {
	cmd := v.session.Command("sh", "-c", script)
	cmd.Dir = v.options.dir
	stdout := &pieces{tell: func(s string) { v.answer(answer{Command: n, Stdout: s}) }}
	stderr := &pieces{tell: func(s string) { v.answer(answer{Command: n, Stderr: s}) }}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err := cmd.Run()
	stdout.end()
	stderr.end()
	end := answer{Command: n}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		e := endingOf(exit.ProcessState)
		if status = e.status; e.signal != 0 {
			status, end.Signal = -1, e.signal.String()
		}
		if errors.Is(err, sandbox.ErrDeadline) {
			end.Error = err.Error()
		}
	case err != nil:
		status, end.Error = -1, err.Error()
	}
	end.Exit = &status
	v.answer(end)
	if v.options.report {
		fmt.Fprint(v.stderr, cmd.Report())
	}
	return status & 0xff
}

// answer writes one line. An output that has gone is noticed at its end: a command must not be.
func (v *served) answer(a answer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.out.Encode(a)
}

// pieces tells what is written to it. The bytes of a character that has not ended wait for the rest of it.
type pieces struct {
	tell func(string)
	rest []byte
}

// Write never fails.
func (p *pieces) Write(b []byte) (int, error) {
	text, whole := append(p.rest, b...), 0
	for whole < len(text) && utf8.FullRune(text[whole:]) {
		_, n := utf8.DecodeRune(text[whole:])
		whole += n
	}
	if p.rest = bytes.Clone(text[whole:]); whole > 0 {
		p.tell(string(text[:whole]))
	}
	return len(b), nil
}

// end tells what has waited.
func (p *pieces) end() {
	if len(p.rest) > 0 {
		p.tell(string(p.rest))
	}
}
