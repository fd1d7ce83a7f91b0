package output

import (
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
)

// begin counts a source.
func (l *Log) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open++
	l.any = true
}

// finish ends a source.
func (l *Log) finish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.settle()
}

// settle tells of the end, with the lock held.
func (l *Log) settle() {
	if l.started && l.open == 0 {
		select {
		case <-l.ended:
		default:
			close(l.ended)
		}
	}
}

// A tee is a writer of the command's.
type tee struct {
	log  *Log
	to   io.Writer
	once sync.Once
}

// Tee returns a writer for a command's Stdout or Stderr in the place of one.
func (l *Log) Tee(to io.Writer) io.Writer {
	l.begin()
	return &tee{log: l, to: to}
}

// Write writes to the Log and to the command's own writer, whose answer it returns.
func (t *tee) Write(p []byte) (int, error) {
	t.log.add(p)
	return t.to.Write(p)
}

// ReadFrom does what io.Copy does without it, and learns of the end.
func (t *tee) ReadFrom(r io.Reader) (int64, error) {
	defer t.once.Do(t.log.finish)
	return io.Copy(struct{ io.Writer }{t}, struct{ io.Reader }{r})
}

// Pipe returns a file for a command that has no writer. Started and Abandon close it. What comes is read in a goroutine, until no process has it
// open for writing, or Close.
func (l *Log) Pipe() (*os.File, error) {
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	l.begin()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readers, l.writers = append(l.readers, r), append(l.writers, w)
	return w, nil
}

// Started says that the command was started: there are no more sources.
func (l *Log) Started() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.writers {
		w.Close()
		go l.drain(l.readers[i])
	}
	l.writers, l.started = nil, true
	l.settle()
}

// Abandon says that it was not. Nothing follows.
func (l *Log) Abandon() {
	l.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writers {
		w.Close()
	}
	l.writers, l.readers, l.started, l.open = nil, nil, true, 0
	l.settle()
}

// Close ends the pipes, whichever process has one open. It waits for what take reads, which needs the lock.
func (l *Log) Close() {
	l.closed.Store(true)
	for _, r := range l.pipes() {
		r.Close()
	}
}

func (l *Log) pipes() []*os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.readers)
}

// drain reads a pipe to its end.
func (l *Log) drain(r *os.File) {
	defer l.finish()
	defer r.Close()
	if c, err := r.SyscallConn(); err == nil {
		_ = c.Read(func(fd uintptr) (end bool) { // until EAGAIN: the poller tells of what comes later
			for more := true; more && !l.closed.Load(); {
				more, end = l.take(fd)
			}
			return end
		})
	}
}

// mostTaken is how many pieces of a pipe catchUp reads: as much as one can hold that a process has not made larger as root.
const mostTaken, piece = 256, 4 << 10

// catchUp reads what the pipes hold at this moment.
func (l *Log) catchUp() {
	for _, r := range l.pipes() {
		c, err := r.SyscallConn()
		if err != nil {
			continue
		}
		_ = c.Control(func(fd uintptr) { // which fails if the pipe has been read to its end
			for more, n := true, 0; more && n < mostTaken; n++ {
				more, _ = l.take(fd)
			}
		})
	}
}

// take reads a piece of a pipe. There may be more, or it has ended, or neither is known yet.
func (l *Log) take(fd uintptr) (more, end bool) {
	l.taking.Lock() // so that what was read is in the Log before another piece is
	defer l.taking.Unlock()
	var buf [piece]byte
	n, err := readNow(fd, buf[:])
	l.add(buf[:max(n, 0)])
	return n > 0 || err == syscall.EINTR, n <= 0 && err != syscall.EINTR && err != syscall.EAGAIN
}
