package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/errtext"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// mostAsked is how many calls of Files.Decide are open at one time. Init asks about no more opens at once.
const mostAsked = 32

// fileSystemPatience is how long the end of a run waits for a file system.
const fileSystemPatience = 5 * time.Second

// questions answers what a run's supervisor asks: whether an open that is going to fail gets a descriptor.
type questions struct {
	table    *refusals
	watch    *watcher // table's, by which paths are looked at
	sandbox  *Sandbox
	observer *observer
	sock     *os.File
	asker    callback.Asker
	cancel   context.CancelFunc
	working  sync.WaitGroup
	copies   copies

	mu      sync.Mutex
	waiting map[uint64]context.CancelFunc // by the number of the call
	granted map[grant]int
	order   []grant // of granted
	beyond  int     // grants of which granted has none
}

// A grant is one kind of what Files.Decide has allowed.
type grant struct{ what, by, rule string }

// mostGrants is how many grants a report lists.
const mostGrants = 64

func newQuestions(sock *os.File, table *refusals, s *Sandbox, run *callback.Memory, o *observer) *questions {
	ctx, cancel := context.WithCancel(context.Background())
	q := &questions{
		table: table, watch: table.watch, sandbox: s, observer: o, sock: sock, cancel: cancel,
		waiting: map[uint64]context.CancelFunc{}, granted: map[grant]int{},
	}
	q.asker = callback.Asker{
		Ctx: ctx, Spawn: func(f func()) bool { q.working.Go(f); return true }, Patience: s.Policy.Files.DecidesWithin(), Most: mostAsked,
		Memory: &s.answers, Run: run,
	}
	q.working.Go(q.serve)
	return q
}

// end answers no more, and waits until nothing works on an answer but calls of Decide that ignore their context, and looks at a file system that
// does not answer.
func (q *questions) end() {
	q.cancel()
	q.sock.Close()
	done := make(chan struct{})
	go func() {
		q.working.Wait()
		q.copies.end()
		close(done)
	}()
	t := time.NewTimer(fileSystemPatience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// serve takes the questions, until init is dead.
func (q *questions) serve() {
	b := make([]byte, supervisor.QuestionBytes+1)
	for {
		n, err := q.sock.Read(b)
		if err != nil {
			return
		}
		if question, ok := supervisor.ReadQuestion(b[:n]); ok {
			q.take(question)
		}
	}
}

// take begins to work on a question, or gives one up.
func (q *questions) take(question supervisor.Question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if question.Gone {
		if cancel := q.waiting[question.ID]; cancel != nil {
			cancel()
		}
		return
	}
	ctx, cancel := context.WithCancel(q.asker.Ctx)
	q.waiting[question.ID] = cancel
	q.working.Go(func() {
		fd := q.decide(ctx, question)
		q.answer(question.ID, fd)
		q.mu.Lock()
		defer q.mu.Unlock()
		cancel()
		delete(q.waiting, question.ID)
	})
}

// answer sends an answer, with a descriptor unless that is -1, and closes it.
func (q *questions) answer(id uint64, fd int) {
	raw, err := q.sock.SyscallConn()
	if err == nil {
		var rights []byte
		if fd >= 0 {
			rights = unix.UnixRights(fd)
		}
		send := func(s uintptr) bool {
			_, err = unix.SendmsgN(int(s), supervisor.AnswerTo(id), rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			return err != unix.EAGAIN
		}
		if raw.Write(send); err != nil && fd >= 0 { // too many descriptors are under way (unix(7), ETOOMANYREFS)
			rights = nil
			raw.Write(send)
		}
	}
	if fd >= 0 {
		unix.Close(fd)
	}
}

// decide returns the descriptor that the open gets, or -1. What is denied is recorded as Files.Watch records it.
func (q *questions) decide(ctx context.Context, question supervisor.Question) int {
	d := question.Denial
	denied, ok := q.watch.judge(d)
	if !ok {
		return -1
	}
	f, why := q.candidate(question)
	if why != "" {
		if why != unasked {
			denied.Why += "; Files.Decide is not asked: " + why
		}
		q.table.keepOne(d, denied)
		return -1
	}
	defer f.close()
	answer := q.ask(ctx, f)
	if !answer.Allow {
		denied.Rule, denied.Why = answer.Rule(), cmp.Or(answer.Reason, "it was asked about, and denied")
		q.table.keepOne(d, denied)
		return -1
	}
	fd, err := q.open(f, question.Flags)
	if err != nil {
		denied.Rule, denied.Why = answer.Rule(), "Files.Decide allowed it, but "+errtext.Printable(err.Error())
		q.table.keepOne(d, denied)
		return -1
	}
	q.count(grant{f.request.String(), f.request.Claimed, answer.Rule()})
	return fd
}

// ask puts a question to the policy's Decide. Equal questions have the same path and are of the same kind.
func (q *questions) ask(ctx context.Context, f *file) callback.Answer {
	r, decide := f.request, q.sandbox.Policy.Files.Decide
	question := callback.Question{About: r.Path, Same: r.String() + "\x00" + r.Path, Decide: func(ctx context.Context) policy.Verdict { return decide(ctx, r) }}
	if q.sandbox.Policy.Observe != nil {
		question.Asked, question.Answered = func() { q.observer.askedFile(r, nil) }, func(a callback.Answer) { q.observer.askedFile(r, &a.Verdict) }
	}
	return q.asker.Ask(ctx, question)
}

// count notes what was allowed.
func (q *questions) count(g grant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.granted[g] == 0 {
		if len(q.order) >= mostGrants {
			q.beyond++
			return
		}
		q.order = append(q.order, g)
	}
	q.granted[g]++
}

// allowed says in words what was allowed so far.
func (q *questions) allowed() (list []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, g := range q.order {
		text := fmt.Sprintf("%s allowed: %s, by %s", g.rule, g.what, cmp.Or(errtext.Shorten(g.by), "the tool"))
		if n := q.granted[g]; n > 1 {
			text += fmt.Sprintf(", %d times", n)
		}
		list = append(list, strings.TrimSpace(text))
	}
	if q.beyond > 0 {
		list = append(list, fmt.Sprintf("Decide allowed %d opens more than are listed", q.beyond))
	}
	return list
}
