package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A person answers questions about hosts, one after the other, and each once.
type person struct {
	out   io.Writer
	lines <-chan string // closed at the end of the input
	mu    sync.Mutex    // Decide is called by many goroutines
	known map[string]bool
}

// newPerson asks the person who types into in. What is typed when nothing was asked
// answers the next question.
func newPerson(in io.Reader, out io.Writer) *person {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return &person{out: out, lines: lines, known: map[string]bool{}}
}

// decide is a sandbox.Network's Decide; no answer is a no.
func (p *person) decide(ctx context.Context, r policy.Request) policy.Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	host := net.JoinHostPort(r.Host, strconv.Itoa(int(r.Port)))
	yes, known := p.known[host]
	if known {
		return policy.Verdict{Allow: yes, Reason: "the user has said no"}
	}
	if ctx.Err() != nil { // another question has taken all the time
		return policy.Verdict{Reason: "no answer was given"}
	}
	fmt.Fprintf(p.out, "webfetch: allow %s? [y/N] ", host)
	select {
	case line, there := <-p.lines:
		if !there {
			return policy.Verdict{Reason: "there is no terminal to ask at"}
		}
		p.known[host] = strings.TrimSpace(line) == "y"
		return policy.Verdict{Allow: p.known[host], Reason: "the user has said no"}
	case <-ctx.Done():
		return policy.Verdict{Reason: "no answer was given"}
	}
}
