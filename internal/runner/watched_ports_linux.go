package runner

import (
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

// A portsWatch tells the observer of a session who listens in it.
type portsWatch struct {
	session *Session
	known   []policy.Port
	// Who listens is looked for if one of these has changed.
	changes  socketChanges
	sockets  []socket
	commands []int // the wardens of those that run
}

// WatchPorts has the observer told, until all processes of the session have ended. Without an observer there is nothing to do. It is called once.
func (n *Session) WatchPorts() {
	if n.observer.queue == nil {
		return
	}
	ended := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.drained:
		return
	default:
		n.watching = ended
	}
	go func() {
		defer close(ended)
		w := portsWatch{session: n, changes: socketChanges{session: n}}
		wait := time.NewTimer(portsEvery)
		defer wait.Stop()
		for {
			select {
			case <-n.drained:
				return
			case <-wait.C:
			}
			began := time.Now()
			w.look()
			wait.Reset(afterLook(time.Since(began)))
		}
	}()
}

// portsLatest is how long the observer waits at most, whatever tools and the machine have open and however busy it is.
const portsLatest = 10 * time.Second

// afterLook is when to look again: a look takes a fiftieth of a processor, but where that would be later than portsLatest.
func afterLook(took time.Duration) time.Duration {
	return min(max(portsEvery, 50*took), portsLatest)
}

// look tells the observer if something has changed. A look that fails is of a session that ends.
func (w *portsWatch) look() {
	commands := w.session.running()
	if len(commands) == 0 && len(w.known) == 0 {
		return // there is no process that could listen
	}
	if same := slices.Equal(commands, w.commands); !w.changes.may() && same {
		return
	}
	sockets, err := w.session.sockets(portTables...)
	if err != nil || slices.EqualFunc(sockets, w.sockets, sameSocket) && slices.Equal(commands, w.commands) {
		return
	}
	now, err := w.session.portsOf(sockets)
	if err != nil {
		return
	}
	w.sockets, w.commands = sockets, commands
	if samePorts(now, w.known) {
		return
	}
	w.session.observer.tell(policy.Event{Kind: policy.EventPorts, Time: time.Now(), Ports: &policy.Ports{Now: told(now), Before: told(w.known)}})
	w.known = now
}

func sameSocket(a, b socket) bool {
	return a.inode == b.inode && a.Port.Port == b.Port.Port && a.Address == b.Address
}

// mostPortsTold bounds an event, of which a thousand may wait for a slow observer.
const mostPortsTold = 256

// told is what an event has of a list.
func told(list []policy.Port) []policy.Port {
	short := make([]policy.Port, 0, min(len(list), mostPortsTold))
	for _, p := range list[:cap(short)] {
		p.Process = policy.Process{PID: p.Process.PID, Outside: p.Process.Outside, Parent: p.Process.Parent, Command: p.Process.Command, ID: p.Process.ID}
		short = append(short, p)
	}
	return short
}

// running are the wardens of the commands whose tools have been executed.
func (n *Session) running() (list []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c, m := range n.members {
		select {
		case <-m.decided:
			if c.Started {
				list = append(list, c.PID())
			}
		default:
		}
	}
	slices.Sort(list)
	return list
}
