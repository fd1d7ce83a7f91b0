// Package verdict says what a policy means: whether it allows an access, which field decides, and what would allow it.
//
//	ok, reason := verdict.Allows(p, verdict.Access{Op: verdict.OpWrite, Path: "/srv/project/main.go"})
//
// It is a second definition of a policy, beside the plan that is compiled from it: tests of package sandbox compare the two, and
// profiles of macOS are made from an [Evaluator]. Nothing is guarded by it.
//
// # Limits
//
// Paths are compared as text: they are taken to be canonical. [Of] takes the paths as the host has resolved them.
package verdict
