// Package presets makes the policies of sandbox.Workspace and sandbox.ReadOnly from what this host has: its system
// directories, the toolchains on PATH, build caches, the user's settings of git, and the places of secrets.
//
//	p := presets.Build(dir, true) // policy.Policy: dir can be written
//
// Registries returns the hosts of package registries that variables name, for Network.Hosts.
//
// Git itself lists the user's settings, file by file, if it lies where no tool could have written it: nothing of dir is read for that. A text that git has
// listed is not asked about again.
//
// Build reads the environment, the home directory, the system's directories and the links that lead to them, and
// nothing in dir, whose files a tool may have written. Package trust decides which links it follows. What it grants
// exists when it is called; internal/resolve looks again.
//
// # Limits
//
// Build does not fail: a dir that cannot be a workspace stands in the policy and in its Hide, which
// the resolver refuses with the words of [CheckWorkspace].
package presets
