package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// A pause is what a session knows of its Pause.
//
// All that runs inside but init is sent SIGSTOP: tools, the wardens that act for them, and what stands ready. A process is stopped when its parent is at
// rest, and continued before its parent, so that a shell, a warden or a command's stage does not see a child stop. Once everything that was found is at rest
// init stops all at once, where it can (wire.RequestStop). The pause has begun when a look after that finds
// no process that is new or not at rest.
//
// From then on nothing inside can continue a process. The kernel does: in a group that has become orphaned (kill_orphaned_pgrp in kernel/exit.c), since the
// harness has killed a command, and of a terminal that the harness hangs up. So it is looked at again while the pause lasts.
type pause struct {
	mu      sync.Mutex // held by what stops processes or continues them
	on      atomic.Bool
	signals sync.RWMutex        // held by Signal, to read
	seen    map[procID]sighting // in all looks of this pause
	over    chan struct{}       // closed: Resume was called
	owed    int                 // answers of init

	before context.Context         // ends when the next pause begins; nil: it was not asked for. The session's lock guards it and the next
	begin  context.CancelCauseFunc // ends it
}

// A sighting is what a look has found of a process.
type sighting struct {
	own    bool      // it was stopped before the pause stopped it, and stays so
	sent   bool      // the harness has sent it SIGSTOP
	asleep time.Time // since when every look has found it in an uninterruptible sleep; zero: the last one did not
}

// pausePatience is how long Pause and Resume wait for what does not stop or is not found.
var pausePatience = time.Minute

const (
	askPatience = time.Minute            // for init, which a tool without a pid namespace may have stopped
	pauseSweep  = time.Second            // how long the search goes on before init stops what multiplies faster than it is found
	pauseEvery  = 100 * time.Millisecond // how often a paused session is looked at
	// longSleep is how long an uninterruptible sleep lasts before it is taken for rest, as that of a vfork(2) whose child is stopped. A writer
	// that is held up to 200 ms (balance_dirty_pages) goes on by itself. SIGSTOP is taken when the sleep is over.
	longSleep = 300 * time.Millisecond
)

func pausedError(what string) error {
	return &policy.SessionError{Reason: what, Remedy: "call Resume", Err: policy.ErrPaused}
}

// Pause stops every process of the session until Resume. If one does not stop, all go on, and it returns an error.
func (n *Session) Pause() error {
	p := &n.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := n.err(nil); err != nil || p.on.Load() {
		return err
	}
	p.signals.Lock() // what Signal is about to send comes before the first look
	p.on.Store(true)
	p.signals.Unlock()
	p.seen, p.over = map[procID]sighting{}, make(chan struct{})
	before, _ := n.inner()
	for _, q := range before {
		p.seen[q.procID] = sighting{own: q.stopped}
	}
	n.endServer()
	if err := n.stopAll(); err != nil {
		n.continueRunning()
		err = errors.Join(err, n.ask(wire.RequestResume))
		p.on.Store(false)
		return err
	}
	go n.keepPaused(p.over)
	return nil
}

// Resume continues what Pause has stopped. After an error the session is still paused.
func (n *Session) Resume() error {
	p := &n.pause
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := n.err(nil); err != nil || !p.on.Load() {
		return err
	}
	if err := n.continueAll(); err != nil {
		return err
	}
	if err := n.ask(wire.RequestResume); err != nil {
		return err
	}
	p.on.Store(false)
	close(p.over)
	return nil
}

// stopAll returns when nothing runs any more.
func (n *Session) stopAll() error {
	if err := n.ask(wire.RequestPause); err != nil {
		return err
	}
	began, swept := time.Now(), false
	for ; ; time.Sleep(time.Millisecond) {
		restless, grown := n.look(!swept)
		switch tried := time.Since(began); {
		case restless == 0 && swept:
			return nil
		case n.err(nil) != nil:
			return n.err(nil)
		case tried > pausePatience:
			return fmt.Errorf("sandbox: pause the session: process %d does not stop: %w", restless, os.ErrDeadlineExceeded)
		case !swept && (restless == 0 || grown && tried > pauseSweep):
			if err := n.ask(wire.RequestStop); err != nil {
				return err
			}
			swept = true
		}
	}
}

// continueAll continues what was not stopped before the pause. It lists all before the first of them runs: then some may come and go faster than they are found.
func (n *Session) continueAll() error {
	var list []occupant
	whole := false
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		if !whole {
			n.look(false)
			list, whole = n.inner()
		}
		if whole {
			list = n.proceed(list)
		}
		switch {
		case whole && len(list) == 0:
			return nil
		case n.err(nil) != nil:
			return n.err(nil)
		case time.Since(began) > pausePatience: // the harness has no descriptors left
			return fmt.Errorf("sandbox: resume the session: its processes are not all found: %w", os.ErrDeadlineExceeded)
		}
	}
}

// continueRunning continues what a failed Pause has stopped, beside what it has not.
func (n *Session) continueRunning() {
	for began := time.Now(); time.Since(began) < time.Second; time.Sleep(time.Millisecond) {
		list, whole := n.inner()
		if n.proceed(list); whole {
			return
		}
	}
}

// proceed sends SIGCONT to what was not stopped before the pause, the last first, and returns those of which it is not known whether it came there.
func (n *Session) proceed(list []occupant) (rest []occupant) {
	for _, q := range slices.Backward(list) {
		if n.pause.seen[q.procID].own || q.signal(unix.SIGCONT) {
			continue
		}
		if now, ok := occupantOf(q.pid); ok && now.procID == q.procID {
			q = now // it has another parent
		}
		rest = append(rest, q)
	}
	slices.Reverse(rest)
	return rest
}

// look sends SIGSTOP to what runs and has its turn, and returns 0 if everything is at rest and was found by a look before; else the number of a process
// of which that is not so; and whether there was one that no look had found. With first what is stopped and was
// not sent SIGSTOP stays stopped.
func (n *Session) look(first bool) (restless int, grown bool) {
	now := time.Now()
	var visit func(parent occupant, waited bool)
	visit = func(parent occupant, waited bool) {
		children, whole := parent.children()
		if !whole {
			restless = parent.pid
		}
		for _, c := range children {
			s, known := n.pause.seen[c.procID]
			if !known {
				restless, grown = c.pid, true
			}
			switch {
			case first && c.stopped && !s.sent:
				s.own = true
			case s.own && !c.stopped:
				s.own = false // a process that ran still has continued it
			}
			switch {
			case !c.asleep:
				s.asleep = time.Time{}
			case s.asleep.IsZero():
				s.asleep = now
			}
			if c.runs || c.asleep {
				s.sent = true
				c.stop()
			}
			n.pause.seen[c.procID] = s
			brief := c.asleep && now.Sub(s.asleep) < longSleep
			if c.runs || brief {
				restless = c.pid
			}
			if !c.runs && !c.dead && (waited || !brief) {
				visit(c, waited || c.asleep) // one wait is enough for a chain of vfork(2)
			}
		}
	}
	visit(n.init, false)
	return restless, grown
}

// inner returns all processes inside but init, the parents before their children, and whether none has come or gone meanwhile.
func (n *Session) inner() (list []occupant, whole bool) {
	whole = true
	var visit func(parent occupant)
	visit = func(parent occupant) {
		children, all := parent.children()
		whole = whole && all
		for _, c := range children {
			if !c.dead {
				list = append(list, c)
				visit(c)
			}
		}
	}
	visit(n.init)
	return list, whole
}

// keepPaused stops what the kernel has continued.
func (n *Session) keepPaused(over <-chan struct{}) {
	for wait := pauseEvery; ; {
		select {
		case <-over:
			return
		case <-n.ended:
			return
		case <-time.After(wait):
		}
		n.pause.mu.Lock()
		began := time.Now()
		select {
		case <-over:
		default:
			n.look(false)
			n.endStageless()
		}
		n.pause.mu.Unlock()
		wait = max(pauseEvery, 10*time.Since(began)) // it takes a tenth of a processor at most
	}
}

// ask has init take a step.
func (n *Session) ask(step uint32) error {
	n.mu.Lock()
	sock := n.sock
	n.mu.Unlock()
	err := error(&policy.SessionError{Reason: "has ended"})
	if sock != nil {
		err = stage.AskSession(sock, step, &n.pause.owed, askPatience)
	}
	if err == nil {
		return nil
	}
	if over := n.over(err); over != nil {
		return over
	}
	return fmt.Errorf("sandbox: pause or resume the session: %w", err)
}

// UntilPause returns a context that ends when the next pause begins. In a pause it has ended, or what it is for is refused.
func (n *Session) UntilPause() context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := &n.pause; p.before == nil || p.before.Err() != nil && !p.on.Load() {
		p.before, p.begin = context.WithCancelCause(context.Background())
	}
	return n.pause.before
}

// endServer ends the server of the session's files, which would be stopped: what is asked for next starts another one, and is refused in a pause.
// One that starts ends as commands do whose contexts end.
func (n *Session) endServer() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pause.begin != nil {
		n.pause.begin(pausedError("starts no commands"))
	}
	for c, m := range n.members {
		select {
		case <-m.decided:
			if m.printed == nil {
				c.KillInit()
			}
		default:
		}
	}
}

// endStageless ends the commands whose stages have ended before their tools, by a kill or at a deadline: the wardens that would see that are stopped.
func (n *Session) endStageless() {
	n.mu.Lock()
	members := slices.Collect(maps.Values(n.members))
	n.mu.Unlock()
	for _, m := range members {
		m.endStageless()
	}
}
