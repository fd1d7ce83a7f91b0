// Package runner is the life of one command in a sandbox.
//
//	r := runner.New(ctx, s, nil, tool) // s is what the runs of one sandbox have in common
//	cmd := r.Command()                 // an exec.Cmd whose context is r
//	err := r.Start()
//	err = r.Wait()
//	r.Account()
//
// Run is the hook in exec.Cmd.Start (run.go), and command.go has Start and Wait. What happens in the hook is in
// enter_linux.go: the command is checked (check_linux.go) and the stage put in
// the tool's place. run_linux.go follows the run to its end, account_linux.go says what is known of it: Evidence is
// what the kernel said of the tool, and judges whether a mechanism of the plan is shown to be in force.
//
// Networks is what the networks of one sandbox's runs have in common, made of the policy once: the rules, the
// authority for TLS, the credentials' secrets. Networks.New makes one run's Network, whose variables and
// files the tool gets; Serve begins when the tool has been executed, with the listeners that came up
// from inside, or with those made at the machine's loopback; Close ends all of it. Summary says what
// was denied.
//
// On macOS a run executes sandbox-exec: run_darwin.go, seatbelt*.go.
//
// An observer tells Policy.Observe of a run (observe.go): its start before anything else, what its gateway denies and asks
// as it happens, what the supervisor has refused and the end when all is over and before Wait returns.
//
// What a run was denied becomes a policy.Violation, in words, here: JudgeDenial is for what the supervisor has refused
// (refused.go), ViolationOf for what the gateway has denied (violation.go). What Files.Watch has recorded comes through a
// watcher, which looks outside whether the policy is the reason (watched_linux.go).
//
// # Limits
//
// The package compiles no policy and makes no report: package sandbox does. A sandbox's namespaces live as long as
// its one command.
package runner
