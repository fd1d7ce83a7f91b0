package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// ending is how this program has to end.
type ending struct {
	status int
	signal syscall.Signal // not 0: by this signal
}

// endingOf is the tool's ending.
func endingOf(state *os.ProcessState) ending {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return ending{signal: w.Signal()}
	}
	return ending{status: state.ExitCode()}
}

// dieBy ends this process by a signal, so that its parent sees what
// the tool's parent would have seen. Some signals the Go runtime would turn into
// a stack trace; a shell in its place does not.
func dieBy(s syscall.Signal) {
	number := strconv.Itoa(int(s))
	status := strconv.Itoa(128 + int(s))                                                                       // what a shell reports of such a tool
	syscall.Exec("/bin/sh", []string{"sh", "-c", "ulimit -c 0; kill -" + number + " $$; exit " + status}, nil) // ignored, as by nohup, it does not kill
	os.Exit(128 + int(s))
}

// catch begins to collect the signals that would end this program. Those that it was started to ignore, as by nohup, stay so.
func catch() chan os.Signal {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// relay passes signals on to the tool until the returned function is called. A
// terminal sends SIGINT and SIGQUIT to its whole foreground, where the tool is
// too: it would get them twice.
func relay(signals chan os.Signal, tool *os.Process) (stop func()) {
	terminal := hasTerminal()
	done := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				if !terminal || s != syscall.SIGINT && s != syscall.SIGQUIT {
					tool.Signal(s) // a tool that has just ended does not mind
				}
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

func hasTerminal() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	tty.Close()
	return true
}
