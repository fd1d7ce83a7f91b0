package runner

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/stage"
	"golang.org/x/sys/unix"
)

// A procID is a process for good: its number outside, and when it began (proc_pid_stat(5)). Another process of that number began at another time.
type procID struct {
	pid   int
	began string
}

// An occupant is a process as /proc shows it, with all its threads.
type occupant struct {
	procID
	parent  int
	threads bool // it has more than one
	runs    bool // one of its threads runs, or waits for what a signal interrupts
	stopped bool // those that live are, by a signal, not by a tracer
	dead    bool // none lives; it has no children then
	asleep  bool // one is in an uninterruptible sleep
}

// children returns the children of a process; none if its number is another's. whole says that it is the same process yet, and that of those listed none
// has gone.
func (o occupant) children() (list []occupant, whole bool) {
	tasks := o.tasks()
	whole = len(tasks) > 0
	for _, task := range tasks {
		text, err := os.ReadFile(task + "/children")
		whole = whole && err == nil
		for _, word := range strings.Fields(string(text)) {
			pid, _ := strconv.Atoi(word)
			if c, ok := occupantOf(pid); ok && c.parent == o.pid {
				list = append(list, c)
			} else {
				whole = false
			}
		}
	}
	if now := statOf(fmt.Sprintf("/proc/%d", o.pid)); now[statBegan] != o.began {
		return nil, false
	}
	return list, whole
}

// tasks returns the directories of the threads; none if they cannot be read.
func (o occupant) tasks() []string {
	if !o.threads {
		return []string{fmt.Sprintf("/proc/%d/task/%d", o.pid, o.pid)}
	}
	list, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", o.pid))
	return list
}

// occupantOf reads what /proc says of a process; false: there is none, or it cannot be read. A thread that cannot be read is taken for one that runs.
func occupantOf(pid int) (o occupant, ok bool) {
	f := statOf(fmt.Sprintf("/proc/%d", pid))
	o = occupant{procID: procID{pid, f[statBegan]}, threads: f[statThreads] > "1"}
	o.parent, _ = strconv.Atoi(f[statParent])
	tasks := o.tasks()
	o.runs = len(tasks) == 0
	traced := false
	for _, task := range tasks {
		if o.threads {
			f = statOf(task)
		}
		switch f[statState] {
		case "Z", "X", "x":
		case "T":
			o.stopped = true
		case "t":
			traced = true
		case "D":
			o.asleep = true
		default:
			o.runs = true
		}
	}
	o.dead = !o.runs && !o.asleep && !traced && !o.stopped
	o.stopped = o.stopped && !o.runs && !o.asleep && !traced
	return o, o.began != ""
}

// Fields of proc_pid_stat(5), from the third on.
const (
	statState, statParent, statThreads, statBegan, statFields = 0, 1, 17, 19, 20
)

// statOf reads the fields of a process or a thread; all are empty if there is none.
func statOf(dir string) []string {
	text, _ := os.ReadFile(dir + "/stat")
	if f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])); len(f) >= statFields {
		return f
	}
	return make([]string, statFields)
}

// signal sends a signal; false: it is not known whether it came there. It reaches no process outside of the session: the pidfd is of whatever process has the
// number, and the signal is sent only if that began when this one did and has the same parent, which is a process of the session.
func (o occupant) signal(sig unix.Signal) bool {
	fd, err := openProcess(o.pid)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	switch now := statOf(fmt.Sprintf("/proc/%d", o.pid)); {
	case now[statBegan] == "" || now[statBegan] == o.began && now[statParent] != strconv.Itoa(o.parent):
		return false
	case now[statBegan] != o.began:
		return true // it has ended
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	return err == nil || err == unix.ESRCH
}

// openProcess opens a pidfd of the process that has a number in /proc. Where that is of another pid namespace than this process, as after unshare(1)
// with -p and -f alone, pidfd_open(2) takes the number for another process's: EINVAL.
func openProcess(pid int) (fd int, err error) {
	if fd, err = unix.PidfdOpen(pid, 0); err != nil {
		return -1, err
	}
	switch now := stage.PIDOf(uintptr(fd)); {
	case now == pid:
		return fd, nil
	case now < 0:
		err = unix.ESRCH
	default:
		err = unix.EINVAL
	}
	unix.Close(fd)
	return -1, err
}

// stop sends SIGSTOP. The kernel wakes one thread for it (complete_signal in kernel/signal.c): the one that leads the process, if that has no signal
// pending. One that sleeps uninterruptibly, as in a call that a supervisor was stopped over, takes it when it wakes, and the others would go on till then. It
// has a signal pending now. So SIGSTOP that is sent again, once SIGCONT has taken back the first, goes to another thread.
func (o occupant) stop() {
	o.signal(unix.SIGSTOP)
	if o.runs && o.asleep {
		o.signal(unix.SIGCONT)
		o.signal(unix.SIGSTOP)
	}
}

// killBelow kills what is below a process. lives says whether the number is that process's.
func killBelow(pid int, lives func() bool) {
	if top, ok := occupantOf(pid); ok && lives() {
		top.killBelow()
	}
}

func (o occupant) killBelow() {
	children, _ := o.children()
	for _, c := range children {
		c.signal(unix.SIGKILL)
		c.killBelow()
	}
}
