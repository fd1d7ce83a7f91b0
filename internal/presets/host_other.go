//go:build !darwin

package presets

import "github.com/holdfast-dev/holdfast/sandbox/policy"

// osTrees are what a preset shows of this system beside systemTrees.
var osTrees []string

// maybeMissing are the bounds that may be weaker under a preset.
var maybeMissing []policy.Bound
