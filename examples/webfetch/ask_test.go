package main

import (
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func TestAPersonIsAskedOnceAboutEachHost(t *testing.T) {
	var asked strings.Builder
	p := newPerson(strings.NewReader("y\nn\n"), &asked)
	ask := func(host string) bool {
		return p.decide(t.Context(), policy.Request{Host: host, Port: 443}).Allow
	}
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			if !ask("yes.example") {
				t.Error("yes was taken for no")
			}
		})
	}
	all.Wait()
	for range 2 {
		if ask("no.example") {
			t.Error("no was taken for yes")
		}
	}
	if v := p.decide(t.Context(), policy.Request{Host: "third.example", Port: 443}); v.Allow || v.Reason != "there is no terminal to ask at" {
		t.Errorf("at the end of the answers: %+v", v)
	}
	if n := strings.Count(asked.String(), "allow "); n != 3 {
		t.Errorf("%d questions: %s", n, &asked)
	}
}

func TestAQuestionThatNobodyAnswersEndsWithItsTime(t *testing.T) {
	in, typed := io.Pipe()
	defer typed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	p := newPerson(in, cancelAtFirst{cancel})
	for range 2 {
		if v := p.decide(ctx, policy.Request{Host: "a.example", Port: 443}); v.Allow || v.Reason != "no answer was given" {
			t.Errorf("%+v", v)
		}
	}
}

// cancelAtFirst cancels when the question is put.
type cancelAtFirst struct{ cancel context.CancelFunc }

// Write is io.Writer's.
func (c cancelAtFirst) Write(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}
