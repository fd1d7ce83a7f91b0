package sandbox

import "github.com/holdfast-dev/holdfast/sandbox/policy"

// moreTrees are what a preset shows of macOS beside systemTrees.
var moreTrees = []string{"/System", "/Library/Frameworks", "/Library/Developer/CommandLineTools", "/Library/Apple", "/Applications/Xcode.app"}

// presetsMay are the bounds that may be weaker under a preset: macOS has no mounts
// for one process, no pid namespaces and no filters of system calls. A policy that
// is written by hand says so itself. The report tells what is lost.
var presetsMay = []Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundSyscalls}
