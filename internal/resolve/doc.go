// Package resolve makes the paths of a policy concrete on this host: canonical paths,
// parents before children, the symbolic links that lead to them, and the
// repositories that belong to linked work trees. It reads names and links, and opens
// no file but those of git that say where a repository is.
package resolve
