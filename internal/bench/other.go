//go:build !linux

package main

import (
	"errors"
	"fmt"
)

var workers = map[string]func(args []string) error{}

var sections = []section{{name: "start", run: func(int) ([]table, error) {
	return nil, fmt.Errorf("there is no sandbox to measure on this system: %w", errors.ErrUnsupported)
}}}

func kernelName() string { return "no Linux" }

func load() string { return "load unknown" }

func ticks() (all, own float64) { return 0, 0 }
