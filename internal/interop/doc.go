// Package interop holds one test with each of several libraries that start an
// exec.Cmd which they are given: started by them, a sandbox's command is in its
// sandbox. And it holds small programs that start commands as the shell tools of known
// harnesses do; each gives the same with os/exec and with a sandbox in its place. It is a
// separate module, so that the libraries' dependencies are not Holdfast's.
package interop
