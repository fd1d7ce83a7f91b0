// Package sbpl reads the profiles of macOS's sandbox-exec, says what they mean, and
// makes policies of them that Linux holds.
//
//	p, err := sbpl.Parse("agent.sb", text, map[string]string{"WS": "/src/project"})
//	if err != nil {
//		return err // unbound variable: setenv at agent.sb, line 5
//	}
//	fmt.Println(p.Evaluate("file-write-create", "/src/project/a").Why)
//	policy, rules, err := p.Policy(sbpl.Options{Strict: true})
//
// Each rule comes back with its class: exact, where what the profile says and what
// the kernel does agree; approximate, with a [Difference] for each way in which
// they do not; vacuous, where it is about something that Linux does not have.
//
// A profile's paths are first taken as this host has them (links, /private). Then every path that the
// profile could tell from what lies around it becomes a node, expressions included as far as they match
// what exists. The profile is asked about each node, a mount or a protected name is chosen for the answer,
// and what that does not say exactly becomes a [Difference] of the rule.
//
// # What becomes a policy
//
// The result is always a Layout: only that can say allow in deny in allow, at any
// depth, and what cannot be executed. The profile itself is asked, for each node,
// what becomes of it and of a name in it that stands nowhere in the profile:
//
//   - What may be read, with its metadata, is a read-only bind; what may be
//     written as well, data, creation and removal, a writable one. Where all of / is one
//     of the two, the root is the host's.
//   - What may not be read is not there. Within something that is shown it is
//     covered by an empty read-only thing without permissions; what is shown in it
//     again is a bind on that.
//   - A directory on the way to what is shown is a directory of our own, that can be
//     listed if the profile lets the real one be.
//   - What may be written and whose removal alone is denied is another mount,
//     which can be neither removed nor renamed.
//   - Writing without changing modes, owners, times or attributes is a filter of system
//     calls, and so holds everywhere.
//   - What may not be executed is a noexec mount, or, where it can be mapped as
//     a library, a bind with NoExecve. A profile that does not speak of
//     file-map-executable lets what can be read be mapped.
//   - A name that does not exist is protected as a name, at every depth, if anything is
//     denied of what could be made there or in it: any operation, on any kind of thing. What exists, and in whose place a tool could put something of which
//     more is denied, is another mount.
//   - Symbolic links, fifos and sockets whose making is denied are refused by the filter
//     everywhere; since one that exists can be moved, that is a difference all the same.
//   - Hard links, where file-link is denied, are refused by the filter, and with them
//     the naming of a file that was opened without a name (O_TMPFILE).
//   - Network.Host, if every address and path is allowed for every operation; otherwise
//     an empty network, and connect, bind or listen are refused if all of it is denied.
//     A rule for a port of localhost opens none of the host's: a caller who wants that
//     adds the port to the policy's Network.Loopback.
//   - A fork that is denied is refused by the filter; threads are not.
//
// Where Linux cannot say what a rule says the policy says less, and the rule has
// a difference that is narrower. Where that would leave nothing of the rule, it says
// more, and the difference is wider: [Options].Strict refuses these. What can be done
// only to things that exist in this sandbox alone is a third kind of difference.
//
// # Decisions
//
//   - /private/tmp, /private/var and /private/etc are /tmp, /var and /etc on
//     a host without /private, for filters of every kind: a path in them has both
//     names. Other paths that do not exist are of no
//     consequence, or a difference.
//   - A rule on a path that leads through symbolic links is a rule on their target too,
//     where macOS's would be dead: Linux has /bin and /lib as links. The links are
//     made again inside. See [Profile.Here] for the links that are not followed.
//   - A rule that denies a path which is not absolute and clean protects nothing: that
//     is a difference that is wider.
//   - Protected names of package sandbox are off: a profile says itself what is protected.
//     Resource limits are rlimit.Defaults, and what looks like a secret in the environment does not
//     pass of the harness's environment: seatbelt knows neither.
//   - (with no-sandbox) is never honoured, nor is send-signal; messages and log
//     modifiers say nothing here.
//
// # Limits
//
// Every sandbox has a /proc of its own processes, with the machine's settings read-only in
// it, a /dev with the usual devices, and terminals, shared memory, a loopback and
// process ids of its own, whatever the profile says: no rule on /proc, or on one of
// these devices, has an effect. /sys is the host's, and never writable.
//
// What a rule names is a mount: whatever the profile says of it, it can be neither
// removed nor renamed. Links and what exists are looked at when the policy is
// made; what the host makes later in a directory follows the directory's rule, and
// an expression's matches are those of the start. A layout needs namespaces. What a refused act
// gets is EROFS, EACCES or ENOENT where macOS has EPERM.
//
// What macOS does was not measured here; docs/seatbelt.md says what was compared.
package sbpl
