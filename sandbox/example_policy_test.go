package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/sandbox"
	"github.com/holdfast-dev/holdfast/sandbox/policy"
	"github.com/holdfast-dev/holdfast/seccomp"
)

// What is wrong with a policy is said by field before anything runs, and so is
// a directory that is no project.
func ExamplePolicyError() {
	for _, p := range []sandbox.Policy{
		{Files: sandbox.Files{Read: []string{"/usr", "src"}}},
		{Files: sandbox.Files{Protect: policy.Protect{Off: true, Add: []string{"deploy.sh"}}}},
		{Syscalls: seccomp.Filter{Rules: []seccomp.Rule{{Names: []string{"opennat"}, Action: seccomp.Allow}}}},
		{Limits: sandbox.Limits{WallClock: -time.Second}},
		{Open: []sandbox.Bound{"files", "sockets"}},
	} {
		_, err := sandbox.New(p)
		var wrong *sandbox.PolicyError
		if errors.As(err, &wrong) {
			fmt.Printf("%s: %s\n", wrong.Field, wrong.Problem)
		}
	}
	// Output:
	// Files.Read[1]: is not absolute
	// Files.Protect: Off contradicts Add, Except, BuildFiles and Everywhere
	// Syscalls.Rules[0].Names[0]: no usable filter
	// Limits.WallClock: less than a millisecond
	// Open[1]: no such bound
}

// A test runner that wants results at any host: it opens what is not its
// business, and says which bounds it can do without.
func ExampleBound() {
	p := sandbox.ReadOnly("/srv/project")
	p.Open = []sandbox.Bound{policy.BoundEnvironment, policy.BoundTime}
	p.May = []sandbox.Bound{policy.BoundResources, policy.BoundSyscalls}
	s, err := sandbox.New(p)
	if err != nil {
		log.Fatal(err)
	}
	cmd := s.Command("go", "version")
	if err := cmd.Run(); err != nil {
		log.Fatal(err)
	}
	for _, b := range []sandbox.Bound{policy.BoundFiles, policy.BoundNetwork, policy.BoundProcesses, policy.BoundPrivileges} {
		if state := cmd.Report().Bound(b).State; state != sandbox.Held {
			log.Fatalf("%s is %s", b, state)
		}
	}
}

// A report for a log: who ran, for how long, how it ended, and all the rest as JSON.
func ExampleReport_JSON() {
	cmd := sandbox.Command("make", "test")
	if before := cmd.Report(); before.Bound(policy.BoundFiles).State == sandbox.Promised {
		log.Print("about to run ", before.Tool)
	}
	err := cmd.Run()
	r := cmd.Report()
	log.Printf("%s: %s after %s (%v)", r.Tool, r.Status, r.Ended.Sub(r.Started), err)
	for _, b := range r.Bounds {
		if b.State == sandbox.Open {
			log.Printf("nobody wanted %s", b.Bound)
		}
	}
	data, err := r.JSON()
	if err != nil {
		log.Fatal(err)
	}
	os.Stdout.Write(data)
}

// One tool, given up when the caller's own patience ends. What it would get of
// the environment can be asked before.
func ExampleSandbox_CommandContext() {
	s, err := sandbox.New(sandbox.Workspace("/srv/project"))
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := s.CommandContext(ctx, "npm", "test")
	cmd.Dir = "/srv/project"
	cmd.Env = append(cmd.Environ(), "CI=true")
	if err := cmd.Run(); errors.Is(ctx.Err(), context.DeadlineExceeded) {
		log.Print("given up: ", err)
	}
}

// A workspace that is a linked worktree of git has its repository elsewhere. It is granted, without the hooks and the index of the
// main work tree, and the report names it; an empty Worktrees leaves it out.
func ExampleFiles_worktrees() {
	p := sandbox.Workspace("/home/user/project-fix")
	fmt.Println(p.Files.Worktrees)
	p.Files.Worktrees = nil
	p.Files.Protect.NoNewRepositories = true // nor may the tool make repositories
	// Output: [/home/user/project-fix]
}
