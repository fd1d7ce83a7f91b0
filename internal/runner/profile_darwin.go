package runner

import (
	"github.com/holdfast-dev/holdfast/internal/darwin"
	"github.com/holdfast-dev/holdfast/rlimit"
)

// Engine is what a sandbox has of its policy on macOS.
type Engine struct {
	Profile darwin.Profile
	Limits  []rlimit.Setting
}
