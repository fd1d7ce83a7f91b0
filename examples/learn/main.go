// Command learn runs a program under the preset Workspace with policy.Files.Watch, and says what the program was denied and what would have to be
// added to the policy, as a diff.
//
//	go run ./examples/learn -- make test
//	go run ./examples/learn -again 3 -- make test
//
// With -ask it asks at the terminal about each file that the program opens and the policy does not show (policy.Files.Decide); no answer within
// 30 seconds is a no.
//
// With -again it adds what is suggested, and runs the program again, until nothing more is denied. What a program tries is its
// own choice: the diff is for a person to read before it goes into a policy.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
)

func main() {
	dir := flag.String("workspace", ".", "the directory that the program may write")
	again := flag.Int("again", 0, "how often to run it again with what is suggested")
	ask := flag.Bool("ask", false, "ask at the terminal about files that are not shown")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: learn [-workspace DIR] [-again N] -- COMMAND [ARG...]")
		os.Exit(2)
	}
	p := sandbox.Workspace(*dir)
	p.Files.Watch = true
	if *ask {
		p.Files.Decide = askAtTerminal
	}
	status, err := learn(p, *again, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(125)
	}
	os.Exit(status)
}

// learn runs the command, and again as often as it helps, and returns its last status.
func learn(p sandbox.Policy, again int, command []string) (status int, err error) {
	for ; ; again-- {
		s, err := sandbox.New(p)
		if err != nil {
			return 0, err
		}
		cmd := s.Command(command[0], command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if cmd.Dir == "" {
			cmd.Dir = p.Dir
		}
		err = cmd.Run()
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
			return 0, err
		}
		status = cmd.ProcessState.ExitCode()
		suggestion := cmd.Report().Suggest()
		s.Close()
		fmt.Fprintf(os.Stderr, "learn: exit status %d\n%s", status, suggestion)
		if again <= 0 || len(suggestion.Add) == 0 {
			return status, nil
		}
		p = suggestion.Apply(p)
	}
}

// terminal is held by the question that is asked now.
var terminal sync.Mutex

// askAtTerminal is a policy.Files' Decide. What may be a secret is denied without a question.
func askAtTerminal(ctx context.Context, r policy.FileRequest) policy.Verdict {
	if r.Caution != "" {
		return policy.Verdict{Reason: r.Caution, For: policy.Run}
	}
	terminal.Lock()
	defer terminal.Unlock()
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return policy.Verdict{Reason: "there is no terminal to ask at", For: policy.Run}
	}
	defer tty.Close()
	defer context.AfterFunc(ctx, func() { tty.SetReadDeadline(time.Unix(1, 0)) })()
	fmt.Fprintf(tty, "learn: may %q %s? [y/N] ", r.Claimed, r)
	line, _ := bufio.NewReader(tty).ReadString('\n')
	return policy.Verdict{Allow: strings.TrimSpace(line) == "y", Reason: "the user has said no", For: policy.Run}
}
