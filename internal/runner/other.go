//go:build !linux && !darwin

package runner

// Engine is empty where no tool runs.
type Engine struct{}
