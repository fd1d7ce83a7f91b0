package runner

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// MostPrepared is how many sessions a sandbox keeps ready at most.
const MostPrepared = 64

// prepared are a sandbox's sessions that wait, each for one single command, which takes it when it starts and ends it when it ends.
type prepared struct {
	mu      sync.Mutex
	want    int
	opening int
	list    []waiting
	opened  sync.Cond // one more, or one could not be
}

// waiting is a session that waits, and what lay at the policy's paths before it was opened.
type waiting struct {
	session *Session
	saw     []identity
}

// identity says which file lies at a path. The zero value: none does.
type identity struct {
	dev, ino uint64
	kind     uint32
}

// Prepare opens sessions until n wait, and has each that a command takes replaced from then on. 0 closes all that wait.
func (s *Sandbox) Prepare(n int) error {
	switch {
	case n < 0 || n > MostPrepared:
		return &policy.PolicyError{Field: "Prepare", Value: fmt.Sprint(n), Problem: fmt.Sprintf("is not from 0 to %d", MostPrepared), Remedy: "prepare as many as start at once"}
	case n > 0 && s.Policy.Observe != nil:
		return &policy.SessionError{Reason: "cannot be prepared: Policy.Observe is told of each command from its beginning", Remedy: "leave Observe out, or call no Prepare"}
	}
	p := &s.prepared
	p.mu.Lock()
	p.want, p.opened.L = n, &p.mu
	surplus := slices.Clone(p.list[min(n, len(p.list)):])
	p.list = p.list[:len(p.list)-len(surplus)]
	p.mu.Unlock()
	for _, w := range surplus {
		w.session.Close()
	}
	for {
		if err := s.refill(); err != nil {
			return err
		}
		p.mu.Lock()
		for p.opening > 0 && len(p.list) < p.want {
			p.opened.Wait() // another goroutine opens the rest
		}
		enough := len(p.list) >= p.want || s.closed.Load()
		p.mu.Unlock()
		if enough {
			return nil
		}
	}
}

// refill opens sessions until as many wait as are wanted.
func (s *Sandbox) refill() error {
	p := &s.prepared
	for {
		p.mu.Lock()
		if s.closed.Load() || len(p.list)+p.opening >= p.want {
			p.mu.Unlock()
			return nil
		}
		p.opening++
		p.mu.Unlock()
		w := waiting{saw: s.sees()}
		var err error
		w.session, err = s.Open(context.Background())
		p.mu.Lock()
		p.opening--
		kept := err == nil && len(p.list) < p.want && !s.closed.Load()
		if kept {
			p.list = append(p.list, w)
		}
		p.opened.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return err
		}
		if !kept {
			w.session.Close()
		}
	}
}

// take returns a session that waits for the run; nil: none does, and unprepared says why not, if the sandbox has any.
func (r *Run) take(id stage.Identity) *Session {
	p := &r.sandbox.prepared
	p.mu.Lock()
	want := p.want
	p.mu.Unlock()
	if want == 0 || r.session != nil {
		return nil
	}
	if r.unprepared = r.unsuited(); r.unprepared != "" {
		return nil
	}
	for {
		p.mu.Lock()
		var w waiting
		if len(p.list) > 0 {
			w = p.list[0]
			p.list = slices.Delete(p.list, 0, 1)
		}
		p.mu.Unlock()
		switch {
		case w.session == nil:
			if r.unprepared == "" {
				r.unprepared = "none waited at that moment"
			}
			return nil
		case !w.session.lives():
			r.unprepared = "it had ended"
		case w.session.id != id:
			r.unprepared = "the harness has changed its user since"
		case !slices.Equal(w.saw, r.sandbox.sees()):
			r.unprepared = "another file lies at one of the policy's paths since"
		default:
			r.unprepared = ""
			return w.session
		}
		w.session.Close()
	}
}

// unsuited says what of the command a session's command has otherwise; "": nothing.
func (r *Run) unsuited() string {
	switch a := r.cmd.SysProcAttr; {
	case a != nil && (a.Credential != nil || a.Setsid || a.Setctty || a.Setpgid || a.Foreground):
		return "the command's SysProcAttr has a Credential, or a session, process group or terminal"
	case len(r.cmd.ExtraFiles) > stage.MostSessionFiles-3:
		return "the command has too many ExtraFiles"
	case r.made() != nil:
		return "the command was asked for its Environ before, and has a network"
	}
	for _, f := range []any{r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr} {
		if file, is := f.(*os.File); is && isTerminal(file) {
			return "the command has a terminal, which has a name inside only if it was there when the sandbox was made"
		}
	}
	return ""
}

func isTerminal(f *os.File) (is bool) {
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		is = err == nil
	})
	return is
}

// borrow makes a single command's run that of a session, which ends with it.
func (r *Run) borrow(n *Session) {
	r.session, r.own, r.plain, r.borrowed = n, &n.own, true, true
}

// sees says what lies at the paths of the host that the policy names and the plan's mounts show or cover.
func (s *Sandbox) sees() (list []identity) {
	for _, e := range s.Tree.Entries {
		list = append(list, identityOf(e.Path))
	}
	for _, step := range s.Plan.Steps {
		switch do := step.Do.(type) {
		case plan.Bind:
			list = append(list, identityOf(do.Source))
		case plan.Hide:
			list = append(list, identityOf(do.Path))
		case plan.SharedOverlay:
			list = append(list, identityOf(do.Lower))
		}
	}
	return list
}

func identityOf(path string) identity {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return identity{}
	}
	return identity{st.Dev, st.Ino, st.Mode & unix.S_IFMT}
}
