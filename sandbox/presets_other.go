//go:build !darwin

package sandbox

// moreTrees are what a preset shows of this system beside systemTrees.
var moreTrees []string

// presetsMay are the bounds that may be weaker under a preset.
var presetsMay []Bound
