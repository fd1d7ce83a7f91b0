//go:build landlocktsync

package process

// tsyncOnly is whether go-landlock was built to do nothing before Landlock ABI 8.
const tsyncOnly = true
