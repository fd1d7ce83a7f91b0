// Package emit writes sandbox profiles for macOS's seatbelt: what may be touched,
// as plain data, becomes a profile's text and its parameters.
//
//	e, err := emit.Emit(emit.Grants{
//		Rules: []emit.Rule{{Path: "/usr", Kind: emit.Read}, {Path: "/Users/me/ws", Kind: emit.Write}},
//		Tag:   "holdfast-1",
//	})
//	args := append([]string{"-p", e.Profile}, e.Args()...) // then -- and the command
//
// # How
//
// The profile begins with (deny default). A path never stands in its text: each is
// a parameter, given by -D, and so is each regular expression, since that holds
// a path and names that somebody has chosen. Equal Grants give equal bytes.
//
// Which of two rules wins has been measured by others and is written down by nobody:
// it may be the last that matches, or one that names the very operation before one
// that names a wildcard. So both the allows and the denies about files name the
// wildcard and every operation that matters below it, and stand in the order of
// the tree, the deeper after the shallower: under either reading the deepest rule
// decides. What holds at every depth, the protected and the hidden names, comes last.
//
// A place is written in both its spellings, /tmp and /private/tmp: the kernel
// compares resolved paths, and which of the two a caller has resolved is not known
// here.
//
// A rename is an unlink here and a create there. So what is protected cannot be
// unlinked, nor can a directory on the way to it. And nothing but a regular file is
// created on the way to a protected name: a directory that is renamed there
// would bring its own hooks along, and nothing tells such a rename from a mkdir.
// That refuses git init, git clone and git worktree add where .git is protected.
//
// Ports of the loopback are granted for TCP alone, (remote tcp ..): ip would let
// datagrams through. localhost is IPv4's and IPv6's, which no filter tells apart for
// sure, so who listens at one has to hold the other. The resolver's socket is closed to
// a bounded network after all else: a question for a name leaves the machine.
//
// # Limits
//
// Names are compared as a file system does that folds case, for the letters that
// macOS folds to ASCII; see fold.go. Characters that HFS+ ignores in names, such as
// U+200D, are not looked for.
//
// The operations and services that are granted so that programs run at all were
// read from other profiles. No Mac was at hand: docs/seatbelt-on-a-mac.md lists
// what is to be tried on one. Package sandbox asks for no ProxyPorts: it serves no
// proxy on macOS.
package emit
