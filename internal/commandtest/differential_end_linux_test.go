package commandtest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// syscallZero is the signal that only asks.
const syscallZero = syscall.Signal(0)

// endCases are about how tools end.
var endCases = []diffCase{
	{name: "every exit code", run: func(w *world) {
		for code := range 256 {
			c := w.sh(fmt.Sprintf("exit %d", code))
			w.saw(fmt.Sprintf("error %d", code), fmt.Sprint(c.Run()))
			w.saw(fmt.Sprintf("code %d", code), c.ProcessState.ExitCode())
		}
	}},
	{name: "every deadly signal", run: func(w *world) {
		for sig := syscall.Signal(1); sig <= 64; sig++ {
			if sig == syscall.SIGSTOP || sig == syscall.SIGTSTP || sig == syscall.SIGTTIN || sig == syscall.SIGTTOU || sig == 32 || sig == 33 {
				continue // they stop; the C library keeps two
			}
			c := w.command("/usr/bin/perl", "-e", "kill shift, $$; exit 9", fmt.Sprint(int(sig)))
			w.saw(fmt.Sprintf("error %d", sig), fmt.Sprint(c.Run()))
			ws := c.ProcessState.Sys().(syscall.WaitStatus)
			w.saw(fmt.Sprintf("status %d", sig), fmt.Sprintf("%#x", uint32(ws)))
		}
	}},
	{name: "success", run: func(w *world) { w.run(w.command("/bin/true")) }},
	{name: "failure", run: func(w *world) { w.run(w.command("/bin/false")) }},
	{name: "a shell that kills itself", run: func(w *world) { w.run(w.sh("kill -KILL $$")) }},
	{name: "a tool that is killed by its harness", run: func(w *world) {
		c := w.sh("read x")
		in, err := c.StdinPipe()
		w.must(err)
		defer in.Close()
		w.must(c.Start())
		w.err("Kill", c.Process.Kill())
		w.err("Wait", c.Wait())
		w.err("Kill after Wait", c.Process.Kill())
		w.err("Signal after Wait", c.Process.Signal(os.Interrupt))
		w.state(c)
	}},
	{name: "a tool that dumps core", run: func(w *world) {
		w.run(w.sh("ulimit -c unlimited; kill -SEGV $$"))
	}, differs: []diff{
		{"core", "Wait", "signal: segmentation fault (core dumped)", "signal: segmentation fault"},
		{"core", "state", "signal: segmentation fault (core dumped); code -1 success false exited false; signalled true by segmentation fault; core true; status 0xb",
			"signal: segmentation fault; code -1 success false exited false; signalled true by segmentation fault; core false; status 0xb"},
	}},
	{name: "Process.Wait instead of Wait", run: func(w *world) {
		c := w.sh("exit 3")
		w.must(c.Start())
		state, err := c.Process.Wait()
		w.err("Process.Wait", err)
		w.saw("state", state)
		w.err("Wait", c.Wait())
		w.saw("ProcessState", c.ProcessState)
	}},
	{name: "Process.Release", run: func(w *world) {
		c := w.sh("exit 3")
		w.must(c.Start())
		pid := c.Process.Pid
		w.err("Release", c.Process.Release())
		w.saw("pid after Release", c.Process.Pid)
		var ws syscall.WaitStatus
		got, err := syscall.Wait4(pid, &ws, 0, nil)
		w.saw("Wait4", fmt.Sprint(got == pid, err, ws.ExitStatus()))
		w.err("Wait", c.Wait())
	}},
	{name: "usage", run: func(w *world) {
		c := w.sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
		w.must(c.Run())
		w.saw("user time is counted", c.ProcessState.UserTime() > 0)
		w.saw("memory is counted", c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss > 0)
	}},
	{name: "the tool's pid", run: func(w *world) {
		c := w.sh("echo $$ $PPID")
		out, err := c.Output()
		w.err("Output", err)
		pid, parent, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		w.saw("$$ is the process's pid", pid == fmt.Sprint(c.Process.Pid))
		w.saw("$PPID is the harness's", parent == fmt.Sprint(os.Getpid()))
	}, differs: []diff{{"pid", "$$ is the process's pid", "true", "false"}, {"pid", "$PPID is the harness's", "true", "false"}}},
	{name: "a process in the background dies with the tool", run: func(w *world) {
		defer killMarked(w.T, background)
		w.run(w.sh("(exec -a " + background + " sleep 1000) </dev/null >/dev/null 2>&1 & " + untilIs(background) + "echo started"))
		w.saw("alive after Wait", len(marked(w.T, background)))
	}, differs: []diff{{"background", "alive after Wait", "1", "0"}}},
}
