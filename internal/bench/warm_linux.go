package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
)

// The contenders of the sections of sessions.
const (
	inSession = "command in an open session"
	opened    = "Open and Close"
	fromReady = "Sandbox.Command of a prepared sandbox"
)

// warm measures the whole life of /bin/true in a session that is open already.
func warm(rounds int) (tables []table, err error) {
	dir, s, sess, err := session()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	defer sess.Close()
	list := []contender{
		timed(plain, func() error { return exec.Command(trivial).Run() }),
		{inSession, func() (time.Duration, error) { return inOpened(sess, dir) }},
		timed(sandboxed, func() error {
			c := s.Command(trivial)
			c.Dir = dir
			return c.Run()
		}),
		timed(opened, func() error {
			other, err := s.Open(context.Background())
			if err != nil {
				return err
			}
			return other.Close()
		}),
	}
	prepared, err := sandbox.New(sandbox.Workspace(dir))
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	list = append(list, contender{fromReady, func() (time.Duration, error) { return fromPrepared(prepared, dir) }})
	bundle, err := os.MkdirTemp("", "holdfast-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bundle)
	box, missing := newContainer(bundle)
	remark := ""
	if missing == nil {
		defer box.end()
		list = append(list, timed(box.name, func() error { return box.run(trivial) }))
	} else {
		remark = fmt.Sprintf("No container: %v. ", missing)
	}
	peer, version := bubblewrap(dir)
	if peer != nil {
		list = append(list, timed(wrapped, func() error { return exec.Command(peer[0], append(peer[1:], trivial)...).Run() }))
	}
	r, err := interleave(rounds, list)
	if err != nil {
		return nil, err
	}
	t := table{title: fmt.Sprintf("Start to end of %s in a session, %d rounds: medians and quartiles", trivial, rounds),
		head: []string{"", "ms", "p10", "p99", "x os/exec", "x bubblewrap"}, remark: remark + version}
	addWarm(&t, r)
	return []table{t}, nil
}

func addWarm(t *table, r *results) {
	for i, name := range r.names {
		against := ""
		if b := r.index(wrapped); b >= 0 {
			against = r.ratio(i, b).String()
		}
		t.add(name, r.time(i, time.Millisecond).String(), millis(quantile(r.times[i], 0.1)), millis(quantile(r.times[i], 0.99)), r.ratio(i, 0).String(), against)
	}
}

// inOpened takes the time of a session's command.
func inOpened(sess *sandbox.Session, dir string) (took time.Duration, err error) {
	began := time.Now()
	err = in(sess, dir, trivial).Run()
	took = time.Since(began)
	time.Sleep(settling)
	return took, err
}

// fromPrepared takes the time of a command for which a sandbox waits. The one that replaces it is made before another contender's time.
func fromPrepared(s *sandbox.Sandbox, dir string) (took time.Duration, err error) {
	if err := makeReady(s); err != nil {
		return 0, err
	}
	c := s.Command(trivial)
	c.Dir = dir
	began := time.Now()
	err = c.Run()
	took = time.Since(began)
	return took, errors.Join(err, makeReady(s))
}

// settling is how long a session's init has to make a process ready for the next command: not in another contender's time.
const settling = 10 * time.Millisecond

// makeReady returns when a sandbox waits, whose init has made a process ready.
func makeReady(s *sandbox.Sandbox) error {
	err := s.Prepare(1)
	time.Sleep(settling)
	return err
}

// session makes a temporary directory, its default sandbox, and a session of that.
func session() (dir string, s *sandbox.Sandbox, sess *sandbox.Session, err error) {
	if dir, s, err = workspace(); err != nil {
		return "", nil, nil, err
	}
	if sess, err = s.Open(context.Background()); err != nil {
		os.RemoveAll(dir)
		return "", nil, nil, err
	}
	return dir, s, sess, nil
}

// in makes a session's command that starts in dir.
func in(sess *sandbox.Session, dir, name string, args ...string) *sandbox.Cmd {
	c := sess.Command(name, args...)
	c.Dir = dir
	return c
}

// files measures what a file tool does, inside and outside: 4 KiB are read, written, and a name is looked at.
func files(rounds int) ([]table, error) {
	dir, _, sess, err := session()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	defer sess.Close()
	path, data := filepath.Join(dir, "file"), make([]byte, 4096)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return nil, err
	}
	f := sess.Files()
	t := table{title: fmt.Sprintf("Session.Files against package os, %d rounds of %d: microseconds, medians and quartiles", rounds, fileBatch),
		head: []string{"", "package os", "Session.Files", "x os"}}
	for _, act := range []struct {
		name            string
		outside, inside func() error
	}{
		{"ReadFile of 4 KiB", func() error { _, err := os.ReadFile(path); return err }, func() error { _, err := f.ReadFile(path); return err }},
		{"WriteFile of 4 KiB", func() error { return os.WriteFile(path, data, 0o644) }, func() error { return f.WriteFile(path, data, 0o644) }},
		{"Stat", func() error { _, err := os.Stat(path); return err }, func() error { _, err := f.Stat(path); return err }},
	} {
		r, err := interleave(rounds, []contender{batch("os", act.outside), batch("inside", act.inside)})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", act.name, err)
		}
		t.add(act.name, r.time(0, time.Microsecond).digits(1), r.time(1, time.Microsecond).digits(1), r.ratio(1, 0).String())
	}
	return []table{t}, nil
}

// fileBatch is how often a contender of the section files does its act in each round.
const fileBatch = 50

// batch is a contender that does an act several times; its time is that of one.
func batch(name string, act func() error) contender {
	return contender{name, func() (time.Duration, error) {
		began := time.Now()
		for range fileBatch {
			if err := act(); err != nil {
				return 0, err
			}
		}
		return time.Since(began) / fileBatch, nil
	}}
}

// busyTool is a tool that is busy some of the time, as builds and servers of an agent are.
const busyTool = "while :; do i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; sleep 0.2; done"

// many measures a command in one session while others are open and busy.
func many(rounds int) ([]table, error) {
	dir, s, err := workspace()
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	t := table{title: fmt.Sprintf("A command in an open session while sessions are busy, %d commands: ms", rounds),
		head: []string{"sessions, each with a shell that counts and sleeps", "median", "p99", "x os/exec at that time", "all at once: median", "all at once: p99"}}
	for _, n := range []int{1, 10, 50} {
		row, err := busy(dir, s, n, rounds)
		if err != nil {
			return nil, err
		}
		t.add(append([]string{fmt.Sprint(n)}, row...)...)
	}
	t.remark = "At once: each session runs commands one after another, on a processor of which each has its share."
	return []table{t}, nil
}

// busy measures with n sessions.
func busy(dir string, s *sandbox.Sandbox, n, rounds int) (row []string, err error) {
	var all []*sandbox.Session
	defer func() {
		for _, sess := range all {
			sess.Close()
		}
	}()
	for range n {
		sess, err := s.Open(context.Background())
		if err != nil {
			return nil, err
		}
		all = append(all, sess)
		if err := in(sess, dir, "/bin/sh", "-c", busyTool).Start(); err != nil { // ends with the session
			return nil, err
		}
	}
	turn := 0
	r, err := interleave(rounds, []contender{
		timed(plain, func() error { return exec.Command(trivial).Run() }),
		timed(inSession, func() error {
			turn++
			return in(all[turn%n], dir, trivial).Run()
		}),
	})
	if err != nil {
		return nil, err
	}
	each := max(1, rounds/n)
	times, failures := make([][]time.Duration, n), make([]error, n)
	var group sync.WaitGroup
	for i, sess := range all {
		group.Go(func() {
			for range each {
				began := time.Now()
				if failures[i] = in(sess, dir, trivial).Run(); failures[i] != nil {
					return
				}
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	group.Wait()
	if err := errors.Join(failures...); err != nil {
		return nil, err
	}
	together := slices.Concat(times...)
	return []string{millis(quantile(r.times[1], 0.5)), millis(quantile(r.times[1], 0.99)), r.ratio(1, 0).String(),
		millis(quantile(together, 0.5)), millis(quantile(together, 0.99))}, nil
}
