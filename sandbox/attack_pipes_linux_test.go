package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"golang.org/x/sys/unix"
)

var _, _ = offer(attacks, "pipes", pipeActs), offer(programs, "hold pipes", holdPipes)

// pipeActs move a byte by the calls that hold a pipe's lock while there is none.
var pipeActs = []act{
	{name: "splice a socket into a pipe", tame: true, try: func(ground) error {
		_, err := unix.Splice(full(socketEnds()), nil, pipeEnds()[1], nil, 1, 0)
		return err
	}},
	{name: "splice a pipe into a socket", tame: true, try: func(ground) error {
		_, err := unix.Splice(full(pipeEnds()), nil, socketEnds()[1], nil, 1, 0)
		return err
	}},
	{name: "send a socket into a pipe", tame: true, lacks: []error{unix.EINVAL}, try: func(ground) error {
		_, err := unix.Sendfile(pipeEnds()[1], full(socketEnds()), nil, 1)
		return err
	}},
	{name: "splice a file into a pipe from an offset", works: true, tame: true, try: func(f ground) error {
		fd, at := open1(f), int64(0)
		_, err := unix.Splice(fd, &at, pipeEnds()[1], nil, 1, 0)
		return err
	}},
	{name: "send a file into a pipe from an offset", works: true, tame: true, try: func(f ground) error {
		fd, at := open1(f), int64(0)
		_, err := unix.Sendfile(pipeEnds()[1], fd, &at, 1)
		return err
	}},
}

func open1(f ground) int {
	fd, _ := unix.Open(filepath.Join(f.read, "file"), unix.O_RDONLY, 0)
	return fd
}

func pipeEnds() (p [2]int) {
	unix.Pipe2(p[:], unix.O_CLOEXEC)
	return p
}

func socketEnds() [2]int {
	s, _ := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	return s
}

// full writes a byte to the second end, and returns the first.
func full(ends [2]int) int {
	unix.Write(ends[1], []byte("x"))
	return ends[0]
}

func TestKernelAttackTheLocksOfPipes(t *testing.T) {
	eachWall(t, allSets, func(t *testing.T, w walls) {
		attackPlainly(t, "pipes")
		attackWith(t, "pipes", w, nil)
	})
}

// holdPipes has its working directory's FIFO, and what is to become sub/.git, held by threads that wait in a call, has init open the
// FIFO then, and ends after a minute.
func holdPipes([]string) {
	time.AfterFunc(time.Minute, func() { os.Exit(0) })
	os.Mkdir("sub", 0o755)
	file, err := unix.Open("sub/.git", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
	fmt.Println(err, unix.Mkfifo("fifo", 0o644))
	fifo, err := unix.Open("fifo", unix.O_RDWR, 0)
	fmt.Println(err)
	for _, pipe := range []int{file, fifo} {
		for _, nr := range []uintptr{unix.SYS_SPLICE, unix.SYS_SENDFILE} {
			held, ends := make(chan error, 1), socketEnds()
			thread := make(chan int)
			go func() {
				runtime.LockOSThread()
				thread <- unix.Gettid()
				if nr == unix.SYS_SPLICE {
					held <- rawCall(nr, uintptr(ends[0]), 0, uintptr(pipe), 0, 1)
					return
				}
				held <- rawCall(nr, uintptr(pipe), uintptr(ends[0]), 0, 1)
			}()
			for calls, waits := fmt.Sprintf("/proc/self/task/%d/syscall", <-thread), true; waits; {
				now, _ := os.ReadFile(calls)
				select {
				case err := <-held:
					fmt.Println(err)
					waits = false
				default:
					waits = !strings.HasPrefix(string(now), fmt.Sprint(nr, " "))
				}
			}
		}
	}
	fmt.Println("ready")
	unix.Open("fifo", unix.O_WRONLY|unix.O_NONBLOCK, 0)
	io.Copy(io.Discard, os.Stdin)
}

// TestKernelARunEndsWhoseToolHoldsPipes: init has both pipes open, and reads one of them.
func TestKernelARunEndsWhoseToolHoldsPipes(t *testing.T) {
	eachWall(t, []walls{allSets[0], allSets[3]}, func(t *testing.T, w walls) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		p := workspaceHere(t)
		p.May, p.Files.Read = []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundNetwork}, append(p.Files.Read, exe)
		s, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := s.CommandContext(ctx, exe)
		c.Args = []string{attackTool, "hold pipes"}
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var said string
		for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
			said += lines.Text() + "\n"
		}
		began := time.Now()
		cancel()
		c.Wait()
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("the end took %v", took)
		}
		if said != "<nil> <nil>\n<nil>\n"+strings.Repeat(unix.EINVAL.Error()+"\n", 4) {
			t.Error(said)
		}
	})
}
