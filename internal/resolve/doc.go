// Package resolve makes the paths of a policy concrete on this host: canonical paths,
// parents before children, the symbolic links that lead to them, and the
// repositories that belong to linked work trees. Files is for a policy's rules, Root for the entries
// of an explicit root. It also finds what git obeys in a writable tree, the UNIX sockets in a
// readable one, and an agent's socket.
//
// It reads names and links, and opens no file but those of git that say where a repository is and what
// it obeys, and /proc/net/unix.
package resolve
