package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A terminal is where the user reads and answers.
type terminal struct {
	out   io.Writer
	turn  chan struct{} // has room for one question at a time
	start func()        // begins to read; what is typed while no question is open is dropped, and answers no later one
	over  chan struct{} // closed at the end of the input

	mu     sync.Mutex
	answer chan string // of the question that is open
}

func newTerminal(in io.Reader, out io.Writer) *terminal {
	t := &terminal{out: out, turn: make(chan struct{}, 1), over: make(chan struct{})}
	t.start = sync.OnceFunc(func() { go t.read(in) })
	return t
}

func (t *terminal) read(in io.Reader) {
	defer close(t.over)
	for s := bufio.NewScanner(in); s.Scan(); {
		t.mu.Lock()
		select {
		case t.answer <- s.Text():
		default:
		}
		t.mu.Unlock()
	}
}

// say prints one line. Whatever text of a tool's or of the model's is in it, it stays one line.
func (t *terminal) say(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintln(t.out, printable(line))
}

// show prints a text with a bar before each line.
func (t *terminal) show(bar, text string) {
	s := t.stream(bar)
	_, _ = io.WriteString(s, text)
	s.flush()
}

// printable replaces control characters, and those that change the direction of a text.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}

// A stream prints what is written to it, line by line.
type stream struct {
	t    *terminal
	bar  string
	part []byte
}

func (t *terminal) stream(bar string) *stream { return &stream{t: t, bar: bar} }

// Write never fails: the tool must not notice.
func (s *stream) Write(p []byte) (int, error) {
	s.part = append(s.part, p...)
	for {
		line, rest, whole := bytes.Cut(s.part, []byte("\n"))
		if !whole && len(line) < 4096 { // a longer one is printed in parts
			return len(p), nil
		}
		s.t.say(s.bar + strings.TrimSuffix(string(line), "\r"))
		s.part = rest
	}
}

func (s *stream) flush() {
	if len(s.part) > 0 {
		s.t.say(s.bar + string(s.part))
		s.part = nil
	}
}

// ask puts a question and returns the next line. Questions wait for each other.
func (t *terminal) ask(ctx context.Context, question string) (string, error) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	answer := make(chan string, 1)
	t.open(answer, question)
	defer t.open(nil, "")
	t.start()
	var err error
	select {
	case line := <-answer:
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-t.over:
		err = io.EOF
	}
	select {
	case line := <-answer: // came with the end
		return strings.TrimSpace(line), nil
	default:
		t.say("")
		return "", err
	}
}

func (t *terminal) open(answer chan string, question string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer = answer
	fmt.Fprint(t.out, printable(question))
}

// decide is a policy.Network's Decide. An answer counts for the session.
func (t *terminal) decide(ctx context.Context, r policy.Request) policy.Verdict {
	line, err := t.ask(ctx, fmt.Sprintf("agent: a tool wants to reach %s, port %d. Allow it? [y/N] ", r.Host, r.Port))
	if err != nil {
		return policy.Verdict{Reason: "the user gave no answer"} // this time
	}
	return policy.Verdict{Allow: line == "y" || line == "yes", Reason: "the user has said no", For: policy.Run}
}
