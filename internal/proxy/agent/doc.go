// Package agent filters what a tool in the sandbox may say to an ssh-agent or a
// gpg-agent of its user. A grant of the agent's socket alone would let the tool
// take keys away, add its own, lock the agent or export secrets; through a filter
// it may list public keys and have things signed, and nothing else:
//
//	err := agent.SSH(inside, outside, refused)
//
// inside is the connection that the tool has made, outside a fresh one to the real
// agent. A filter reads messages, never bytes that it does not understand, answers
// a refused one itself as the agent would, and passes the others on one at a time,
// so that an answer cannot be taken for that of another question. Descriptors that
// are sent along with a message are not passed on, since bytes alone are read; no listener
// of a sandbox lets one come since Linux 6.16 (SO_PASSRIGHTS).
//
// # Decisions
//
//   - ssh: identities, signatures and the extension session-bind@openssh.com pass;
//     query, the extension that lists extensions, is refused, since its answer would
//     name what is refused here. Everything else gets SSH_AGENT_FAILURE.
//   - gpg: signing passes, and what gpg asks before it signs. Deciphering, reading
//     out of the passphrase cache, export, import, generation, deletion and the
//     smartcard get the error that a gpg-agent itself gives on its restricted socket,
//     Forbidden. Options that would move the pinentry to a terminal or a display that
//     the tool names are answered with OK and dropped: the pinentry stays where the
//     user has it.
//   - A message that is too long or makes no sense ends the connection: what follows
//     could not be understood.
//
// # Limits
//
// What is signed is the tool's choice: each of the agent's keys signs for any host and
// any commit. An agent that asks (ssh-add -c) asks the user for each signature. The tool
// learns the keys' comments.
package agent
