package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/holdfast-dev/holdfast/rlimit"
	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// A tool that an agent asked for, in the default sandbox: it can change the
// working directory, and nothing else.
func ExampleCommand() {
	cmd := sandbox.Command("bash", "-c", "make test")
	out, err := cmd.CombinedOutput()
	fmt.Printf("%s%v\n", out, err)
	fmt.Println(cmd.Report())
}

// The tool and whatever it started are dead when the time is over.
func ExampleCommandContext() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := sandbox.CommandContext(ctx, "go", "test", "./...").Run(); err != nil {
		log.Print(err)
	}
}

// A policy of one's own starts from nothing, and every line widens it.
func ExampleNew() {
	s, err := sandbox.New(sandbox.Policy{
		Files: sandbox.Files{
			Read:      []string{"/usr", "/bin", "/lib", "/lib64", "/etc/ssl"},
			Write:     []string{"/srv/build"},
			Hide:      []string{"/usr/local/private"},
			HideNames: []string{".env", ".env.*"},
			Private:   []string{"/tmp", "/home/tool"},
			Make:      []policy.File{{Path: "/home/tool/.npmrc", Data: "audit=false\n", Mode: 0o600}},

			CopyOnWrite:  []string{"/srv/cache"}, // starts with what is there; what is added is gone afterwards
			PrivateBytes: 1 << 30,
			Protect:      policy.Protect{Add: []string{"deploy.sh"}, Except: []string{".vscode"}, BuildFiles: true},
		},
		Network: sandbox.Network{Host: false},
		Env:     sandbox.Env{Pass: []string{"PATH", "LANG", "LC_*"}, Set: map[string]string{"HOME": "/home/tool"}},
		Limits:  sandbox.Limits{WallClock: 10 * time.Minute, Rlimits: rlimit.Limits{NoFile: rlimit.At(1024)}},

		Syscalls: seccomp.Strict(),
	})
	var bad *sandbox.PolicyError
	var host *sandbox.UnsupportedError
	switch {
	case errors.As(err, &bad):
		log.Fatalf("%s cannot be %q: %s (%s)", bad.Field, bad.Value, bad.Problem, bad.Remedy)
	case errors.As(err, &host):
		log.Fatalf("this machine cannot hold %s: %s: %s; %s", host.Bound, host.What, host.Reason, host.Remedy)
	case err != nil:
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(s.Explain())
}

// One sandbox serves any number of commands, each inside walls of its own.
func ExampleSandbox_Command() {
	s, err := sandbox.New(sandbox.ReadOnly("/srv/project"))
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, word := range []string{"TLS", "DNS"} {
		out, err := s.Command("grep", "-r", word, "/srv/project").Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			fmt.Println(word, "ended with", exit.ExitCode())
		}
		fmt.Printf("%s", out)
	}
}

// A command made elsewhere, which other code will start.
func ExampleSandbox_Wrap() {
	s, err := sandbox.New(sandbox.Workspace("/srv/project"))
	if err != nil {
		log.Fatal(err)
	}
	cmd := &exec.Cmd{Path: "/usr/bin/python3", Args: []string{"python3", "server.py"}, Dir: "/srv/project"}
	if err := s.Wrap(cmd); err != nil {
		log.Fatal(err)
	}
	if err := cmd.Run(); err != nil {
		log.Print(err)
	}
	fmt.Println(sandbox.ReportOf(cmd))
}

// A preset is a policy, and its fields can be changed.
func ExampleWorkspace() {
	p := sandbox.Workspace("/srv/project")
	p.Files.Read = append(p.Files.Read, "/srv/shared")
	p.May = []sandbox.Bound{policy.BoundProcesses} // on a host without namespaces, run all the same
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Command("make").Run(); err != nil {
		log.Print(err)
	}
}

// Nothing is bounded, and the report says so.
func ExampleUnconfined() {
	s, err := sandbox.New(sandbox.Unconfined())
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("true")
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(cmd.Report())
}

// What this machine has, and what would bring back what it has not.
func ExampleProbe() {
	var host sandbox.Host = sandbox.Probe()
	var facts []sandbox.Fact = host.List()
	for _, f := range facts {
		fmt.Println(f.Name, f.Answer, f.Reason, f.Remedy)
	}
}

// A caller that accepts nothing less than every bound.
func ExampleReport_Held() {
	cmd := sandbox.Command("true")
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
	var report *sandbox.Report = cmd.Report()
	if report.Held() {
		return
	}
	lacking := map[sandbox.State][]sandbox.BoundReport{}
	for _, b := range report.Bounds {
		lacking[b.State] = append(lacking[b.State], b)
	}
	if n := len(lacking[sandbox.Unread]); n > 0 {
		fmt.Println("it was killed before", n, "bounds were looked at")
	}
	for _, b := range append(lacking[sandbox.Weaker], lacking[sandbox.Absent]...) {
		fmt.Println(b.Bound, b.State, b.Lost)
		var by []sandbox.MechanismReport = b.Mechanisms
		for _, m := range by {
			fmt.Println(m.Mechanism, m.Held, m.Evidence)
		}
	}
	os.Exit(1)
}

// The names that no tool may write below a writable directory, and the variables
// that no tool gets.
func ExampleProtectedNames() {
	fmt.Println(policy.ProtectedNames())
	fmt.Println(policy.SecretNames())
}

// The tool ended, or its time did, or a wall could not be built.
func ExampleCmd_Wait() {
	cmd := sandbox.Command("bash", "-c", "exit 3")
	err := cmd.Start()
	var start *sandbox.StartError
	if errors.As(err, &start) {
		log.Fatalf("nothing ran: the %s could not %s: %v", start.In, start.Step, start.Err)
	}
	if err == nil {
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	var stuck *sandbox.StuckError
	var lost *sandbox.ProcessError
	switch {
	case errors.As(err, &stuck): // in the kernel: look at /proc/PID/stack, as root
		log.Fatalf("process %d was killed and does not end: %v", stuck.PID, stuck.Err)
	case errors.As(err, &lost): // by the kernel, for want of memory, or by a process outside
		log.Fatalf("the sandbox's %s %s, not the tool: %v", lost.Process, lost.Status, lost.Err)
	case errors.Is(err, sandbox.ErrDeadline):
		fmt.Println("out of time")
	case errors.As(err, &exit):
		fmt.Println("the tool said", exit.ExitCode())
	}
}
