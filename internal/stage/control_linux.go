package stage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/holdfast-dev/holdfast/internal/stage/wire"
	"golang.org/x/sys/unix"
)

// A Control is the harness's end of one run: the socket on which the stage and
// init report, and, once the stage has cloned it, a pidfd of init.
//
// Its methods but for Received are not for concurrent use.
type Control struct {
	Child *os.File // the stage's end, until it is passed on

	own  int             // the harness's end until then; -1: it is in sock
	lost runtime.Cleanup // closes it for a command that os/exec could not start
	sock *os.File
	init *os.File // pidfd
	// keeper is a pidfd of the process that kills what is left when the stage and
	// init are killed together; nil: a pid namespace needs none.
	keeper *os.File
	// mounts is what of the sandbox's mounts does not end with init: its private tmpfs or, without one, its mount namespace. The kernel
	// unmounts the rest before init is a zombie (do_exit: exit_task_namespaces and exit_task_work come before exit_notify). To
	// free the tmpfs takes longest; held here, it is freed while the stage ends (see AtEnd).
	mounts *os.File

	// Denials is the memory in which the supervisor records what it refuses (supervisor.ReadDenials), once AwaitEvidence has returned. It
	// can be read after init's death, too, until Close. Questions is the socket on which it asks (supervisor.ReadQuestion). Nil: there is none.
	Denials, Questions *os.File

	received receivedFDs // what has come up; see Received
	doomed   bool        // init is to be killed as soon as it is known

	Started   bool
	ToolEnded bool // the tool of a session's command has ended
	Gone      bool // and no process of the command is left
	Deadline  bool // the stage ended the run at its deadline
	Stuck     int  // a process that was killed and has not ended, or 0
	Lost      *Death
	Ended     *Ending // nil: the stage was killed, or was not to say it (Run.Tell); of a session's command: of its tool
	Failed    *Failure
	Checks    [wire.MaxSelfChecks]int32
	Probed    bool
	Keyring   int64 // the tool's session keyring
	Warmth    int   // which process became the tool: wire.Cold and what follows it
	InitPID   int64 // init's pid, as the stage sees it; negative: the one that it has inside
	// Gate is called when the stage waits at a gate (wire.GateBorn, wire.GateBuilt).
	// It goes on if that returns nil, and fails otherwise.
	Gate    func(gate int) error
	GateErr error // what it returned
	// KillBelow kills what is below a process that was killed a second ago, as long as lives says that the number is that process's; nil: nothing can be.
	KillBelow func(pid int, lives func() bool)
	gate      int
	waiting   bool     // init waits at gate, and who it is is not known yet
	Evidence  []byte   // nil: none has come
	buf       *message // nil: none has been read
}

// A message has room for the longest.
type message [wire.EvidenceSize + int(unsafe.Sizeof(wire.Message{}))]byte

// messages serve one Control after another: the garbage collector has little to do for a harness that runs many commands.
var messages = sync.Pool{New: func() any { return new(message) }}

// A Death is the end of a process of the sandbox's own before that of the tool: it was
// killed by neither the stage nor the harness.
type Death struct {
	Keeper bool // the keeper
	Warden bool // or the warden of a session's command; else it is init
	Status syscall.WaitStatus
}

// A Failure is what the stage says when it could not start the tool.
type Failure struct {
	Step  int // index into the plan's steps, or a number that Template.StepName knows
	Where int // wire.InStage, InInit or InTool
	Errno syscall.Errno
	Found string // what stood there instead, if that says more
}

// Exec reports whether the failure is the tool's own execve's.
func (f *Failure) Exec() bool { return f.Step == wire.StepExecute }

// NewControl makes the socket.
func NewControl() (*Control, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	c := &Control{own: fds[0], Child: os.NewFile(uintptr(fds[1]), "holdfast control")}
	c.lost = runtime.AddCleanup(c, func(fd int) { unix.Close(fd) }, c.own)
	return c, nil
}

// Passed closes the stage's end in the harness: from now on the stage's end is
// the only one, and its death is seen. Go's poller hears of the harness's end only now: it wakes a thread of the runtime, since one can write there
// already, and the stage does not wait for that.
//
// Any goroutine may call hurry, which ends, a second later, what waits for messages: for a run whose stage has ended. All that the stage has said is
// there by then. An init that lives on holds the socket as long as its tool's process waits in execve; AwaitEmpty then kills that process.
func (c *Control) Passed() (hurry func()) {
	if c.Child == nil {
		return nil
	}
	c.Child.Close()
	c.lost.Stop()
	unix.SetNonblock(c.own, true) // a descriptor that is open: it does not fail
	sock := os.NewFile(uintptr(c.own), "holdfast control")
	c.Child, c.sock, c.own = nil, sock, -1
	if sock.SetReadDeadline(time.Time{}) != nil { // the poller has not taken it (epoll_ctl(2), ENOSPC)
		c.Failed = &Failure{Step: wire.StepPrepare, Where: wire.InStage, Errno: unix.ENOSPC, Found: "a user whose epoll watches are used up: fs.epoll.max_user_watches"}
	}
	return func() { sock.SetReadDeadline(time.Now().Add(time.Second)) }
}

// Close lets go of everything.
func (c *Control) Close() {
	c.Passed()
	if c.sock != nil {
		c.sock.Close()
		c.sock = nil
	}
	if c.buf != nil {
		messages.Put(c.buf)
		c.buf = nil
	}
	if c.init != nil {
		c.init.Close()
		c.init = nil
	}
	if c.keeper != nil {
		c.keeper.Close()
		c.keeper = nil
	}
	for _, f := range [...]*os.File{c.Denials, c.Questions, c.mounts} {
		f.Close() // a nil one does not mind
	}
	c.Denials, c.Questions, c.mounts = nil, nil, nil
	c.received.mu.Lock()
	defer c.received.mu.Unlock()
	c.received.closed = true
	for i, f := range c.received.files {
		f.Close() // a nil one does not mind
		c.received.files[i] = nil
	}
}

// AwaitStart reads until the tool was executed or it is known that it never
// will be. The error is io.EOF when the stage died without a report.
func (c *Control) AwaitStart() error {
	for !c.Started && c.Failed == nil && !c.Probed {
		if err := c.next(); err != nil {
			return err
		}
	}
	return nil
}

// AwaitEvidence reads until the evidence has come, if any will, and the stage has said who init is, by which the evidence is
// judged: init can be faster.
func (c *Control) AwaitEvidence() {
	for c.Started && (c.Evidence == nil || c.InitPID == 0) && c.next() == nil {
	}
}

// Drain reads what is left until every writer is gone.
func (c *Control) Drain() {
	for c.next() == nil {
	}
}

// next reads one message. A deadline that has passed leaves the socket open, and is an error only when nothing has arrived.
func (c *Control) next() error {
	if c.sock == nil {
		return io.EOF
	}
	if c.buf == nil {
		c.buf = messages.Get().(*message)
	}
	n, pidfd, err := receive(c.sock, c.buf[:])
	if err != nil {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			c.sock.Close()
			c.sock = nil
		}
		return err
	}
	c.take(n, pidfd)
	return nil
}

// receive reads one record and the descriptor that came with it; -1: none.
func receive(sock *os.File, buf []byte) (n, fd int, err error) {
	raw, err := sock.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	oob := make([]byte, unix.CmsgSpace(4))
	oobn := 0
	read := func(fd uintptr) bool {
		n, oobn, _, _, err = unix.Recvmsg(int(fd), buf, oob, unix.MSG_CMSG_CLOEXEC)
		return err != unix.EAGAIN
	}
	waitErr := raw.Read(read)
	if errors.Is(waitErr, os.ErrDeadlineExceeded) { // which package os looks at before it reads
		arrived := false
		if raw.Control(func(fd uintptr) { arrived = read(fd) }) == nil && arrived {
			waitErr = nil
		}
	}
	switch {
	case waitErr != nil:
		return 0, -1, waitErr
	case err == unix.EINTR:
		return receive(sock, buf)
	case err != nil:
		return 0, -1, os.NewSyscallError("recvmsg", err)
	case n == 0:
		return 0, -1, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		return n, -1, nil
	}
	if fds, err := unix.ParseUnixRights(&messages[0]); err == nil && len(fds) == 1 {
		return n, fds[0], nil
	}
	return n, -1, nil
}

// take files one message.
func (c *Control) take(n, fd int) {
	var m wire.Message
	size := int(unsafe.Sizeof(m))
	if n < size {
		if fd >= 0 {
			unix.Close(fd)
		}
		return
	}
	copy(bytesOf(&m), c.buf[:size])
	c.keep(m, fd)
	switch m.Kind {
	case wire.MsgInit:
		c.InitPID = m.Value
		if c.doomed {
			c.KillInit()
		}
		if c.waiting { // init has been faster than the stage
			c.waiting = false
			c.pass(c.gate)
		}
	case wire.MsgStarted:
		c.Started, c.Checks, c.Keyring, c.Warmth = c.Failed == nil, m.Check, m.Value, int(m.Step)
	case wire.MsgFailed:
		c.Failed = &Failure{Step: int(m.Step), Where: int(m.Where), Errno: syscall.Errno(m.Errno), Found: string(c.buf[size:n])}
	case wire.MsgGate:
		if c.gate = int(m.Value); c.init == nil {
			c.waiting = true
			break
		}
		c.pass(c.gate)
	case wire.MsgPassed:
		if fd < 0 {
			c.failLost(m)
		}
	case wire.MsgEvidence:
		c.Evidence = append([]byte{}, c.buf[size:n]...) // never nil: it has come
	case wire.MsgDeadline:
		c.Deadline = true
	case wire.MsgStuck:
		c.Stuck = max(int(m.Value), 1)
	case wire.MsgLost:
		if c.Lost == nil && !c.doomed {
			c.Lost = &Death{m.Value == wire.LostKeeper, m.Value == wire.LostWarden, syscall.WaitStatus(m.Errno)}
		}
	case wire.MsgEnded:
		c.Ended = newEnding(m, c.buf[size:n])
	case wire.MsgToolEnded:
		c.ToolEnded, c.Ended = true, newEnding(m, c.buf[size:n])
	case wire.MsgGone:
		c.Gone = true
	case wire.MsgProbe:
		c.Probed, c.Checks = true, m.Check
	}
}

// pass opens a gate, or, if the hook fails, lets the stage see its end.
func (c *Control) pass(gate int) {
	if c.Gate != nil {
		c.GateErr = c.Gate(gate)
	}
	raw, err := c.sock.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) {
		if c.GateErr != nil {
			unix.Shutdown(int(fd), unix.SHUT_WR)
			return
		}
		unix.SendmsgN(int(fd), []byte{1}, nil, nil, unix.MSG_NOSIGNAL)
	})
}

// PID is init's process id; 0: it is not known.
func (c *Control) PID() int {
	if c.InitPID > 0 || c.init == nil {
		return max(int(c.InitPID), 0)
	}
	raw, err := c.init.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	raw.Control(func(fd uintptr) { pid = PIDOf(fd) })
	return max(pid, 0)
}

// PIDOf returns the number that a pidfd's process has in /proc (pidfd_open(2), "Pid:" of fdinfo); negative: it has ended; 0: /proc does not say.
func PIDOf(pidfd uintptr) (pid int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", pidfd))
	_, rest, _ := bytes.Cut(text, []byte("\nPid:"))
	fmt.Sscan(string(rest), &pid)
	return pid
}

// keep files the descriptor that came with a message.
func (c *Control) keep(m wire.Message, fd int) {
	switch kind := m.Kind; {
	case fd < 0:
	case kind == wire.MsgPassed:
		c.received.store(m.Value, fd)
	case kind == wire.MsgInit && c.init == nil:
		unix.SetNonblock(fd, true)
		c.init = os.NewFile(uintptr(fd), "pidfd of init")
	case kind == wire.MsgKeeper && c.keeper == nil:
		unix.SetNonblock(fd, true)
		c.keeper = os.NewFile(uintptr(fd), "pidfd of the keeper")
	case kind == wire.MsgEvidence && c.Denials == nil:
		c.Denials = os.NewFile(uintptr(fd), "table of denials")
	case kind == wire.MsgQuestions && c.Questions == nil:
		c.Questions = os.NewFile(uintptr(fd), "questions of the supervisor")
	case kind == wire.MsgStarted && c.mounts == nil:
		c.mounts = os.NewFile(uintptr(fd), "mounts of the sandbox")
	default:
		unix.Close(fd)
	}
}
