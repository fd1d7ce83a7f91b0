package sandbox

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/kerneltest"
	"golang.org/x/sys/unix"
)

var _, _ = offer(programs, "mutual", traceEachOther), offer(programs, "mutual tracer", mutualTracer)

// traceEachOther starts two processes, each of which seizes a thread of the other with PTRACE_O_TRACEEXIT, prints what
// came of it, and ends. Two that succeed cannot be killed: each stops in its end until the other lets go of it.
func traceEachOther([]string) {
	type tracer struct {
		in  io.Writer
		out *bufio.Reader
	}
	var pair [2]tracer
	var tids [2]string
	for i := range pair {
		c := exec.Command("/proc/self/exe")
		c.Args = []string{attackTool, "mutual tracer"}
		in, _ := c.StdinPipe()
		out, _ := c.StdoutPipe()
		if err := c.Start(); err != nil {
			fmt.Println(err)
			return
		}
		pair[i] = tracer{in, bufio.NewReader(out)}
		tids[i], _ = pair[i].out.ReadString('\n')
	}
	for i := range pair {
		io.WriteString(pair[i].in, tids[1-i])
		text, _ := pair[i].out.ReadString('\n')
		fmt.Print(text)
	}
}

// mutualTracer prints its thread's number, reads another's, seizes that and waits to be killed.
func mutualTracer([]string) {
	runtime.LockOSThread()
	unix.Prctl(unix.PR_SET_PTRACER, ^uintptr(0), 0, 0, 0) // Yama's: any process may
	fmt.Println(unix.Gettid())
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	tid, _ := strconv.Atoi(strings.TrimSpace(line))
	if err := rawCall(unix.SYS_PTRACE, seizeRequest, uintptr(tid), 0, unix.PTRACE_O_TRACEEXIT); err != nil {
		fmt.Println("refused:", err)
	} else {
		fmt.Println("seized")
	}
	for {
		unix.Pause()
	}
}

// A run with two processes that try to trace each other ends, and is empty, in bounded time. Where the attack succeeds
// the machine has to be restarted.
func TestKernelMutualTracersEnd(t *testing.T) {
	kerneltest.Need(t, kerneltest.Disposable)
	eachWall(t, allSets, func(t *testing.T, w walls) {
		p := attackPolicy(t, "", w)
		p.Limits.WallClock = time.Minute
		c := hostile(t, attackSandbox(t, p, w), "mutual")
		var out bytes.Buffer
		c.Stdout, c.Stderr = &out, &out
		if err := c.Run(); err != nil {
			t.Errorf("ESCAPE: %v\n%s\n%v", err, &out, c.Report())
		}
		if text := out.String(); strings.Count(text, "seized") > 1 || strings.Count(text, "seized")+strings.Count(text, "refused") != 2 {
			t.Errorf("ESCAPE: two processes trace each other, or did not try:\n%s", text)
		}
	})
}
