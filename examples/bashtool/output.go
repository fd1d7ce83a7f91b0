package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"sync"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// An output is what a command prints until it has ended. Jobs that it has left keep the pipe, which is read on for as long as they write: one
// that was closed would end them (SIGPIPE), and one that is full would stop them.
type output struct {
	mu   sync.Mutex
	kept clipped
	last []byte // the end of what was read, which may be the beginning of the mark
	done bool

	mark []byte        // what this program writes into the pipe behind the command's output
	seen chan struct{} // closed when all before the mark is kept
}

func newOutput(limit int) *output {
	return &output{kept: clipped{limit: limit}, mark: []byte(rand.Text()), seen: make(chan struct{})}
}

// run runs a command, and returns when its output is kept.
func (o *output) run(ctx context.Context, cmd *sandbox.Cmd) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = write, write
	go func() {
		defer read.Close()
		buf := make([]byte, 32<<10)
		for {
			n, err := read.Read(buf)
			o.add(buf[:n], err != nil)
			if err != nil {
				return
			}
		}
	}()
	err = cmd.Run()
	go func() {
		write.Write(o.mark) // which waits as others that write do
		write.Close()
	}()
	select {
	case <-o.seen:
	case <-ctx.Done(): // something that has opened the pipe itself may have read the mark
	}
	return err
}

// add takes what was read.
func (o *output) add(p []byte, end bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.done {
		return
	}
	text := append(o.last, p...)
	at := bytes.Index(text, o.mark)
	keep := max(len(text)-len(o.mark)+1, 0) // before what may be the beginning of a mark
	switch {
	case at >= 0:
		keep = at
	case end:
		keep = len(text)
	}
	o.kept.Write(text[:keep])
	o.last = bytes.Clone(text[keep:])
	if at >= 0 || end {
		o.done, o.last = true, nil
		close(o.seen)
	}
}

// String returns what was kept.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.done { // its time was up
		o.done = true
		o.kept.Write(o.last)
	}
	return o.kept.String()
}
