// Package compile makes the plan of a policy for a host: which namespaces, mounts, rulesets, limits and filters, in which order,
// and what of the policy this host cannot hold.
//
//	made, err := compile.Plan(compile.Input{Policy: p, Tree: tree, Facts: facts, ...})
//
// It is pure: an [Input] has all that decides a plan (the policy, its paths as internal/resolve found them, the host's facts), and the
// same input gives the same plan on any machine. Package sandbox reads the host, fills the input in, and remembers plans.
//
// compile.go has the order of steps: Plan for a policy of rules, root.go for an explicit root (Policy.Root). mechanisms.go
// says which mechanism holds which bound and what is lost.
//
// # Limits
//
// What a step does in the kernel is package stage's matter. An error is a [policy.PolicyError], or [policy.UnsupportedError]s joined.
package compile
