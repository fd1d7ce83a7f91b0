package presets

import "github.com/holdfast-dev/holdfast/sandbox/policy"

// osTrees are what a preset shows of macOS beside systemTrees.
var osTrees = []string{"/System", "/Library/Frameworks", "/Library/Developer/CommandLineTools", "/Library/Apple", "/Applications/Xcode.app"}

// maybeMissing are the bounds that may be weaker under a preset: macOS has no mounts
// for one process, no pid namespaces and no filters of system calls. A policy that
// is written by hand says so itself. The report tells what is lost.
var maybeMissing = []policy.Bound{policy.BoundFiles, policy.BoundProcesses, policy.BoundSyscalls}
