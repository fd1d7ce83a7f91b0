// Package runner is the life of one command in a sandbox.
//
//	r := runner.New(ctx, s, nil, tool) // s is what the runs of one sandbox have in common
//	cmd := r.Command()                 // an exec.Cmd whose context is r
//	err := r.Start()
//	err = r.Wait()
//	r.Account()
//
// Run is the hook in exec.Cmd.Start (run.go), and command.go has Start and Wait. What happens in the hook is in
// enter_linux.go: the command is checked (check_linux.go) and the stage's descriptors, directory
// and environment put in the place of the tool's. run_linux.go follows the run to its end, account_linux.go says what is known of it: Evidence is
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
// as it happens, what the supervisor has refused some 20 ms later, and the end when all is over and before Wait returns.
//
// What a run was denied becomes a policy.Violation, in words, here: JudgeDenial is for what the supervisor has refused
// (refused.go), ViolationOf for what the proxy has denied (violation.go). What Files.Watch has recorded comes through a
// watcher, which looks outside whether the policy is the reason (watched_linux.go).
//
// # Sessions
//
// A Session (session_linux.go) has what a Run has for itself otherwise: the stage that begins the sandbox, its network, its own directory. A Run of a
// session differs in three places: its program holds the tool's steps alone, and goes to init by the session's socket
// (enter_linux.go, load); listenInside follows it, to MsgToolEnded, at which Wait returns, and then to MsgGone; what ends with a run of one
// command stays, for it is the session's (giveBack). process_linux.go finds the processes of each command from its
// warden down. Close asks init to end; the stage and init end then as they do when a tool has ended.
// Pause and Resume signal all that runs below init, in the order of that tree (pause_linux.go, tree_linux.go).
// A single command of a sandbox that is prepared borrows a session, which ends with it (prepared_linux.go).
// What a command without Stdout or Stderr writes is kept (outputs.go, run_output.go, package output); ports_linux.go and
// session_ports_linux.go find who listens, and forwards_linux.go leads a port of the harness's loopback there.
//
// # Servers without a network namespace
//
// With a network namespace DialInside asks init for a socket that was made inside. Without one the supervisor binds the tools' servers to
// addresses in 127.128.0.0/9 on the machine's loopback, and the harness connects there itself (loopback_linux.go). Once a server has ended any program of the
// machine can bind its address, and TCP does not say who the other end is. So a directDialer looks twice at the kernel's table of sockets and at the
// descriptors of the sandbox's processes:
//
//  1. before, for a socket that listens at such an address and that one of the processes has. A program of the machine's hears nothing otherwise;
//  2. after, for that very socket, listening, or for the other end of the connection, again in one of the processes.
//
// A socket that listened at both times did so in between, since the supervisor lets none of the tool's listen a second time, and no other socket can listen there
// beside it; so the connection is in its queue, or was. A server such as nc -l has closed it by then, and is known by the other end. One that has
// closed both is not known, and the dial refused. Init could dial with the supervisors' table in hand and be sure at once; but it would wait
// for the wardens' turn, and it waits for nothing.
//
// # Decisions
//
// With Files.Decide the supervisor asks about opens that fail (questions_linux.go). The file is found and opened by O_PATH before the
// policy's Decide is asked, and given as a sealed copy, or to be written, if it is the same after the answer (granted_linux.go).
//
// # Limits
//
// The package compiles no policy and makes no report: package sandbox does. Sessions exist on Linux, and not
// yet with an explicit root.
package runner
