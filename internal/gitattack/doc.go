// Package gitattack attacks the rules that protect git repositories in a writable directory. It holds tests alone:
// a generator writes sequences of file operations, a hostile tool carries them out inside the default Workspace,
// and then the user's own git commands run outside, as they would after any tool.
//
//	go test ./internal/gitattack                                          // some 60 sequences, each race 3 times: about 20 s; -short: a third
//	HOLDFAST_GITATTACK=20000 go test -timeout 3h -run Sequences ./internal/gitattack // the long run
//	HOLDFAST_GITATTACK_LOG=/tmp/findings ...                                         // findings as they come
//	HOLDFAST_GITATTACK_SEED=17 go test -run Sequences ./internal/gitattack           // one of its sequences again
//
// # One sequence
//
//  1. A fixture is copied (fixture_linux_test.go): a plain clone, one with a submodule, with a linked worktree, a
//     workspace that is a linked worktree, a .bare layout, a separate git directory inside and outside, no repository at
//     all, a sub-directory of a repository, a hook of the user's, a rebase in progress. Every fixture lies at the same
//     path, so that absolute paths in it stay true; beside the workspace lie the user's HOME, a victim directory, the
//     remotes, and an empty directory for canaries.
//  2. A round's operations run in one sandbox (tool_linux_test.go): names from the grammar of what git reads
//     (grammar_test.go), contents that leave a canary when git executes or obeys them (payload_test.go), by every system
//     call that makes, moves or changes a file, spelled in several ways. git itself is one of the operations.
//  3. The user's git commands of that round run outside (user_linux_test.go), each with a time limit. They may fail.
//  4. It is a finding when a canary exists, when a file outside the workspace was changed, or when a secret of
//     the HOME stands in the workspace. A command of the user's that only fails is no finding.
//  5. A sequence has one or two rounds: what one run prepares, the next run's sandbox finds.
//
// A finding is made smaller, operation by operation, and printed with its seed (minimise_test.go).
//
// # Where sequences come from
//
// Half begin with the skeleton of an attack that once worked (skeleton_test.go), whose order, names, places and calls are
// then changed at random; the others are random throughout (generate_test.go). A seed decides everything.
//
// # How it is known to see
//
// Without the rules (Protect.Off) every skeleton must be found, unchanged: TestKernelGitAttackFindsEachClass.
// A skeleton that no longer works there says that the test has gone blind, or that git has closed the hole. With the rules
// none may work: TestKernelGitAttackIsHeld.
//
// # After the tool
//
// A list of plants (after_plants_linux_test.go) is what a checkout or an unconfined tool may have left in a repository, with the command of a harness that
// executes or obeys it. In a session none reaches anything outside, and outside each one works (after_linux_test.go).
//
// # Limits
//
// Races are other programs' matter: for the lock files of the user's git and of a second sandbox's (race_linux_test.go), and
// between two sandboxes that make one git directory together (shaperace_linux_test.go, fliprace_linux_test.go);
// HOLDFAST_GITATTACK_RACE says how often each is run. Payloads that need a terminal (pagers) or a
// network are not executed by these commands. Only the git of this machine is attacked.
package gitattack
