// Package runner serves the network of one run of a command, as the harness does it while the tool
// runs: the proxies, the forwarded ports, the agents and the capture.
//
// Sandbox is what the runs of one sandbox have in common: the policy, its plan and what they became on
// this system. Networks is that of their network, made of the policy once: the rules, the
// authority for TLS, the credentials' secrets. Networks.New makes one run's Network, whose variables and
// files the tool gets; Serve begins when the tool has been executed, with the listeners that came up
// from inside, or with those made at the machine's loopback; Close ends all of it. Summary says what
// was denied.
//
// Evidence is what the kernel said of a run's tool, and judges whether a mechanism of the plan is
// shown to be in force.
//
// The package knows no command and no report.
package runner
