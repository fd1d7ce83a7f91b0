package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/sandbox"
	"golang.org/x/sys/unix"
)

// tool is this program inside a sandbox: "acts FROM" tries the acts from a number on, "work NAME" does a piece of work,
// "nop" does nothing.
func tool(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "acts":
		from, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return tryActs(from)
	case len(args) == 2 && args[0] == "work":
		for _, w := range works {
			if w.name == args[1] {
				return w.do()
			}
		}
	case len(args) == 1 && args[0] == "nop":
		return nil
	}
	return fmt.Errorf("no such tool: %q", args)
}

// tryActs prints the number of each act before it is tried, and what came of it behind that.
func tryActs(from int) error {
	s, err := theScene()
	if err != nil {
		return err
	}
	for i, a := range acts() {
		if i < from {
			continue
		}
		fmt.Printf("%d ", i)
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and the thread ends with the act, whatever it changed of itself
			done <- a.try(s)
		}()
		if err := <-done; err != nil {
			fmt.Println("refused", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("did")
		}
	}
	return nil
}

// A work is something that tools do and that must function.
type work struct {
	name  string
	needs string                                  // a program, without which it is left out; "": none
	serve func(l net.Listener, p *sandbox.Policy) // as the harness, and grants the tool that server, or what else it takes; nil: nothing
	long  bool                                    // it takes longer than all others together
	do    func() error
}

const (
	answer       = "the answer of the server"
	portVariable = "HOLDFAST_PORT" // of the harness's server
)

var works = []work{
	{name: "files", do: func() error {
		if err := os.WriteFile("made", []byte("text"), 0o644); err != nil {
			return err
		}
		if err := os.MkdirAll("d/e", 0o755); err != nil {
			return err
		}
		if err := os.Rename("d", "f"); err != nil {
			return err
		}
		if err := os.WriteFile(os.DevNull, []byte("text"), 0o644); err != nil {
			return err
		}
		f, err := os.CreateTemp("", "")
		if err != nil {
			return err
		}
		f.Close()
		home, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(home, "x"), nil, 0o644); err != nil {
			return err
		}
		return os.RemoveAll("f")
	}},
	{name: "git", needs: "git", do: func() error {
		return shell("git init -q g && cd g && echo text >file && git add file && git -c user.name=a -c user.email=a@b commit -q -m subject && git log --oneline | grep -q subject")
	}},
	{name: "go build", needs: "go", do: func() error {
		return shell("mkdir -p m && cd m && printf 'module m\\ngo 1.24\\n' >go.mod && printf 'package m\\n\\nfunc F() int { return 1 }\\n' >m.go && GOTOOLCHAIN=local go build .")
	}},
	{name: "server", do: func() error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		if _, err := net.InterfaceAddrs(); err != nil { // which development servers print
			return err
		}
		go http.Serve(l, answers)
		return fetch(l.Addr().String())
	}},
	{name: "pty", do: func() error {
		fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
		if err != nil {
			return err
		}
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		f, err := os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
		if err == nil {
			f.Close()
		}
		return err
	}},
	{name: "shared memory", do: func() error {
		name := fmt.Sprint("/dev/shm/holdfast-", os.Getpid()) // as shm_open(3) does
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		if err := unix.Ftruncate(fd, 4096); err != nil {
			return err
		}
		if _, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return err
		}
		return os.Remove(name)
	}},
	{name: "/tmp", serve: func(_ net.Listener, p *sandbox.Policy) { p.Files.MayShare = []string{"/tmp"} }, do: func() error {
		return shell("set -e; d=/tmp/holdfast-work-$$; mkdir $d; printf '#!/bin/sh\necho text\n' >$d/made; [ $(sh $d/made) = text ]; mv $d/made $d/moved; cd $d; [ -f moved ]; rm -r $d")
	}},
	{name: "fetch", serve: serveLoopback, do: func() error { return fetch("127.0.0.1:" + os.Getenv(portVariable)) }},
	{name: "pip", needs: "python3", serve: serveIndex, long: true, do: pipInstalls},
}

var answers = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, answer) })

// serveLoopback serves the answer and grants its port.
func serveLoopback(l net.Listener, p *sandbox.Policy) {
	p.Network.Loopback = []uint16{l.Addr().(*net.TCPAddr).AddrPort().Port()}
	go http.Serve(l, answers)
}

// shell runs a script whose output is the error's.
func shell(script string) error {
	out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func fetch(address string) error {
	r, err := http.Get("http://" + address + "/")
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err == nil && string(text) != answer {
		err = fmt.Errorf("the answer is %q", text)
	}
	return err
}
