package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/plan"
	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// MostPrepared is how many sessions a sandbox keeps ready at most.
const MostPrepared = 64

// Prepared are a sandbox's sessions that wait, each for one single command, which takes it when it starts and ends it when it ends.
type Prepared struct {
	Of      *Sandbox
	mu      sync.Mutex
	want    atomic.Int64
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

// Keep opens sessions until n wait, and has each that a command takes replaced from then on. 0 closes all that wait.
func (p *Prepared) Keep(n int) error {
	switch {
	case n < 0 || n > MostPrepared:
		return &policy.PolicyError{Field: "Prepare", Value: fmt.Sprint(n), Problem: fmt.Sprintf("is not from 0 to %d", MostPrepared), Remedy: "prepare as many as start at once"}
	case n > 0 && p.Of.Policy.Observe != nil:
		return &policy.SessionError{Reason: "cannot be prepared: Policy.Observe is told of each command from its beginning", Remedy: "leave Observe out, or call no Prepare"}
	}
	p.mu.Lock()
	p.want.Store(int64(n))
	p.opened.L = &p.mu
	surplus := slices.Clone(p.list[min(n, len(p.list)):])
	p.list = p.list[:len(p.list)-len(surplus)]
	p.mu.Unlock()
	for _, w := range surplus {
		w.session.Close()
	}
	for {
		if err := p.refill(); err != nil {
			return err
		}
		p.mu.Lock()
		for p.opening > 0 && len(p.list) < int(p.want.Load()) {
			p.opened.Wait() // another goroutine opens the rest
		}
		enough := len(p.list) >= int(p.want.Load()) || p.Of.closed.Load()
		p.mu.Unlock()
		if enough {
			return nil
		}
	}
}

// mostOpening is how long a session that is prepared may take to begin.
const mostOpening = time.Minute

// refill opens sessions until as many wait as are wanted.
func (p *Prepared) refill() error {
	s := p.Of
	for {
		p.mu.Lock()
		if s.closed.Load() || len(p.list)+p.opening >= int(p.want.Load()) {
			p.mu.Unlock()
			return nil
		}
		p.opening++
		p.mu.Unlock()
		w := waiting{saw: s.sees()}
		starting, cancel := context.WithTimeout(context.Background(), mostOpening)
		var err error
		w.session, err = s.open(context.Background(), starting)
		cancel()
		p.mu.Lock()
		p.opening--
		kept := err == nil && len(p.list) < int(p.want.Load()) && !p.Of.closed.Load()
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

// take returns a session that waits, for a harness that runs as id; nil: none does, and why says why the last did not serve.
func (p *Prepared) take(id stage.Identity) (n *Session, why string) {
	why = "none waited at that moment"
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
			return nil, why
		case !w.session.lives():
			why = "it had ended"
		case w.session.id != id:
			why = "the harness has changed its user since"
		case !slices.Equal(w.saw, p.Of.sees()):
			why = "another file lies at one of the policy's paths since"
		default:
			return w.session, ""
		}
		w.session.Close()
	}
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
