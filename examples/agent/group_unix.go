//go:build unix

package main

import "syscall"

// withoutTerminal keeps /dev/tty from commands: they do not write past the bars, nor read answers, and Ctrl-C is the agent's alone.
func withoutTerminal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
