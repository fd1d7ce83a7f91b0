//go:build !landlocktsync

package process

const tsyncOnly = false
