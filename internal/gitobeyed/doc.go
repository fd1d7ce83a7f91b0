// Package gitobeyed finds the files and directories of a tree that git obeys because a configuration names them: what
// core.hooksPath and include.path (includeIf.*.path too) of the repositories there say, and the files that the commands name which git runs:
// filters, diff and merge drivers, editors, pagers, helpers, aliases (commands.go).
//
//	gitobeyed.In("/home/u/project", shown) // [/home/u/project/ci/hooks /home/u/project/.gitlocal], [ci/hooks]
//
// That takes some 80 us for a repository, and 2 us more for each directory of its top (BenchmarkIn).
//
// Looked at are the repository that the tree's top lies in, those of the tree's top and of its directories one level below, with
// their submodules and linked worktrees; and the user's and the machine's configuration. What lies deeper is not: to read the directories two
// levels below takes some twenty times as long, and there is no end to that. A relative hooksPath counts in every work tree, also in one that comes to be
// later, so In returns it by itself, for names at every depth (Names). Nothing is executed, and nothing but a regular
// file is opened. The search has a bound, and ends at a configuration above 1 MiB: In says so. The names need not exist.
//
// Links finds what lies behind the links that stand at protected names, git's or others'. A tool can make none there.
//
// A work tree that core.worktree names is anchored: a name below it is found, so that no directory on the way to it becomes a link.
//
// Linked finds the repository of a linked worktree or a submodule, Above that of a directory below a work tree's top: Files.Worktrees of
// package sandbox grants them.
//
// A command is cut into words, which are looked at as paths of the work trees that are found; when in doubt, more words. Not seen is what a
// command reaches otherwise: modules (python -m), directories, files relative to a directory that the command itself enters, and what
// its programs read or run in turn.
package gitobeyed
