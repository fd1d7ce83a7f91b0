package commandtest

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing/iotest"
	"time"
)

// A failingWriter takes n bytes and then fails.
type failingWriter struct{ n int }

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.n -= len(p); f.n < 0 {
		return 0, errCase
	}
	return len(p), nil
}

// An incomparable writer cannot be compared with ==.
type incomparable struct {
	io.Writer
	_ []int
}

func output(c func(w *world) *command) func(w *world) {
	return func(w *world) {
		cmd := c(w)
		before := cmd.fields()
		out, err := cmd.Output()
		w.saw("output", fmt.Sprintf("%t %q", out == nil, out))
		w.err("Output", err)
		w.after(cmd, before)
	}
}

const listFDs = `for f in /proc/$$/fd/*; do n=${f##*/}; [ $n -lt 10 ] && [ -e $f ] && echo "$n $(readlink $f | sed 's/[0-9]//g')"; done`

// manyFiles has a shell read each of n files by its descriptor; one descriptor is left out.
func manyFiles(n, gap int) func(w *world) {
	return func(w *world) {
		c := w.command("/bin/bash", "-c", `for n in {3..60}; do [ -e /proc/$$/fd/$n ] && read -r line <&$n && echo "$n $line"; done; true`)
		for fd := 3; fd < 3+n; fd++ {
			if fd == gap {
				c.ExtraFiles = append(c.ExtraFiles, nil)
				continue
			}
			f, err := os.Open(w.file(fmt.Sprint("extra", fd), fmt.Sprintln("file", fd), 0o600))
			w.must(err)
			defer f.Close()
			c.ExtraFiles = append(c.ExtraFiles, f)
		}
		w.run(c)
	}
}

// stdioCases are about standard input and output and inherited descriptors.
var stdioCases = []diffCase{
	{name: "a nil Stdin is /dev/null", run: func(w *world) { w.run(w.sh("cat; readlink /proc/self/fd/0; exec 0<&0 && echo open")) }},
	{name: "nil outputs are /dev/null", run: func(w *world) {
		c := w.sh("readlink /proc/$$/fd/1 >names; readlink /proc/$$/fd/2 >>names; echo lost; echo lost >&2")
		w.err("Run", c.Run())
		names, err := os.ReadFile("names")
		w.err("ReadFile", err)
		w.saw("names", string(names))
	}},
	{name: "Stdin is a file", run: func(w *world) {
		f, err := os.Open(w.file("in", "one\ntwo\n", 0o600))
		w.must(err)
		defer f.Close()
		c := w.sh("read x; echo $x; readlink /proc/self/fd/0")
		c.Stdin = f
		w.run(c)
		at, _ := f.Seek(0, io.SeekCurrent)
		w.saw("the offset is shared", at)
	}},
	{name: "Stdin is a reader", run: func(w *world) {
		c := w.sh("wc -c; cat; echo end")
		c.Stdin = strings.NewReader("some input\n")
		w.run(c)
	}},
	{name: "Stdin is an empty reader", run: func(w *world) {
		c := w.command("/bin/cat")
		c.Stdin = strings.NewReader("")
		w.run(c)
	}},
	{name: "Stdin is a reader that fails", run: func(w *world) {
		c := w.command("/bin/cat")
		c.Stdin = io.MultiReader(strings.NewReader("before\n"), iotest.ErrReader(errCase))
		w.run(c)
	}},
	{name: "Stdin is a reader that fails and the tool fails too", run: func(w *world) {
		c := w.sh("cat; exit 7")
		c.Stdin = iotest.ErrReader(errCase)
		w.run(c)
	}},
	{name: "Stdin is a reader that blocks, which WaitDelay leaves", run: func(w *world) {
		r, pw := io.Pipe()
		defer pw.Close()
		c := w.sh("echo done")
		c.Stdin, c.WaitDelay = r, 10*time.Millisecond
		w.saw("the goroutine in the reader", "is the caller's to end")
		before := c.fields()
		// os/exec waits for the goroutine in the end: the reader's end must come, and later than WaitDelay.
		c.Stdout = &signalOnWrite{f: func() { time.AfterFunc(time.Second, func() { pw.Close() }) }}
		w.must(c.Start())
		w.err("Wait", c.Wait())
		w.after(c, before)
	}},
	{name: "a tool that cannot be executed leaves a reader that blocks", run: func(w *world) {
		r, pw := io.Pipe()
		c := w.command(w.file("tool", "", 0o755))
		c.Stdin = r
		w.err("Start", c.Start())
		w.state(c)
		pw.Close()
	}},
	{name: "a tool that does not read its input", run: func(w *world) {
		c := w.sh("exec 0<&-; echo done")
		c.Stdin = bytes.NewReader(make([]byte, 1<<20))
		w.run(c)
	}},
	{name: "a mebibyte there and back", run: func(w *world) {
		c := w.command("/bin/cat")
		c.Stdin = bytes.NewReader(bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
		sum := sha256.New()
		c.Stdout = sum
		w.run(c)
		w.saw("sum", fmt.Sprintf("%x", sum.Sum(nil)))
	}},
	{name: "Stdout and Stderr are the same writer", run: func(w *world) {
		c := w.sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done; [ /proc/self/fd/1 -ef /proc/self/fd/2 ] && echo same")
		var both bytes.Buffer
		c.Stdout, c.Stderr = &both, &both
		w.run(c)
		w.saw("both", both.String())
	}},
	{name: "Stdout and Stderr cannot be compared", run: func(w *world) {
		c := w.sh("echo o; [ /proc/self/fd/1 -ef /proc/self/fd/2 ] || echo not the same")
		var both bytes.Buffer
		c.Stdout, c.Stderr = incomparable{Writer: &both}, incomparable{Writer: io.Discard}
		w.run(c)
		w.saw("both", both.String())
	}},
	{name: "Stdout and Stderr are files", run: func(w *world) {
		f, err := os.Create("out")
		w.must(err)
		defer f.Close()
		c := w.sh("echo o; echo e >&2; readlink /proc/$$/fd/1")
		c.Stdout, c.Stderr = f, f
		w.run(c)
		text, err := os.ReadFile("out")
		w.err("ReadFile", err)
		w.saw("file", string(text))
	}},
	{name: "a writer that fails", run: func(w *world) {
		c := w.sh("echo a few words")
		c.Stdout = &failingWriter{3}
		w.run(c)
	}},
	{name: "a writer that fails ends a tool that goes on by SIGPIPE", run: func(w *world) {
		c := w.command("/usr/bin/yes")
		c.Stdout = &failingWriter{100}
		w.run(c)
	}},
	{name: "StdoutPipe and StderrPipe", run: func(w *world) {
		c := w.sh("echo o; echo e >&2")
		out, err := c.StdoutPipe()
		w.must(err)
		errs, err := c.StderrPipe()
		w.must(err)
		w.must(c.Start())
		o, err := io.ReadAll(out)
		w.err("ReadAll", err)
		e, err := io.ReadAll(errs)
		w.err("ReadAll of stderr", err)
		w.saw("pipes", fmt.Sprintf("%q %q", o, e))
		w.err("Wait", c.Wait())
		_, err = out.Read(make([]byte, 1))
		w.err("Read after Wait", err)
		w.state(c)
	}},
	{name: "StdinPipe", run: func(w *world) {
		c := w.sh("while read x; do echo got $x; done; echo end of input")
		in, err := c.StdinPipe()
		w.must(err)
		out, err := c.StdoutPipe()
		w.must(err)
		w.must(c.Start())
		lines := bufio.NewReader(out)
		for _, word := range []string{"one", "two"} {
			fmt.Fprintln(in, word)
			line, err := lines.ReadString('\n')
			w.err("answer to "+word, err)
			w.saw("line "+word, line)
		}
		w.err("Close", in.Close())
		rest, err := io.ReadAll(lines)
		w.err("ReadAll", err)
		w.saw("rest", string(rest))
		w.err("Wait", c.Wait())
		w.err("Close again", in.Close())
		_, err = in.Write([]byte("x"))
		w.err("Write after Wait", err)
	}},
	{name: "a tool that closes its output early", run: func(w *world) {
		c := w.sh("echo words; exec 1>&- 2>&-; read x; exit 5")
		in, err := c.StdinPipe()
		w.must(err)
		out, err := c.StdoutPipe()
		w.must(err)
		w.must(c.Start())
		text, err := io.ReadAll(out) // returns while the tool runs
		w.saw("output", string(text))
		w.err("ReadAll", err)
		w.err("Signal 0", c.Process.Signal(syscallZero))
		in.Close()
		w.err("Wait", c.Wait())
	}},
	{name: "a tool that closes its input early", run: func(w *world) {
		c := w.sh("exec 0<&-; echo closed; read x <&3")
		r, pw, err := os.Pipe()
		w.must(err)
		c.ExtraFiles = []*os.File{r}
		in, err := c.StdinPipe()
		w.must(err)
		out, err := c.StdoutPipe()
		w.must(err)
		w.must(c.Start())
		r.Close()
		_, err = bufio.NewReader(out).ReadString('\n')
		w.err("ReadString", err)
		eventually(func() bool { _, err = in.Write([]byte("x")); return err != nil })
		w.err("Write", err)
		pw.Close()
		w.err("Wait", c.Wait())
	}},
	{name: "pipes of a tool that cannot be executed", run: func(w *world) {
		c := w.command(w.file("tool", "", 0o755))
		in, err := c.StdinPipe()
		w.must(err)
		out, err := c.StdoutPipe()
		w.must(err)
		w.err("Start", c.Start())
		_, err = in.Write([]byte("x"))
		w.err("Write", err)
		_, err = out.Read(make([]byte, 1))
		w.err("Read", err)
		w.state(c)
	}},
	{name: "pipes that cannot be made", run: func(w *world) {
		c := w.command("/bin/true")
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(""), io.Discard, io.Discard
		_, err := c.StdinPipe()
		w.err("StdinPipe", err)
		_, err = c.StdoutPipe()
		w.err("StdoutPipe", err)
		_, err = c.StderrPipe()
		w.err("StderrPipe", err)
		_, err = c.Output()
		w.err("Output", err)
		_, err = c.CombinedOutput()
		w.err("CombinedOutput", err)
		c.Stdout = nil
		_, err = c.CombinedOutput()
		w.err("CombinedOutput with Stderr", err)
		w.must(c.Run())
		c.Stdin, c.Stdout, c.Stderr = nil, nil, nil
		_, err = c.StdinPipe()
		w.err("StdinPipe after Run", err)
		_, err = c.StdoutPipe()
		w.err("StdoutPipe after Run", err)
		_, err = c.StderrPipe()
		w.err("StderrPipe after Run", err)
	}},
	{name: "Output", run: output(func(w *world) *command { return w.sh("echo o; echo e >&2") })},
	{name: "Output of nothing", run: output(func(w *world) *command { return w.command("/bin/true") })},
	{name: "Output of a tool that fails has its Stderr", run: output(func(w *world) *command { return w.sh("echo o; echo e >&2; exit 3") })},
	{name: "Output of a tool that fails at length keeps both ends", run: output(func(w *world) *command {
		return w.sh("seq 1 40000 >&2; exit 3")
	})},
	{name: "Output with a Stderr of the caller has none", run: output(func(w *world) *command {
		c := w.sh("echo e >&2; exit 3")
		c.Stderr = io.Discard
		return c
	})},
	{name: "CombinedOutput", run: func(w *world) {
		out, err := w.sh("echo o; echo e >&2; echo o2; exit 4").CombinedOutput()
		w.saw("output", string(out))
		w.err("CombinedOutput", err)
	}},
	{name: "no descriptors but three", run: func(w *world) { w.run(w.sh(listFDs)) }},
	{name: "a descriptor that the harness leaks", run: func(w *world) {
		fd, err := syscall.Dup(0) // without close-on-exec
		w.must(err)
		defer syscall.Close(fd)
		w.run(w.sh("[ -e /proc/$$/fd/$1 ] && echo leaked; true", fmt.Sprint(fd)))
	}, differs: []diff{{"descriptors", "stdout", "leaked\n", ""}}},
	{name: "ExtraFiles begin at 3", run: func(w *world) {
		f, err := os.Open(w.file("extra", "text\n", 0o600))
		w.must(err)
		defer f.Close()
		c := w.sh(listFDs + "; cat <&4; cat <&5")
		c.ExtraFiles = []*os.File{f, f, f}
		w.run(c)
	}},
	{name: "gaps in ExtraFiles are closed", run: func(w *world) {
		f, err := os.Open(w.file("extra", "text\n", 0o600))
		w.must(err)
		defer f.Close()
		c := w.sh(listFDs + "; cat <&5")
		c.ExtraFiles = []*os.File{nil, nil, f, nil}
		w.run(c)
	}},
	{name: "only gaps in ExtraFiles", run: func(w *world) {
		c := w.sh(listFDs)
		c.ExtraFiles = []*os.File{nil, nil, nil}
		w.run(c)
	}},
	{name: "many ExtraFiles", run: func(w *world) {
		f, err := os.Open(w.file("extra", "text\n", 0o600))
		w.must(err)
		defer f.Close()
		c := w.sh("for n in 3 50 102 103; do [ -e /proc/$$/fd/$n ] && echo $n; done")
		for range 100 {
			c.ExtraFiles = append(c.ExtraFiles, f)
		}
		w.run(c)
	}},
	{name: "ExtraFiles up to the descriptor before the stage's own", run: manyFiles(37, 0)},
	{name: "ExtraFiles up to the stage's own descriptor", run: manyFiles(38, 0)},
	{name: "ExtraFiles beyond the stage's own descriptor", run: manyFiles(57, 0)},
	{name: "a gap in ExtraFiles at the stage's own descriptor", run: manyFiles(57, 40)},
	{name: "a UNIX socket in ExtraFiles", run: func(w *world) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		w.must(err)
		ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
		defer theirs.Close()
		io.WriteString(ours, "said\n")
		ours.Close()
		c := w.sh("cat <&3")
		c.ExtraFiles = []*os.File{theirs}
		w.run(c)
	}},
	{name: "a socket of the network in ExtraFiles", run: func(w *world) {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		w.must(err)
		f := os.NewFile(uintptr(fd), "socket")
		defer f.Close()
		c := w.sh("echo ran")
		c.ExtraFiles = []*os.File{f}
		w.run(c)
	}, differs: starts("sockets", "<nil>", exitedWell, "ran\n", `sandbox: policy: ExtraFiles[0] = "socket": is a socket of the harness's network, which a tool can connect to anywhere: invalid argument (`+
		"give an io.Reader or io.Writer that is no *os.File, have the tool listen itself (Network.Listen), or pass a connected UNIX socket)", "*policy.PolicyError", diff{"sockets", "Start, is EINVAL", absent, "true"})},
	{name: "a closed file in ExtraFiles", run: func(w *world) {
		f, err := os.Open(w.file("extra", "text\n", 0o600))
		w.must(err)
		f.Close()
		c := w.command("/bin/true")
		c.ExtraFiles = []*os.File{f}
		w.run(c)
	}},
	{name: "a closed file as Stdout", run: func(w *world) {
		f, err := os.Create("out")
		w.must(err)
		f.Close()
		c := w.command("/bin/true")
		c.Stdout = f
		w.run(c)
	}},
}
