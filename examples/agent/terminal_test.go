package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// writerFunc is told of each write, one after the other.
type writerFunc func(p []byte)

// Write is io.Writer's.
func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestQuestions(t *testing.T) {
	host := func(name string) policy.Request { return policy.Request{Host: name, Port: 443} }
	for input, want := range map[string]bool{"y\n": true, "yes": true, " y \nn\n": true, "n\n": false, "\n": false, "": false, "ye\n": false} {
		if v := newTerminal(strings.NewReader(input), io.Discard).decide(t.Context(), host("a.example")); v.Allow != want {
			t.Errorf("%q: %+v", input, v)
		}
	}
	t.Run("what was typed before is no answer", func(t *testing.T) {
		in, keyboard := io.Pipe()
		u := newTerminal(in, io.Discard)
		u.start()
		io.WriteString(keyboard, "y\ny\n") // returns when it has been read
		keyboard.Close()
		<-u.over
		if v := u.decide(t.Context(), host("a.example")); v.Allow {
			t.Error("it was")
		}
	})
	t.Run("an unanswered question ends with its context", func(t *testing.T) {
		in, keyboard := io.Pipe()
		defer keyboard.Close()
		ctx, cancel := context.WithCancel(t.Context())
		u := newTerminal(in, writerFunc(func([]byte) { cancel() }))
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if v := u.decide(ctx, host("a.example")); v.Allow || v.For != policy.Once {
					t.Errorf("%+v", v)
				}
			})
		}
		both.Wait()
	})
}

func TestClipped(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  int
		writes []string
		want   string
	}{
		{"nothing", 10, nil, ""},
		{"as much as fits", 10, []string{"01234", "56789"}, "0123456789"},
		{"one byte more", 10, []string{"0123456789a"}, "01234\n[... 1 of 11 bytes are left out here ...]\n6789a"},
		{"byte by byte", 4, strings.Split("abcdefgh", ""), "ab\n[... 4 of 8 bytes are left out here ...]\ngh"},
		{"no room", 0, []string{"abc"}, "\n[... 3 of 3 bytes are left out here ...]\n"},
		{"half a character", 4, []string{"aäöü"}, "a\uFFFD\n[... 3 of 7 bytes are left out here ...]\nü"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := clipped{limit: test.limit}
			for _, w := range test.writes {
				if n, err := c.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := c.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The first Ctrl-C ends the call alone, the second one the session, with the server that the first call has left.
func TestInterrupts(t *testing.T) {
	kerneltest.Need(t, kerneltest.HasUserNamespaces)
	needSession(t)
	environment := environmentOf(endpointThat(t, []exchange{
		{"bash", `{"script": "echo $$ >/tmp/f; sleep 1000", "background": true}`, "job 1"},
		{"bash", `{"script": "echo spoofed >/dev/tty; trap '' INT; echo first; while :; do sleep 1000; done"}`, "the user has interrupted this call"},
		{"bash", `{"script": "trap '' INT; until kill -0 $(cat /tmp/f); do :; done 2>/dev/null; echo second; while :; do sleep 1000; done"}`, "never asked"},
	}))
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "do", "it")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), programVariable+"=1")
	for name, value := range environment {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	keyboard, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	var all, seen bytes.Buffer
	for b := make([]byte, 1000); ; {
		n, err := keyboard.Read(b)
		all.Write(b[:n])
		seen.Write(b[:n])
		for _, word := range []string{"| first\r\n", "| second\r\n"} {
			if at := bytes.Index(seen.Bytes(), []byte(word)); at >= 0 {
				seen.Next(at + len(word))
				io.WriteString(keyboard, "\x03")
			}
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err == nil || err.Error() != "exit status 1" || !strings.Contains(all.String(), "agent: the session was ended") || strings.Contains(all.String(), "\nspoofed") {
		t.Errorf("%v: %s", err, &all)
	}
}
