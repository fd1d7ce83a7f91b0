package gitattack

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A finding is what the user's commands did that the tool chose.
type finding struct {
	what string // "execution", "outside", "leak"
	text string
}

// A runner carries sequences out.
type runner struct {
	*stock
	t        *testing.T
	policy   sandboxed
	said     string // what the tool printed last
	strace   bool   // look at each execve(2), too
	canTrace bool
	known    map[string]int // findings, by class and kind
	tally    tally
}

// A tally says what the sequences did, so that a run in which nothing could happen is seen.
type tally struct {
	sequences, ops, done, commands, succeeded, slow int
	laying, inside, outside, looking                time.Duration // where the time goes
}

// carryOut runs one sequence and returns what it found, or nil.
func (r *runner) carryOut(s *sequence) *finding {
	r.t.Helper()
	k := r.lookup(r.t, s.Fixture)
	begin := time.Now()
	r.lay(r.t, k)
	r.tally.laying += time.Since(begin)
	r.tally.sequences++
	var found *finding
	for _, round := range s.Rounds {
		if len(round.Ops) > 0 {
			begin = time.Now()
			r.inside(round.Ops)
			r.tally.inside += time.Since(begin)
		}
		begin = time.Now()
		for _, c := range round.User {
			if found = r.outsideCommand(c); found != nil {
				return found
			}
		}
		r.tally.outside += time.Since(begin)
	}
	begin = time.Now()
	defer func() { r.tally.looking += time.Since(begin) }()
	return r.changed(k)
}

// outsideCommand gives one of the user's commands and looks for a canary.
func (r *runner) outsideCommand(c command) *finding {
	dir := filepath.Join(r.ws, c.Dir)
	if at, err := filepath.EvalSymlinks(dir); err != nil || at != r.ws && !strings.HasPrefix(at, r.ws+"/") {
		return nil // not there, or the user would see that he is elsewhere
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	args, trace := append([]string{"git"}, c.Args...), ""
	if r.strace {
		trace = filepath.Join(r.base, "trace")
		args = append([]string{"strace", "-f", "-qq", "-s", "4096", "-e", "trace=execve", "-o", trace}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, r.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	r.tally.commands++
	switch {
	case ctx.Err() != nil:
		r.tally.slow++
	case err == nil:
		r.tally.succeeded++
	}
	names, _ := os.ReadDir(r.canary)
	if len(names) > 0 {
		return &finding{"execution", fmt.Sprintf("(in %q) git %s: left a canary\n%s", c.Dir, strings.Join(c.Args, " "), clip(out))}
	}
	if r.strace {
		return r.executed(trace, c)
	}
	return nil
}

// executed looks in a trace for a program of the tool's that left no canary.
func (r *runner) executed(trace string, c command) *finding {
	text, _ := os.ReadFile(trace)
	for line := range strings.Lines(string(text)) {
		_, call, ok := strings.Cut(line, "execve(\"")
		if !ok || strings.Contains(line, "ENOENT") {
			continue
		}
		path, _, _ := strings.Cut(call, "\"")
		hook := strings.HasSuffix(path, "hooks/pre-commit") && r.usersHook(path)
		if strings.Contains(call, r.canary) || !hook && (strings.HasPrefix(path, r.ws) || !strings.HasPrefix(path, "/")) {
			return &finding{"execution", fmt.Sprintf("(in %q) git %s: strace saw %s", c.Dir, strings.Join(c.Args, " "), line)}
		}
	}
	return nil
}

// usersHook reports whether a hook is still the one that the fixture has, relative to the top of the work tree.
func (r *runner) usersHook(path string) bool {
	text, err := os.ReadFile(filepath.Join(r.ws, path))
	return err == nil && string(text) == "#!/bin/sh\nexit 0\n"
}

// changed compares what lies outside the workspace with what lay there, and looks for the secret inside.
func (r *runner) changed(k *kept) *finding {
	now := r.outside(k)
	for p, was := range k.outside {
		if now[p] != was {
			return &finding{"outside", fmt.Sprintf("%s was %q and is %q", p, was, now[p])}
		}
	}
	for p, is := range now {
		if k.outside[p] == "" {
			return &finding{"outside", fmt.Sprintf("%s is new: %q", p, is)}
		}
	}
	var leak *finding
	_ = filepath.WalkDir(r.ws, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil && info.Size() < 1<<14 {
				if text, err := os.ReadFile(p); err == nil && strings.Contains(string(text), secret) {
					leak = &finding{"leak", p + " holds the user's secret"}
					return fs.SkipAll
				}
			}
		}
		return nil
	})
	return leak
}

func clip(b []byte) string {
	if len(b) > 800 {
		b = b[:800]
	}
	return string(b)
}
