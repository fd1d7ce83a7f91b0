// Package interop holds one test with each of several libraries that start an
// exec.Cmd which they are given: started by them, a sandbox's command is in its
// sandbox. It is a module of its own, so that their dependencies are not the
// library's.
package interop
