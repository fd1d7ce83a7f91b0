package runner

import (
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/internal/callback"
	"github.com/holdfast-dev/holdfast/internal/supervisor"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

// refusals is the table in which one run's supervisor records what it refuses. It can be read while the run goes on and after it.
// The zero value is that of a run without a supervisor.
type refusals struct {
	mu     sync.Mutex
	file   *os.File
	list   []supervisor.Denial
	beyond uint64
	names  supervisor.Names // protected ones that the tool has made in directories of its own
	dots   supervisor.Names // unknown ones that begin with a dot, in other directories

	watch    *watcher // nil: the policy watches nothing
	ring     supervisor.WatchReader
	lost     uint64         // records of the ring for which there was no room
	ended    chan struct{}  // closed: nothing is recorded any more
	emptying sync.WaitGroup // the goroutine of follow

	toldDenied, toldWatched int // how many of list and of watch's list an observer was told; of follow, then of end's caller

	questions *questions // nil: the policy has no Files.Decide
}

// begin takes the descriptor of the memory that init shares, and that of the socket on which it asks; nil: there is none. With Files.Watch
// the ring in the memory is emptied from now on, and tell, if there is one, is called again and again; with Files.Decide questions are answered, and
// run has the answers that last for the run.
func (r *refusals) begin(f, asks *os.File, s *Sandbox, run *callback.Memory, o *observer, tell func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file = f; f == nil || !s.Policy.Files.Watch && tell == nil {
		return
	}
	r.ended = make(chan struct{})
	every := tellEvery
	if s.Policy.Files.Watch {
		every, r.watch = watchEvery, newWatcher(s)
		r.ring.Read = func(b []byte, at int64) bool { _, err := f.ReadAt(b, at); return err == nil }
		r.ring.Write = func(b []byte, at int64) bool { _, err := f.WriteAt(b, at); return err == nil }
	}
	ended := r.ended
	r.emptying.Go(func() { r.follow(ended, every, tell) })
	if asks != nil && r.watch != nil {
		r.questions = newQuestions(asks, r, s, run, o)
	}
}

// follow takes records out of the ring before it is full, unless the tool makes them faster than that, and calls tell.
func (r *refusals) follow(ended <-chan struct{}, every time.Duration, tell func()) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			r.mu.Lock()
			if r.watch != nil {
				r.lost = r.watch.empty(&r.ring)
			}
			r.mu.Unlock()
			if tell != nil {
				tell()
			}
		}
	}
}

const (
	watchEvery = 5 * time.Millisecond  // a tool that does nothing but look at absent files fills the ring in some 40 ms
	tellEvery  = 20 * time.Millisecond // without a ring, for an observer
)

// fresh returns what an observer has not been told: the lists grow at their ends alone.
func (r *refusals) fresh() (denied []supervisor.Denial, watched []policy.Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil && r.used(supervisor.DenialsUsed) > r.toldDenied {
		r.read()
	}
	denied = r.list[min(r.toldDenied, len(r.list)):]
	r.toldDenied = max(r.toldDenied, len(r.list))
	if r.watch != nil {
		watched = slices.Clone(r.watch.list[r.toldWatched:])
		r.toldWatched = len(r.watch.list)
	}
	return denied, watched
}

// watched returns what Files.Watch has found so far, and how much more there was.
func (r *refusals) watched() ([]policy.Violation, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	if r.watch == nil {
		return nil, 0
	}
	return slices.Clone(r.watch.list), r.watch.beyond + r.watch.blind + r.lost
}

// keepOne keeps the denial of one deed, or counts it.
func (r *refusals) keepOne(d supervisor.Denial, v policy.Violation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := watched{d.Deed, d.Paths, d.NoFollow}
	if i, ok := r.watch.seen[key]; ok {
		r.watch.list[i].Count++
		return
	}
	r.watch.keep(key, v)
}

// allowed says in words what Files.Decide has allowed so far.
func (r *refusals) allowed() []string {
	r.mu.Lock()
	q := r.questions
	r.mu.Unlock()
	if q == nil {
		return nil
	}
	return q.allowed()
}

// end reads the table for the last time and lets go of the memory. It leaves no goroutine.
func (r *refusals) end() {
	defer r.emptying.Wait() // without the lock, which the goroutine takes
	if r.questions != nil {
		r.questions.end() // as that
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	if r.ended != nil {
		close(r.ended)
		r.ended = nil
	}
	r.dots.List = stillThere(r.dots.List)
	r.file = nil
}

// get returns what has been refused so far, and how many denials the table had no room for.
func (r *refusals) get() ([]supervisor.Denial, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read()
	return r.list, r.beyond
}

// read takes out what is in the ring, and copies the table, unless it is empty.
func (r *refusals) read() {
	if r.file == nil {
		return
	}
	if r.watch != nil {
		r.lost = r.watch.empty(&r.ring)
	}
	if r.used(supervisor.DenialsUsed) == 0 && r.used(supervisor.NamesUsed) == 0 && r.used(supervisor.DotsUsed) == 0 {
		return
	}
	table := make([]byte, supervisor.DenialBytes)
	if _, err := r.file.ReadAt(table, 0); err != nil {
		return // it is memory, and of its full size from the first
	}
	r.list, r.beyond = supervisor.ReadDenials(table)
	r.names, r.dots = supervisor.ReadNames(table)
}

// used reads a number of the table's; 0 if it cannot be read.
func (r *refusals) used(at uintptr) int {
	var n [4]byte
	r.file.ReadAt(n[:], int64(at))
	return int(binary.NativeEndian.Uint32(n[:]))
}

// made returns the protected names that the tool has made so far in directories of its own, and the unknown ones in others that are still there.
func (r *refusals) made() (names, dots supervisor.Names) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read(); r.file == nil {
		return r.names, r.dots
	}
	return r.names, supervisor.Names{List: stillThere(r.dots.List), More: r.dots.More}
}

// stillThere returns those of the paths at which there is something, without following a link.
func stillThere(paths []string) (there []string) {
	for _, p := range paths {
		fd, err := unix.Openat2(unix.AT_FDCWD, p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS})
		if err == nil {
			unix.Close(fd)
		}
		if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) {
			there = append(there, p)
		}
	}
	return there
}
